/*
 * bench_records - how fast does the CPU back end sort and merge records
 *
 * For layouts that differ in what matters: the width of the record, where the key ends, how much
 * ties. Each as in a sort: chunks of records are sorted one after the other, then all chunks
 * are merged window by window. What bounds them stands beside them: copying the same bytes, and
 * sorting as many elements.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/cli/exit_status.h"
#include "src/device/cpu/cut_and_sample.h"
#include "src/device/cpu/record_sort.h"
#include "src/device/cpu/cpu_sort.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_median.h"
#include "tools/bench/timed_threads.h"

enum { MAX_KEYS = 4, MAX_CHUNKS = 256, MAX_ITEM_NBYTES = 4096 };

/* A row of the table. */
struct record_case {
	const char *name;
	uint64_t record_nbytes;
	const char *types[MAX_KEYS]; /* one key behind the other */
	uint64_t n_equal;            /* the first bytes of all records are the same */
	uint64_t n_values;           /* as many different records; 0: all are */
};

/* clang-format off */
static const struct record_case record_cases[] = {
	{ "b10 of 100 B", 100, { "b10" }, 0, 0 },
	{ "b100 of 100 B", 100, { "b100" }, 0, 0 },
	{ "b100 of 100 B, 40 B equal", 100, { "b100" }, 40, 0 },
	{ "b100 of 100 B, 1000 values", 100, { "b100" }, 0, 1000 },
	{ "b100 of 100 B, all equal", 100, { "b100" }, 0, 1 },
	{ "i32 f64 u16be of 100 B", 100, { "i32", "f64", "u16be" }, 0, 0 },
	{ "u64 of 16 B", 16, { "u64" }, 0, 0 },
	{ "u32 of 12 B", 12, { "u32" }, 0, 0 },
	{ "u128 of 32 B", 32, { "u128" }, 0, 0 },
	{ "b10 of 4096 B", 4096, { "b10" }, 0, 0 },
};
/* clang-format on */

/* What one thread works on. */
struct record_bench_thread {
	struct layout layout;
	unsigned char *records, *items, *out, *scratch;
	uint64_t n, chunk_n, window_n;
	struct digest input_digest, output_digest;
	uint64_t n_disorders;
};

struct records_options {
	struct bench_common_options common;
	uint64_t chunk_nbytes, window_nbytes; /* of each thread */
	const char *only;
};

struct record_bench {
	struct record_bench_thread threads[BENCH_MAX_THREADS];
	const struct records_options *options;
};

static uint64_t chunk_n_at(const struct record_bench_thread *thread, uint64_t start)
{
	const uint64_t n = thread->n - start;

	return n < thread->chunk_n ? n : thread->chunk_n;
}

static void run_copy(void *argument)
{
	struct record_bench_thread *thread = argument;

	memcpy(thread->items, thread->records, thread->n * thread->layout.record_nbytes);
}

/* As many elements as there are records, in chunks. */
static void run_sort_elements(void *argument)
{
	struct record_bench_thread *thread = argument;
	const uint32_t element_nbytes = thread->layout.element_nbytes;

	for (uint64_t i = 0; i < thread->n; i += thread->chunk_n)
		cpu_sort(&(struct sort_elements_op){ .elements = thread->out + i * element_nbytes,
						     .n = chunk_n_at(thread, i),
						     .scratch = thread->scratch,
						     .element_nbytes = element_nbytes });
}

static void run_sort(void *argument)
{
	struct record_bench_thread *thread = argument;
	const uint64_t record_nbytes = thread->layout.record_nbytes;

	thread->input_digest = thread->output_digest = (struct digest){ 0 };
	thread->n_disorders = 0;
	for (uint64_t i = 0; i < thread->n; i += thread->chunk_n) {
		struct sort_op_result result;
		struct digest read;

		cpu_sort_records(&(struct sort_op){ .layout = &thread->layout,
						    .records = thread->records + i * record_nbytes,
						    .items = thread->items + i * record_nbytes,
						    .n = chunk_n_at(thread, i),
						    .limit = UINT64_MAX,
						    .scratch = thread->scratch,
						    .ret_input_digest = &read,
						    .ret = &result });
		digest_add(&thread->input_digest, read);
		digest_add(&thread->output_digest, result.digest);
		thread->n_disorders += result.n_disorders;
	}
}

/* Cut all chunks before the i-th item of the first one. */
static void cut_chunks(const struct record_bench_thread *thread, const struct slice *chunks,
		       uint32_t k, uint64_t i, uint64_t *ret_cuts)
{
	const struct key_fields *keys = &thread->layout.item_keys;
	const uint32_t key_nbytes = (keys->key_nbytes + 7) / 8 * 8;
	unsigned char *key = malloc(key_nbytes);

	for (uint32_t offset = 0; offset < key_nbytes; offset += 8) {
		const uint64_t word = __builtin_bswap64(
			key_word(keys, thread->items + i * thread->layout.item_nbytes, offset));

		memcpy(key + offset, &word, 8);
	}
	cpu_cut_items(&(struct cut_op){ .layout = &thread->layout,
					.slices = chunks,
					.k = k,
					.key = key,
					.slice = k,
					.ret_cuts = ret_cuts });
	free(key);
}

/* Merge what is between the cuts. */
static uint64_t merge_window(struct record_bench_thread *thread, const struct slice *chunks,
			     uint32_t k, const uint64_t *begins, const uint64_t *ends,
			     uint64_t n_merged)
{
	const uint64_t item_nbytes = thread->layout.item_nbytes;
	unsigned char edges[2][MAX_ITEM_NBYTES];
	struct slice slices[MAX_CHUNKS];
	struct sort_op_result result;

	for (uint32_t i = 0; i < k; i++)
		slices[i] =
			(struct slice){ (const char *)chunks[i].elements + begins[i] * item_nbytes,
					ends[i] - begins[i] };
	cpu_merge_records(&(struct merge_op){ .layout = &thread->layout,
					      .slices = slices,
					      .k = k,
					      .out = thread->out + n_merged * item_nbytes,
					      .for_output = true,
					      .limit = UINT64_MAX,
					      .scratch = thread->scratch,
					      .ret_first = edges[0],
					      .ret_last = edges[1],
					      .ret = &result });
	digest_add(&thread->output_digest, result.digest);
	thread->n_disorders += result.n_disorders;
	return result.n;
}

static void run_merge(void *argument)
{
	struct record_bench_thread *thread = argument;
	uint64_t begins[MAX_CHUNKS] = { 0 }, ends[MAX_CHUNKS], n_merged = 0;
	struct slice chunks[MAX_CHUNKS];
	uint32_t k = 0;

	thread->output_digest = (struct digest){ 0 };
	thread->n_disorders = 0;
	for (uint64_t i = 0; i < thread->n; i += thread->chunk_n)
		chunks[k++] = (struct slice){ thread->items + i * thread->layout.item_nbytes,
					      chunk_n_at(thread, i) };
	for (uint64_t i = 0; n_merged < thread->n;) {
		i += thread->window_n / k + 1;
		if (i < thread->chunk_n)
			cut_chunks(thread, chunks, k, i, ends);
		else
			for (uint32_t j = 0; j < k; j++)
				ends[j] = chunks[j].n;
		n_merged += merge_window(thread, chunks, k, begins, ends, n_merged);
		memcpy(begins, ends, sizeof begins);
	}
}

static uint64_t run_all(struct record_bench *bench, void (*run)(void *thread))
{
	return bench_threads_run(run, bench->threads, sizeof bench->threads[0],
				 bench->options->common.n_threads);
}

static void check_digests(const struct record_bench *bench)
{
	for (unsigned i = 0; i < bench->options->common.n_threads; i++) {
		const struct record_bench_thread *thread = &bench->threads[i];

		if (thread->n_disorders ||
		    !digest_equal(thread->input_digest, thread->output_digest)) {
			fail(-1, "records are sorted wrongly: %" PRIu64 " disorders",
			     thread->n_disorders);
			exit(EXIT_TROUBLE);
		}
	}
}

static void make_layout(const struct record_case *record_case, struct layout *layout)
{
	struct key keys[MAX_KEYS];
	struct layout_params request = { .record_nbytes = record_case->record_nbytes,
					 .keys = keys,
					 .force_records = true };
	uint64_t offset = 0;

	for (; request.n_keys < MAX_KEYS && record_case->types[request.n_keys]; request.n_keys++) {
		struct key *key = &keys[request.n_keys];

		key_parse_type(record_case->types[request.n_keys], key);
		key->offset = offset;
		offset += key->nbytes;
	}
	layout_make(&request, layout);
}

static void generate_input(const struct record_case *record_case, uint64_t seed,
			   struct record_bench_thread *thread)
{
	for (uint64_t i = 0; i < thread->n; i++) {
		unsigned char *record = thread->records + i * record_case->record_nbytes;
		const uint64_t random = digest_mix64(i + (seed << 40));
		const uint64_t value = record_case->n_values ? random % record_case->n_values :
							       random;

		memset(record, 0x20, record_case->n_equal);
		for (uint64_t j = record_case->n_equal; j < record_case->record_nbytes; j++)
			record[j] = (unsigned char)(digest_mix64(value + j / 8) >> 8 * (j % 8));
	}
	for (uint64_t i = 0; i < thread->n * thread->layout.element_nbytes / 8; i++)
		((uint64_t *)thread->out)[i] = digest_mix64(i);
}

static void prepare_threads(struct record_bench *bench, const struct record_case *record_case)
{
	for (unsigned i = 0; i < bench->options->common.n_threads; i++) {
		struct record_bench_thread *thread = &bench->threads[i];

		layout_free(&thread->layout);
		make_layout(record_case, &thread->layout);
		thread->n = bench->options->common.nbytes / record_case->record_nbytes;
		thread->chunk_n = bench->options->chunk_nbytes / record_case->record_nbytes;
		thread->window_n = bench->options->window_nbytes / record_case->record_nbytes;
		generate_input(record_case, i, thread);
	}
}

static void print_row(const struct record_bench *bench, const char *label, uint64_t *times_ns)
{
	const struct bench_common_options *options = &bench->options->common;

	bench_threads_print(options, label, "record", bench->threads[0].n,
			    bench_median_ns(times_ns, options->n_repeats));
}

static void bench_record_case(struct record_bench *bench, const struct record_case *record_case)
{
	uint64_t copy_ns[BENCH_MAX_REPEATS], elements_ns[BENCH_MAX_REPEATS];
	uint64_t sort_ns[BENCH_MAX_REPEATS], merge_ns[BENCH_MAX_REPEATS];

	printf("%s\n", record_case->name);
	for (unsigned i = 0; i < bench->options->common.n_repeats; i++) {
		prepare_threads(bench, record_case);
		copy_ns[i] = run_all(bench, run_copy);
		elements_ns[i] = run_all(bench, run_sort_elements);
		sort_ns[i] = run_all(bench, run_sort);
		check_digests(bench);
		merge_ns[i] = run_all(bench, run_merge);
		check_digests(bench);
	}
	print_row(bench, "  copy", copy_ns);
	print_row(bench, "  sort elements", elements_ns);
	print_row(bench, "  sort records", sort_ns);
	print_row(bench, "  merge records", merge_ns);
}

static void allocate(struct record_bench *bench)
{
	for (unsigned i = 0; i < bench->options->common.n_threads; i++) {
		struct record_bench_thread *thread = &bench->threads[i];

		thread->records = bench_map_memory(bench->options->common.nbytes);
		thread->items = bench_map_memory(bench->options->common.nbytes);
		thread->out = bench_map_memory(2 * bench->options->common.nbytes);
		thread->scratch = bench_map_memory(8 * bench->options->chunk_nbytes);
	}
}

static const struct option_spec specs[] = {
	BENCH_ROW_THREADS,
	BENCH_ROW_REPEAT("runs, of which the median is printed (default 3)"),
	BENCH_ROW_SIZE("of the data of each thread (default 256M)"),
	{ .name = "chunk",
	  .argument = "SIZE",
	  .help = "that is sorted at once (default 32M)",
	  .parse = option_parse_size,
	  OPTION_MEMBER(struct records_options, chunk_nbytes) },
	{ .name = "window",
	  .argument = "SIZE",
	  .help = "that is merged at once (default 2M)",
	  .parse = option_parse_size,
	  OPTION_MEMBER(struct records_options, window_nbytes) },
	{ .name = "only",
	  .argument = "TEXT",
	  .help = "records whose name begins so",
	  .parse = option_parse_text,
	  OPTION_MEMBER(struct records_options, only) },
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage = "gsort-bench records [OPTION]...\n"
		 "Processor time of sorting and merging records, on several threads at once.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

int bench_records(int argc, char **argv)
{
	struct records_options options = {
		.common = { .nbytes = 256 << 20, .n_repeats = 3, .n_threads = 2 },
		.chunk_nbytes = 32 << 20,
		.window_nbytes = 2 << 20,
		.only = "",
	};
	struct record_bench *bench;
	int r = bench_parse_options(&tool, argc, argv, &options);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && (options.chunk_nbytes < 8192 ||
		       options.common.nbytes / options.chunk_nbytes > MAX_CHUNKS))
		r = fail(-EINVAL, "--chunk: at least 8 KiB, and 1/%d of --size", MAX_CHUNKS);
	if (r < 0)
		return EXIT_TROUBLE;
	bench = bench_map_memory(sizeof *bench);
	bench->options = &options;
	allocate(bench);
	for (unsigned i = 0; i < sizeof record_cases / sizeof record_cases[0]; i++)
		if (strncmp(record_cases[i].name, options.only, strlen(options.only)) == 0)
			bench_record_case(bench, &record_cases[i]);
	return EXIT_SORTED;
}
