/*
 * bench - the operations of a back end against the clock (see bench.h)
 *
 * A time is from queueing one operation to reaching the mark behind it, as the host sees it; the
 * median of N_ROUNDS after one that is not counted. What an operation destroys is restored outside
 * of the time.
 */
#include "tests/backend/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/gen/gen.h"

enum { N_ROUNDS = 9, N_SLICES = 16, SAMPLE_STRIDE = 1 << 16 };

/* Of elements: beyond all caches, and short. */
static const uint64_t cpu_nbytes = 32 << 20, device_nbytes = UINT64_C(1) << 30;

struct bench {
	struct subject *subject;
	struct layout layout;
	uint64_t n;
	size_t nbytes;                                           /* of elements */
	struct array records, sorted_slices, work, out, scratch; /* pieces: N_SLICES, each sorted */
	struct array packed;                                     /* the pieces, a block each */
	struct slice slices[N_SLICES];

	/* Where operations put what they find out */
	struct digest digest;
	struct decode_result decoded;
	struct sort_op_result arranged;
	uint64_t cuts[N_SLICES];
	encoded_key_t middle; /* of all keys */
	uint32_t damaged, packed_nbytes[N_SLICES];
	struct packed_block blocks[N_SLICES];
	encoded_key_t *keys;
};

static int queue_copy(struct bench *bench, void *to, const void *from)
{
	return device_queue_copy(bench->subject->queue, to, from, bench->nbytes);
}

static int bench_upload(struct bench *bench)
{
	return queue_copy(bench, bench->work.device, bench->work.host);
}

static int bench_download(struct bench *bench)
{
	return queue_copy(bench, bench->work.host, bench->work.device);
}

static int bench_copy(struct bench *bench)
{
	return queue_copy(bench, array_device(&bench->out), array_device(&bench->sorted_slices));
}

static int bench_encode(struct bench *bench)
{
	return device_queue_encode(bench->subject->queue,
				   &(struct encode_op){
					   .layout = &bench->layout,
					   .records = array_device(&bench->records),
					   .elements = array_device(&bench->out),
					   .n = bench->n,
					   .ret_digest = &bench->digest,
				   });
}

static int bench_decode(struct bench *bench)
{
	return device_queue_decode(bench->subject->queue,
				   &(struct decode_op){
					   .layout = &bench->layout,
					   .elements = array_device(&bench->sorted_slices),
					   .records = array_device(&bench->out),
					   .n = bench->n,
					   .ret = &bench->decoded,
				   });
}

/* The records' elements to `work`, not timed. */
static int restore_unsorted(struct bench *bench)
{
	return device_queue_encode(bench->subject->queue,
				   &(struct encode_op){
					   .layout = &bench->layout,
					   .records = array_device(&bench->records),
					   .elements = array_device(&bench->work),
					   .n = bench->n,
				   });
}

static int restore_sorted_slices(struct bench *bench)
{
	return queue_copy(bench, array_device(&bench->work), array_device(&bench->sorted_slices));
}

static int queue_sort(struct bench *bench, void *elements, uint64_t n)
{
	return device_queue_sort(bench->subject->queue,
				 &(struct sort_op){
					 .layout = &bench->layout,
					 .items = elements,
					 .n = n,
					 .scratch = array_device(&bench->scratch),
					 .ret = &bench->arranged,
				 });
}

static int bench_sort(struct bench *bench)
{
	return queue_sort(bench, array_device(&bench->work), bench->n);
}

static int bench_unique(struct bench *bench)
{
	return device_queue_unique(bench->subject->queue,
				   &(struct unique_op){
					   .layout = &bench->layout,
					   .items = array_device(&bench->work),
					   .n = bench->n,
					   .ret = &bench->arranged,
				   });
}

static int bench_merge(struct bench *bench)
{
	return device_queue_merge(bench->subject->queue,
				  &(struct merge_op){
					  .layout = &bench->layout,
					  .slices = bench->slices,
					  .k = N_SLICES,
					  .out = array_device(&bench->out),
					  .scratch = array_device(&bench->scratch),
					  .ret = &bench->arranged,
				  });
}

static int bench_cut(struct bench *bench)
{
	bench->middle = (encoded_key_t)1 << (8 * bench->layout.record_nbytes - 1);
	return device_queue_cut(bench->subject->queue, &(struct cut_op){
							       .slices = bench->slices,
							       .k = N_SLICES,
							       .layout = &bench->layout,
							       .key = &bench->middle,
							       .ret_cuts = bench->cuts,
						       });
}

static int bench_sample(struct bench *bench)
{
	return device_queue_sample(bench->subject->queue,
				   &(struct sample_op){
					   .layout = &bench->layout,
					   .items = array_device(&bench->sorted_slices),
					   .n = bench->n,
					   .stride = SAMPLE_STRIDE,
					   .ret_keys = bench->keys,
				   });
}

static int bench_pack(struct bench *bench)
{
	return device_queue_pack(bench->subject->queue,
				 &(struct pack_op){
					 .elements = array_device(&bench->sorted_slices),
					 .n = bench->n,
					 .element_nbytes = bench->layout.element_nbytes,
					 .block_n = (uint32_t)(bench->n / N_SLICES),
					 .packed = array_device(&bench->packed),
					 .ret_nbytes = bench->packed_nbytes,
				 });
}

/* What bench_pack() has left. */
static int bench_unpack(struct bench *bench)
{
	const char *packed = array_device(&bench->packed);

	for (unsigned i = 0; i < N_SLICES; i++) {
		const size_t at = i * (bench->nbytes / N_SLICES);

		bench->blocks[i] = (struct packed_block){
			.packed = packed,
			.elements = (char *)array_device(&bench->out) + at,
			.packed_nbytes = bench->packed_nbytes[i],
			.n = (uint32_t)(bench->n / N_SLICES),
		};
		packed += bench->packed_nbytes[i];
	}
	return device_queue_unpack(bench->subject->queue,
				   &(struct unpack_op){
					   .blocks = bench->blocks,
					   .n_blocks = N_SLICES,
					   .element_nbytes = bench->layout.element_nbytes,
					   .ret_damaged = &bench->damaged,
				   });
}

static const struct measured {
	const char *name;
	int (*queue)(struct bench *bench);
	int (*restore)(struct bench *bench); /* or NULL */
	bool of_copies;                      /* only where host and device memory differ */
	bool moves;                          /* goes over all elements: has a rate */
} measured[] = {
	{ "upload", bench_upload, NULL, true, true },
	{ "download", bench_download, NULL, true, true },
	{ "copy", bench_copy, NULL, false, true },
	{ "encode", bench_encode, NULL, false, true },
	{ "decode", bench_decode, NULL, false, true },
	{ "sort", bench_sort, restore_unsorted, false, true },
	{ "unique", bench_unique, restore_sorted_slices, false, true },
	{ "merge of 16", bench_merge, NULL, false, true },
	{ "pack", bench_pack, NULL, false, true },
	{ "unpack", bench_unpack, NULL, false, true },
	{ "cut of 16", bench_cut, NULL, false, false },
	{ "sample", bench_sample, NULL, false, false },
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t time_once(struct bench *bench, const struct measured *operation)
{
	uint64_t start_ns;

	if (operation->restore)
		subject_must(operation->restore(bench), operation->name);
	subject_wait(bench->subject);
	start_ns = now_ns();
	subject_must(operation->queue(bench), operation->name);
	subject_wait(bench->subject);
	return now_ns() - start_ns;
}

static void time_operation(struct bench *bench, const struct measured *operation)
{
	uint64_t times_ns[N_ROUNDS];

	time_once(bench, operation);
	for (int i = 0; i < N_ROUNDS; i++)
		times_ns[i] = time_once(bench, operation);
	qsort(times_ns, N_ROUNDS, sizeof times_ns[0], compare_ns);
	printf("%-14s%6u%14.3f", operation->name, bench->layout.element_nbytes,
	       (double)times_ns[N_ROUNDS / 2] / 1e6);
	if (operation->moves)
		printf("%10.2f", (double)bench->nbytes / (double)times_ns[N_ROUNDS / 2]);
	printf("\n");
}

static void make_records(struct bench *bench)
{
	char *records = malloc(bench->n * bench->layout.record_nbytes);
	struct gen gen;

	subject_must(records ? 0 : -1, "malloc");
	gen_init(&bench->layout, GEN_RANDOM, bench->n, 1, &gen);
	gen_fill(&gen, 0, bench->n, records);
	array_set(bench->subject, &bench->records, records, bench->n * bench->layout.record_nbytes,
		  0);
	free(records);
}

static size_t scratch_nbytes(const struct bench *bench)
{
	const struct subject *subject = bench->subject;
	const size_t of_sort =
		device_sort_scratch_nbytes(subject->device, &bench->layout, bench->n);
	const size_t of_merge =
		device_merge_scratch_nbytes(subject->device, &bench->layout, N_SLICES, bench->n);

	return of_sort > of_merge ? of_sort : of_merge;
}

static void make_sorted_slices(struct bench *bench)
{
	const uint64_t n = bench->n / N_SLICES;

	subject_must(restore_unsorted(bench), "encode");
	subject_must(queue_copy(bench, array_device(&bench->sorted_slices),
				array_device(&bench->work)),
		     "copy");
	for (unsigned i = 0; i < N_SLICES; i++) {
		char *elements = (char *)array_device(&bench->sorted_slices) +
				 i * n * bench->layout.element_nbytes;

		bench->slices[i] = (struct slice){ .elements = elements, .n = n };
		subject_must(queue_sort(bench, elements, n), "sort");
	}
	subject_wait(bench->subject);
}

static void bench_open(struct bench *bench, const char *type)
{
	struct subject *subject = bench->subject;
	struct key key;

	subject_must(key_parse_type(type, &key), type);
	subject_must(layout_make_key_only(&key, &bench->layout), type);
	bench->nbytes = subject->info.unified ? cpu_nbytes : device_nbytes;
	bench->n = bench->nbytes / bench->layout.element_nbytes;
	bench->keys = malloc((bench->n / SAMPLE_STRIDE + 1) * sizeof *bench->keys);
	subject_must(bench->keys ? 0 : -1, "malloc");
	array_set(subject, &bench->sorted_slices, NULL, bench->nbytes, 0);
	array_set(subject, &bench->work, NULL, bench->nbytes, 0);
	array_set(subject, &bench->out, NULL, bench->nbytes, 0);
	array_set(subject, &bench->packed, NULL, bench->nbytes, 0);
	array_set(subject, &bench->scratch, NULL, scratch_nbytes(bench), 0);
	make_records(bench);
	make_sorted_slices(bench);
}

static void bench_close(struct bench *bench)
{
	array_free(bench->subject, &bench->records);
	array_free(bench->subject, &bench->sorted_slices);
	array_free(bench->subject, &bench->work);
	array_free(bench->subject, &bench->out);
	array_free(bench->subject, &bench->packed);
	array_free(bench->subject, &bench->scratch);
	free(bench->keys);
}

void bench_operations(struct subject *subject)
{
	static const char *const types[] = { "u32", "u64", "u128" };

	printf("%s, one lane, medians of %d\n", subject->info.name, N_ROUNDS);
	printf("%-14s%6s%14s%10s\n", "operation", "bytes", "ms", "GB/s");
	for (unsigned i = 0; i < 3; i++) {
		struct bench bench = { .subject = subject };

		bench_open(&bench, types[i]);
		for (unsigned j = 0; j < sizeof measured / sizeof measured[0]; j++)
			if (!measured[j].of_copies || !subject->info.unified)
				time_operation(&bench, &measured[j]);
		bench_close(&bench);
	}
}
