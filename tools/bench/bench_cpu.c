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
#include "src/device/cpu/merge.h"
#include "src/device/cpu/sort.h"
#include "src/device/cpu/unique.h"
#include "src/record/key_encode.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_median.h"
#include "tools/bench/bench_threads.h"
#include "tools/gen/gen.h"

/* What one thread works on; all memory is touched before it is timed. */
struct worker {
	struct layout layout;
	void *elements; /* nbytes */
	void *other;    /* nbytes */
	void *scratch;  /* scratch_nbytes */
	struct slice *slices;
	uint64_t n, nbytes;
	size_t scratch_nbytes;
	uint64_t chunk_n;
	struct digest digest; /* of what was generated */
};

struct bench {
	struct worker workers[BENCH_MOST_THREADS];
	const struct bench_request *request;
};

static uint64_t chunk_end(const struct worker *worker, uint64_t start)
{
	return worker->n - start < worker->chunk_n ? worker->n : start + worker->chunk_n;
}

static void *at(const struct worker *worker, void *elements, uint64_t i)
{
	return (char *)elements + i * worker->layout.element_nbytes;
}

static void run_sort(void *argument)
{
	struct worker *worker = argument;

	for (uint64_t i = 0; i < worker->n; i = chunk_end(worker, i))
		cpu_sort(&(struct sort_elements_op){ .elements = at(worker, worker->elements, i),
						     .n = chunk_end(worker, i) - i,
						     .scratch = worker->scratch,
						     .element_nbytes =
							     worker->layout.element_nbytes });
}

/* Merge the chunks into `other`. */
static void run_merge(void *argument)
{
	struct worker *worker = argument;
	struct merge_elements_op op = { .slices = worker->slices,
					.element_nbytes = worker->layout.element_nbytes,
					.out = worker->other,
					.scratch = worker->scratch };

	for (uint64_t i = 0; i < worker->n; i = chunk_end(worker, i))
		worker->slices[op.k++] =
			(struct slice){ at(worker, worker->elements, i), chunk_end(worker, i) - i };
	cpu_merge(&op);
}

static void run_encode(void *argument)
{
	struct worker *worker = argument;
	struct digest digest = { 0 };

	codes_encode(&worker->layout, worker->other, worker->n, worker->elements, &digest);
}

static void run_decode(void *argument)
{
	struct worker *worker = argument;
	struct decode_result result;

	codes_decode(&worker->layout, worker->elements, worker->n, false, worker->other, &result);
}

static void run_decode_in_place(void *argument)
{
	struct worker *worker = argument;
	struct decode_result result;

	codes_decode(&worker->layout, worker->elements, worker->n, false, worker->elements,
		     &result);
}

static void run_unique(void *argument)
{
	struct worker *worker = argument;
	struct digest dropped;
	uint64_t n_left;

	cpu_unique(&(struct unique_elements_op){ .elements = worker->elements,
						 .n = worker->n,
						 .element_nbytes = worker->layout.element_nbytes,
						 .layout = &worker->layout,
						 .ret_n = &n_left,
						 .ret_dropped = &dropped });
}

static uint64_t run_all(struct bench *bench, void (*run)(void *worker))
{
	return bench_threads_run(run, bench->workers, sizeof bench->workers[0],
				 bench->request->n_threads);
}

static void print_row(const struct bench *bench, const char *what, double elapsed_ns)
{
	bench_threads_print(bench->request, what, "element", bench->workers[0].n, elapsed_ns);
}

/* Fresh data of `type` for all threads, the same for each call. */
static void fill(struct bench *bench, const char *type, enum gen_dist dist)
{
	for (unsigned i = 0; i < bench->request->n_threads; i++) {
		struct worker *worker = &bench->workers[i];
		struct key key;
		struct gen gen;

		key_parse_type(type, &key);
		layout_make_plain(&key, &worker->layout);
		worker->n = bench->request->nbytes / worker->layout.element_nbytes;
		gen_make(&worker->layout, dist, worker->n, i, &gen);
		gen_fill(&gen, 0, worker->n, worker->elements);
		worker->digest = (struct digest){ 0 };
		codes_encode(&worker->layout, worker->elements, worker->n, worker->elements,
			     &worker->digest);
	}
}

/* Are the sorted elements what was generated? */
static void check(struct bench *bench, bool in_other)
{
	for (unsigned i = 0; i < bench->request->n_threads; i++) {
		struct worker *worker = &bench->workers[i];
		void *elements = in_other ? worker->other : worker->elements;
		const uint64_t step_n = in_other ? worker->n : worker->chunk_n;
		struct decode_result result;
		struct digest digest = { 0 };
		uint64_t n_disorders = 0;

		for (uint64_t j = 0; j < worker->n; j += step_n) {
			codes_decode(&worker->layout, at(worker, elements, j),
				     worker->n - j < step_n ? worker->n - j : step_n, false,
				     worker->other, &result);
			digest_add(&digest, result.digest);
			n_disorders += result.n_disorders;
		}
		if (n_disorders || !digest_equal(digest, worker->digest)) {
			fail(-1, "a kernel is wrong: %" PRIu64 " disorders", n_disorders);
			exit(EXIT_TROUBLE);
		}
	}
}

static void set_chunks(struct bench *bench, uint64_t chunk_nbytes)
{
	for (unsigned i = 0; i < bench->request->n_threads; i++) {
		struct worker *worker = &bench->workers[i];

		worker->chunk_n = chunk_nbytes / worker->layout.element_nbytes;
	}
}

/* Sort chunks, merge them; a row for each and for both. */
static void bench_pipeline(struct bench *bench, const char *type, const char *dist_name,
			   uint64_t chunk_nbytes)
{
	uint64_t sort_ns[BENCH_MOST_REPEATS], merge_ns[BENCH_MOST_REPEATS];
	enum gen_dist dist = GEN_RANDOM;
	char what[64];

	gen_parse_dist(dist_name, &dist);
	for (unsigned i = 0; i < bench->request->n_repeats; i++) {
		fill(bench, type, dist);
		set_chunks(bench, chunk_nbytes);
		sort_ns[i] = run_all(bench, run_sort);
		if (i == 0)
			check(bench, false);
		merge_ns[i] = run_all(bench, run_merge);
		if (i == 0)
			check(bench, true);
	}
	snprintf(what, sizeof what, "%s %s, %" PRIu64 " KiB: sort", type, dist_name,
		 chunk_nbytes >> 10);
	print_row(bench, what, bench_median_ns(sort_ns, bench->request->n_repeats));
	snprintf(what, sizeof what, "  merge of %" PRIu64,
		 (bench->request->nbytes + chunk_nbytes - 1) / chunk_nbytes);
	print_row(bench, what, bench_median_ns(merge_ns, bench->request->n_repeats));
	print_row(bench, "  both",
		  bench_median_ns(sort_ns, bench->request->n_repeats) +
			  bench_median_ns(merge_ns, bench->request->n_repeats));
}

static void bench_simple(struct bench *bench, const char *type, const char *what,
			 void (*run)(void *worker), enum gen_dist dist)
{
	uint64_t times_ns[BENCH_MOST_REPEATS];
	char text[64];

	for (unsigned i = 0; i < bench->request->n_repeats; i++) {
		fill(bench, type, dist);
		times_ns[i] = run_all(bench, run);
	}
	snprintf(text, sizeof text, "%s %s", type, what);
	print_row(bench, text, bench_median_ns(times_ns, bench->request->n_repeats));
}

static void allocate(struct bench *bench)
{
	for (unsigned i = 0; i < bench->request->n_threads; i++) {
		struct worker *worker = &bench->workers[i];
		const uint32_t k = (uint32_t)(bench->request->nbytes >> 12);

		worker->nbytes = bench->request->nbytes;
		worker->scratch_nbytes =
			cpu_merge_scratch_nbytes(k, bench->request->nbytes / 16, 16) +
			bench->request->nbytes;
		worker->elements = bench_map_memory(worker->nbytes);
		worker->other = bench_map_memory(worker->nbytes);
		worker->scratch = bench_map_memory(worker->scratch_nbytes);
		worker->slices = bench_map_memory(k * sizeof *worker->slices);
	}
}

static void bench_all(struct bench *bench)
{
	static const char *const types[] = { "u32", "u64", "u128" };
	static const char *const dists[] = { "sorted",        "reversed", "equal",
					     "two-keys",      "zipf",     "hundred-keys",
					     "nearly-sorted", "sawtooth", "organ-pipe",
					     "clustered" };

	for (uint64_t nbytes = 1 << 19; nbytes < bench->request->nbytes; nbytes *= 4)
		bench_pipeline(bench, "u64", "random", nbytes);
	for (unsigned i = 0; i < 3; i++)
		bench_pipeline(bench, types[i], "random", 1 << 21);
	for (unsigned i = 0; i < sizeof dists / sizeof dists[0]; i++)
		bench_pipeline(bench, "u64", dists[i], 1 << 21);
	for (unsigned i = 0; i < 3; i++) {
		bench_simple(bench, types[i], "encode", run_encode, GEN_RANDOM);
		bench_simple(bench, types[i], "decode", run_decode, GEN_RANDOM);
		bench_simple(bench, types[i], "decode in place", run_decode_in_place, GEN_RANDOM);
	}
	bench_simple(bench, "f64be", "decode", run_decode, GEN_RANDOM);
	bench_simple(bench, "b10", "decode", run_decode, GEN_RANDOM);
	bench_simple(bench, "u64", "unique, none equal", run_unique, GEN_SORTED);
	bench_simple(bench, "u64", "unique, all equal", run_unique, GEN_EQUAL);
}

struct cpu_options {
	struct bench_request whole;
	const char *pipeline; /* NULL: everything */
};

static const struct option_spec specs[] = {
	BENCH_ROW_THREADS,
	BENCH_ROW_REPEAT("runs, of which the median is printed (default 3)"),
	BENCH_ROW_SIZE("of the data of each thread (default 64M)"),
	{ .name = "pipeline",
	  .argument = "TYPE,DIST,KIB",
	  .help = "only: sort chunks of KIB, then merge all of them",
	  .take = option_take_text,
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
		.whole = { .nbytes = 64 << 20, .n_repeats = 3, .n_threads = 2 },
	};
	struct bench *bench;
	char type[16], dist[16];
	unsigned long chunk_kib = 0;
	int r = bench_request_parse(&tool, argc, argv, &options);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && options.pipeline &&
	    (sscanf(options.pipeline, "%15[^,],%15[^,],%lu", type, dist, &chunk_kib) != 3 ||
	     chunk_kib == 0))
		r = fail(-EINVAL, "--pipeline: '%s' is not TYPE,DIST,KIB", options.pipeline);
	if (r < 0)
		return EXIT_TROUBLE;
	bench = bench_map_memory(sizeof *bench);
	bench->request = &options.whole;
	allocate(bench);
	if (options.pipeline)
		bench_pipeline(bench, type, dist, chunk_kib << 10);
	else
		bench_all(bench);
	return EXIT_SORTED;
}
