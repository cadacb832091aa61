/*
 * bench_cpu - how fast are the kernels of the CPU back end
 *
 * Every kernel runs on each of the threads at once, each with data of its own, as in a sort;
 * the figures are medians of several runs. The results are checked by their digest and order.
 *
 * "pipeline" is what the sort of a whole file consists of: sort chunks, then merge all of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/cli/exit_status.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/device/cpu/unique.h"
#include "src/record/key_encode.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_median.h"
#include "tools/bench/timed_threads.h"
#include "tools/gen/gen.h"

/* What one thread works on; all memory is touched before it is timed. */
struct cpu_bench_thread {
	struct layout layout;
	void *elements; /* nbytes */
	void *output;   /* nbytes */
	void *scratch;  /* scratch_nbytes */
	struct slice *slices;
	uint64_t n, nbytes;
	size_t scratch_nbytes;
	uint64_t chunk_n;
	struct digest digest; /* of what was generated */
};

struct cpu_bench {
	struct cpu_bench_thread threads[BENCH_MAX_THREADS];
	const struct bench_common_options *options;
};

static uint64_t chunk_end(const struct cpu_bench_thread *thread, uint64_t start)
{
	return thread->n - start < thread->chunk_n ? thread->n : start + thread->chunk_n;
}

static void *element_at(const struct cpu_bench_thread *thread, void *elements, uint64_t i)
{
	return (char *)elements + i * thread->layout.element_nbytes;
}

static void run_sort(void *argument)
{
	struct cpu_bench_thread *thread = argument;

	for (uint64_t i = 0; i < thread->n; i = chunk_end(thread, i))
		cpu_sort(&(struct sort_elements_op){
			.elements = element_at(thread, thread->elements, i),
			.n = chunk_end(thread, i) - i,
			.scratch = thread->scratch,
			.element_nbytes = thread->layout.element_nbytes });
}

/* Merge the chunks into `other`. */
static void run_merge(void *argument)
{
	struct cpu_bench_thread *thread = argument;
	struct merge_elements_op op = { .slices = thread->slices,
					.element_nbytes = thread->layout.element_nbytes,
					.out = thread->output,
					.scratch = thread->scratch };

	for (uint64_t i = 0; i < thread->n; i = chunk_end(thread, i))
		thread->slices[op.k++] = (struct slice){ element_at(thread, thread->elements, i),
							 chunk_end(thread, i) - i };
	cpu_merge(&op);
}

static void run_encode(void *argument)
{
	struct cpu_bench_thread *thread = argument;
	struct digest digest = { 0 };

	key_encode_batch(&thread->layout, thread->output, thread->n, thread->elements, &digest);
}

static void run_decode(void *argument)
{
	struct cpu_bench_thread *thread = argument;
	struct decode_result result;

	key_decode_batch(&thread->layout, thread->elements, thread->n, false, thread->output,
			 &result);
}

static void run_decode_in_place(void *argument)
{
	struct cpu_bench_thread *thread = argument;
	struct decode_result result;

	key_decode_batch(&thread->layout, thread->elements, thread->n, false, thread->elements,
			 &result);
}

static void run_unique(void *argument)
{
	struct cpu_bench_thread *thread = argument;
	struct digest dropped;
	uint64_t n_unique;

	cpu_unique(&(struct unique_elements_op){ .elements = thread->elements,
						 .n = thread->n,
						 .element_nbytes = thread->layout.element_nbytes,
						 .layout = &thread->layout,
						 .ret_n = &n_unique,
						 .ret_dropped = &dropped });
}

static uint64_t run_all(struct cpu_bench *bench, void (*run)(void *thread))
{
	return bench_threads_run(run, bench->threads, sizeof bench->threads[0],
				 bench->options->n_threads);
}

static void print_row(const struct cpu_bench *bench, const char *label, double elapsed_ns)
{
	bench_threads_print(bench->options, label, "element", bench->threads[0].n, elapsed_ns);
}

/* Fresh data of `type` for all threads, the same for each call. */
static void generate_input(struct cpu_bench *bench, const char *type, enum gen_dist dist)
{
	for (unsigned i = 0; i < bench->options->n_threads; i++) {
		struct cpu_bench_thread *thread = &bench->threads[i];
		struct key key;
		struct gen gen;

		key_parse_type(type, &key);
		layout_make_key_only(&key, &thread->layout);
		thread->n = bench->options->nbytes / thread->layout.element_nbytes;
		gen_init(&thread->layout, dist, thread->n, i, &gen);
		gen_fill(&gen, 0, thread->n, thread->elements);
		thread->digest = (struct digest){ 0 };
		key_encode_batch(&thread->layout, thread->elements, thread->n, thread->elements,
				 &thread->digest);
	}
}

/* Are the sorted elements what was generated? */
static void check_result(struct cpu_bench *bench, bool in_output)
{
	for (unsigned i = 0; i < bench->options->n_threads; i++) {
		struct cpu_bench_thread *thread = &bench->threads[i];
		void *elements = in_output ? thread->output : thread->elements;
		const uint64_t step_n = in_output ? thread->n : thread->chunk_n;
		struct decode_result result;
		struct digest digest = { 0 };
		uint64_t n_disorders = 0;

		for (uint64_t j = 0; j < thread->n; j += step_n) {
			key_decode_batch(&thread->layout, element_at(thread, elements, j),
					 thread->n - j < step_n ? thread->n - j : step_n, false,
					 thread->output, &result);
			digest_add(&digest, result.digest);
			n_disorders += result.n_disorders;
		}
		if (n_disorders || !digest_equal(digest, thread->digest)) {
			fail(-1, "a kernel is wrong: %" PRIu64 " disorders", n_disorders);
			exit(EXIT_TROUBLE);
		}
	}
}

static void set_chunks(struct cpu_bench *bench, uint64_t chunk_nbytes)
{
	for (unsigned i = 0; i < bench->options->n_threads; i++) {
		struct cpu_bench_thread *thread = &bench->threads[i];

		thread->chunk_n = chunk_nbytes / thread->layout.element_nbytes;
	}
}

/* Sort chunks, merge them; a row for each and for both. */
static void bench_pipeline(struct cpu_bench *bench, const char *type, const char *dist_name,
			   uint64_t chunk_nbytes)
{
	uint64_t sort_ns[BENCH_MAX_REPEATS], merge_ns[BENCH_MAX_REPEATS];
	enum gen_dist dist = GEN_RANDOM;
	char label[64];

	gen_parse_dist(dist_name, &dist);
	for (unsigned i = 0; i < bench->options->n_repeats; i++) {
		generate_input(bench, type, dist);
		set_chunks(bench, chunk_nbytes);
		sort_ns[i] = run_all(bench, run_sort);
		if (i == 0)
			check_result(bench, false);
		merge_ns[i] = run_all(bench, run_merge);
		if (i == 0)
			check_result(bench, true);
	}
	snprintf(label, sizeof label, "%s %s, %" PRIu64 " KiB: sort", type, dist_name,
		 chunk_nbytes >> 10);
	print_row(bench, label, bench_median_ns(sort_ns, bench->options->n_repeats));
	snprintf(label, sizeof label, "  merge of %" PRIu64,
		 (bench->options->nbytes + chunk_nbytes - 1) / chunk_nbytes);
	print_row(bench, label, bench_median_ns(merge_ns, bench->options->n_repeats));
	print_row(bench, "  both",
		  bench_median_ns(sort_ns, bench->options->n_repeats) +
			  bench_median_ns(merge_ns, bench->options->n_repeats));
}

static void bench_operation(struct cpu_bench *bench, const char *type, const char *label,
			    void (*run)(void *thread), enum gen_dist dist)
{
	uint64_t times_ns[BENCH_MAX_REPEATS];
	char text[64];

	for (unsigned i = 0; i < bench->options->n_repeats; i++) {
		generate_input(bench, type, dist);
		times_ns[i] = run_all(bench, run);
	}
	snprintf(text, sizeof text, "%s %s", type, label);
	print_row(bench, text, bench_median_ns(times_ns, bench->options->n_repeats));
}

static void allocate(struct cpu_bench *bench)
{
	for (unsigned i = 0; i < bench->options->n_threads; i++) {
		struct cpu_bench_thread *thread = &bench->threads[i];
		const uint32_t k = (uint32_t)(bench->options->nbytes >> 12);

		thread->nbytes = bench->options->nbytes;
		thread->scratch_nbytes =
			cpu_merge_scratch_nbytes(k, bench->options->nbytes / 16, 16) +
			bench->options->nbytes;
		thread->elements = bench_map_memory(thread->nbytes);
		thread->output = bench_map_memory(thread->nbytes);
		thread->scratch = bench_map_memory(thread->scratch_nbytes);
		thread->slices = bench_map_memory(k * sizeof *thread->slices);
	}
}

static void bench_all(struct cpu_bench *bench)
{
	static const char *const types[] = { "u32", "u64", "u128" };
	static const char *const dists[] = { "sorted",        "reversed", "equal",
					     "two-keys",      "zipf",     "hundred-keys",
					     "nearly-sorted", "sawtooth", "organ-pipe",
					     "clustered" };

	for (uint64_t nbytes = 1 << 19; nbytes < bench->options->nbytes; nbytes *= 4)
		bench_pipeline(bench, "u64", "random", nbytes);
	for (unsigned i = 0; i < 3; i++)
		bench_pipeline(bench, types[i], "random", 1 << 21);
	for (unsigned i = 0; i < sizeof dists / sizeof dists[0]; i++)
		bench_pipeline(bench, "u64", dists[i], 1 << 21);
	for (unsigned i = 0; i < 3; i++) {
		bench_operation(bench, types[i], "encode", run_encode, GEN_RANDOM);
		bench_operation(bench, types[i], "decode", run_decode, GEN_RANDOM);
		bench_operation(bench, types[i], "decode in place", run_decode_in_place,
				GEN_RANDOM);
	}
	bench_operation(bench, "f64be", "decode", run_decode, GEN_RANDOM);
	bench_operation(bench, "b10", "decode", run_decode, GEN_RANDOM);
	bench_operation(bench, "u64", "unique, none equal", run_unique, GEN_SORTED);
	bench_operation(bench, "u64", "unique, all equal", run_unique, GEN_EQUAL);
}

struct cpu_options {
	struct bench_common_options common;
	const char *pipeline; /* NULL: everything */
};

static const struct option_spec specs[] = {
	BENCH_ROW_THREADS,
	BENCH_ROW_REPEAT("runs, of which the median is printed (default 3)"),
	BENCH_ROW_SIZE("of the data of each thread (default 64M)"),
	{ .name = "pipeline",
	  .argument = "TYPE,DIST,KIB",
	  .help = "only: sort chunks of KIB, then merge all of them",
	  .parse = option_parse_text,
	  OPTION_MEMBER(struct cpu_options, pipeline) },
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage = "gsort-bench cpu [OPTION]...\n"
		 "Processor time of the CPU kernels, on several threads at once.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

int bench_cpu(int argc, char **argv)
{
	struct cpu_options options = {
		.common = { .nbytes = 64 << 20, .n_repeats = 3, .n_threads = 2 },
	};
	struct cpu_bench *bench;
	char type[16], dist[16];
	unsigned long chunk_kib = 0;
	int r = bench_parse_options(&tool, argc, argv, &options);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && options.pipeline &&
	    (sscanf(options.pipeline, "%15[^,],%15[^,],%lu", type, dist, &chunk_kib) != 3 ||
	     chunk_kib == 0))
		r = fail(-EINVAL, "--pipeline: '%s' is not TYPE,DIST,KIB", options.pipeline);
	if (r < 0)
		return EXIT_TROUBLE;
	bench = bench_map_memory(sizeof *bench);
	bench->options = &options.common;
	allocate(bench);
	if (options.pipeline)
		bench_pipeline(bench, type, dist, chunk_kib << 10);
	else
		bench_all(bench);
	return EXIT_SORTED;
}
