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
#include "src/device/cpu/split.h"
#include "src/device/cpu/record_sort.h"
#include "src/device/cpu/sort.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_median.h"
#include "tools/bench/bench_threads.h"

enum { MAX_KEYS = 4, MAX_CHUNKS = 256, MAX_ITEM_NBYTES = 4096 };

/* A row of the table. */
struct scene {
	const char *name;
	uint64_t record_nbytes;
	const char *types[MAX_KEYS]; /* one key behind the other */
	uint64_t n_equal;            /* the first bytes of all records are the same */
	uint64_t n_values;           /* as many different records; 0: all are */
};

/* clang-format off */
static const struct scene scenes[] = {
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
struct worker {
	struct layout layout;
	unsigned char *records, *items, *out, *scratch;
	uint64_t n, chunk_n, window_n;
	struct digest read, written;
	uint64_t n_disorders;
};

struct records_options {
	struct bench_request whole;
	uint64_t chunk_nbytes, window_nbytes; /* of each thread */
	const char *only;
};

struct bench {
	struct worker workers[BENCH_MOST_THREADS];
	const struct records_options *options;
};

static uint64_t chunk_n(const struct worker *worker, uint64_t start)
{
	const uint64_t n = worker->n - start;

	return n < worker->chunk_n ? n : worker->chunk_n;
}

static void run_copy(void *argument)
{
	struct worker *worker = argument;

	memcpy(worker->items, worker->records, worker->n * worker->layout.record_nbytes);
}

/* As many elements as there are records, in chunks. */
static void run_sort_elements(void *argument)
{
	struct worker *worker = argument;
	const uint32_t element_nbytes = worker->layout.element_nbytes;

	for (uint64_t i = 0; i < worker->n; i += worker->chunk_n)
		cpu_sort(&(struct sort_elements_op){ .elements = worker->out + i * element_nbytes,
						     .n = chunk_n(worker, i),
						     .scratch = worker->scratch,
						     .element_nbytes = element_nbytes });
}

static void run_sort(void *argument)
{
	struct worker *worker = argument;
	const uint64_t record_nbytes = worker->layout.record_nbytes;

	worker->read = worker->written = (struct digest){ 0 };
	worker->n_disorders = 0;
	for (uint64_t i = 0; i < worker->n; i += worker->chunk_n) {
		struct arranged arranged;
		struct digest read;

		cpu_sort_records(&(struct sort_op){ .layout = &worker->layout,
						    .records = worker->records + i * record_nbytes,
						    .items = worker->items + i * record_nbytes,
						    .n = chunk_n(worker, i),
						    .limit = UINT64_MAX,
						    .scratch = worker->scratch,
						    .ret_read = &read,
						    .ret = &arranged });
		digest_add(&worker->read, read);
		digest_add(&worker->written, arranged.digest);
		worker->n_disorders += arranged.n_disorders;
	}
}

/* Cut all chunks before the i-th item of the first one. */
static void cut(const struct worker *worker, const struct slice *chunks, uint32_t k, uint64_t i,
		uint64_t *ret_cuts)
{
	const struct key_fields *keys = &worker->layout.item_keys;
	const uint32_t key_nbytes = (keys->key_nbytes + 7) / 8 * 8;
	unsigned char *key = malloc(key_nbytes);

	for (uint32_t at = 0; at < key_nbytes; at += 8) {
		const uint64_t word = __builtin_bswap64(
			key_word(keys, worker->items + i * worker->layout.item_nbytes, at));

		memcpy(key + at, &word, 8);
	}
	cpu_cut_items(&(struct cut_op){ .layout = &worker->layout,
					.slices = chunks,
					.k = k,
					.key = key,
					.slice = k,
					.ret_cuts = ret_cuts });
	free(key);
}

/* Merge what is between the cuts. */
static uint64_t merge_window(struct worker *worker, const struct slice *chunks, uint32_t k,
			     const uint64_t *from, const uint64_t *to, uint64_t n_merged)
{
	const uint64_t item_nbytes = worker->layout.item_nbytes;
	unsigned char edges[2][MAX_ITEM_NBYTES];
	struct slice slices[MAX_CHUNKS];
	struct arranged arranged;

	for (uint32_t i = 0; i < k; i++)
		slices[i] =
			(struct slice){ (const char *)chunks[i].elements + from[i] * item_nbytes,
					to[i] - from[i] };
	cpu_merge_records(&(struct merge_op){ .layout = &worker->layout,
					      .slices = slices,
					      .k = k,
					      .out = worker->out + n_merged * item_nbytes,
					      .for_output = true,
					      .limit = UINT64_MAX,
					      .scratch = worker->scratch,
					      .ret_first = edges[0],
					      .ret_last = edges[1],
					      .ret = &arranged });
	digest_add(&worker->written, arranged.digest);
	worker->n_disorders += arranged.n_disorders;
	return arranged.n;
}

static void run_merge(void *argument)
{
	struct worker *worker = argument;
	uint64_t from[MAX_CHUNKS] = { 0 }, to[MAX_CHUNKS], n_merged = 0;
	struct slice chunks[MAX_CHUNKS];
	uint32_t k = 0;

	worker->written = (struct digest){ 0 };
	worker->n_disorders = 0;
	for (uint64_t i = 0; i < worker->n; i += worker->chunk_n)
		chunks[k++] = (struct slice){ worker->items + i * worker->layout.item_nbytes,
					      chunk_n(worker, i) };
	for (uint64_t i = 0; n_merged < worker->n;) {
		i += worker->window_n / k + 1;
		if (i < worker->chunk_n)
			cut(worker, chunks, k, i, to);
		else
			for (uint32_t j = 0; j < k; j++)
				to[j] = chunks[j].n;
		n_merged += merge_window(worker, chunks, k, from, to, n_merged);
		memcpy(from, to, sizeof from);
	}
}

static uint64_t run_all(struct bench *bench, void (*run)(void *worker))
{
	return bench_threads_run(run, bench->workers, sizeof bench->workers[0],
				 bench->options->whole.n_threads);
}

static void check(const struct bench *bench)
{
	for (unsigned i = 0; i < bench->options->whole.n_threads; i++) {
		const struct worker *worker = &bench->workers[i];

		if (worker->n_disorders || !digest_equal(worker->read, worker->written)) {
			fail(-1, "records are sorted wrongly: %" PRIu64 " disorders",
			     worker->n_disorders);
			exit(EXIT_TROUBLE);
		}
	}
}

static void make_layout(const struct scene *scene, struct layout *layout)
{
	struct key keys[MAX_KEYS];
	struct layout_request request = { .record_nbytes = scene->record_nbytes,
					  .keys = keys,
					  .keeps_records = true };
	uint64_t offset = 0;

	for (; request.n_keys < MAX_KEYS && scene->types[request.n_keys]; request.n_keys++) {
		struct key *key = &keys[request.n_keys];

		key_parse_type(scene->types[request.n_keys], key);
		key->offset = offset;
		offset += key->nbytes;
	}
	layout_make(&request, layout);
}

static void fill(const struct scene *scene, uint64_t seed, struct worker *worker)
{
	for (uint64_t i = 0; i < worker->n; i++) {
		unsigned char *record = worker->records + i * scene->record_nbytes;
		const uint64_t random = digest_mix64(i + (seed << 40));
		const uint64_t value = scene->n_values ? random % scene->n_values : random;

		memset(record, 0x20, scene->n_equal);
		for (uint64_t j = scene->n_equal; j < scene->record_nbytes; j++)
			record[j] = (unsigned char)(digest_mix64(value + j / 8) >> 8 * (j % 8));
	}
	for (uint64_t i = 0; i < worker->n * worker->layout.element_nbytes / 8; i++)
		((uint64_t *)worker->out)[i] = digest_mix64(i);
}

static void set_up(struct bench *bench, const struct scene *scene)
{
	for (unsigned i = 0; i < bench->options->whole.n_threads; i++) {
		struct worker *worker = &bench->workers[i];

		layout_free(&worker->layout);
		make_layout(scene, &worker->layout);
		worker->n = bench->options->whole.nbytes / scene->record_nbytes;
		worker->chunk_n = bench->options->chunk_nbytes / scene->record_nbytes;
		worker->window_n = bench->options->window_nbytes / scene->record_nbytes;
		fill(scene, i, worker);
	}
}

static void print_row(const struct bench *bench, const char *what, uint64_t *times_ns)
{
	const struct bench_request *request = &bench->options->whole;

	bench_threads_print(request, what, "record", bench->workers[0].n,
			    bench_median_ns(times_ns, request->n_repeats));
}

static void bench_scene(struct bench *bench, const struct scene *scene)
{
	uint64_t copy_ns[BENCH_MOST_REPEATS], elements_ns[BENCH_MOST_REPEATS];
	uint64_t sort_ns[BENCH_MOST_REPEATS], merge_ns[BENCH_MOST_REPEATS];

	printf("%s\n", scene->name);
	for (unsigned i = 0; i < bench->options->whole.n_repeats; i++) {
		set_up(bench, scene);
		copy_ns[i] = run_all(bench, run_copy);
		elements_ns[i] = run_all(bench, run_sort_elements);
		sort_ns[i] = run_all(bench, run_sort);
		check(bench);
		merge_ns[i] = run_all(bench, run_merge);
		check(bench);
	}
	print_row(bench, "  copy", copy_ns);
	print_row(bench, "  sort elements", elements_ns);
	print_row(bench, "  sort records", sort_ns);
	print_row(bench, "  merge records", merge_ns);
}

static void allocate(struct bench *bench)
{
	for (unsigned i = 0; i < bench->options->whole.n_threads; i++) {
		struct worker *worker = &bench->workers[i];

		worker->records = bench_map_memory(bench->options->whole.nbytes);
		worker->items = bench_map_memory(bench->options->whole.nbytes);
		worker->out = bench_map_memory(2 * bench->options->whole.nbytes);
		worker->scratch = bench_map_memory(8 * bench->options->chunk_nbytes);
	}
}

static const struct option_spec specs[] = {
	BENCH_ROW_THREADS,
	BENCH_ROW_REPEAT("runs, of which the median is printed (default 3)"),
	BENCH_ROW_SIZE("of the data of each thread (default 256M)"),
	{ .name = "chunk",
	  .argument = "SIZE",
	  .help = "that is sorted at once (default 32M)",
	  .take = option_take_size,
	  OPTION_MEMBER(struct records_options, chunk_nbytes) },
	{ .name = "window",
	  .argument = "SIZE",
	  .help = "that is merged at once (default 2M)",
	  .take = option_take_size,
	  OPTION_MEMBER(struct records_options, window_nbytes) },
	{ .name = "only",
	  .argument = "TEXT",
	  .help = "records whose name begins so",
	  .take = option_take_text,
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
		.whole = { .nbytes = 256 << 20, .n_repeats = 3, .n_threads = 2 },
		.chunk_nbytes = 32 << 20,
		.window_nbytes = 2 << 20,
		.only = "",
	};
	struct bench *bench;
	int r = bench_request_parse(&tool, argc, argv, &options);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && (options.chunk_nbytes < 8192 ||
		       options.whole.nbytes / options.chunk_nbytes > MAX_CHUNKS))
		r = fail(-EINVAL, "--chunk: at least 8 KiB, and 1/%d of --size", MAX_CHUNKS);
	if (r < 0)
		return EXIT_TROUBLE;
	bench = bench_map_memory(sizeof *bench);
	bench->options = &options;
	allocate(bench);
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		if (strncmp(scenes[i].name, options.only, strlen(options.only)) == 0)
			bench_scene(bench, &scenes[i]);
	return EXIT_SORTED;
}
