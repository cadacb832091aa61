/*
 * bench_kernels - time the kernels against CUB and Thrust (see bench_kernels.h)
 *
 * Every figure is the median of several runs, timed by events on the device. Before a run its
 * input is copied anew, outside of the timed part. The first run, which also warms up, is checked:
 * the output must be, bit for bit, what CUB's radix sort makes of the same input.
 */
#include "tools/bench/bench_kernels.h"

#include <cuda_runtime_api.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tools/bench/gpu_timing.h"
#include "tools/bench/bench_kernel_delta.h"
#include "tools/bench/bench_kernel_pairs.h"
#include "tools/bench/bench_kernel_records.h"
#include "tools/bench/bench_kernel_sort.h"
#include "tools/bench/bench_merge_variants.h"
#include "tools/bench/bench_cub.h"
#include "tools/bench/bench_splitters.h"

/* Merging k equal runs that lie side by side. */

struct merge_bench {
	uint64_t n;
	uint32_t k;
	struct kernel_slice *slices;
	uint64_t *input, *out;
	void *scratch;
};

static int merge_with_gsort(void *context)
{
	struct merge_bench *bench = context;

	return launch_merge(bench->slices, bench->k, 8, bench->out, bench->scratch, NULL);
}

/* `work` must make of the runs what the radix sort makes of them. */
static void verify_merge(struct merge_bench *bench, int (*run)(void *context))
{
	uint64_t *sorted = bench_device_alloc(bench->n * 8);
	size_t scratch_nbytes = 0;
	void *scratch;
	bool is_different;

	bench_check_cuda(cub_radix_sort(NULL, &scratch_nbytes, NULL, NULL, 8, bench->n), "size");
	scratch = bench_device_alloc(scratch_nbytes);
	bench_check_cuda(cub_radix_sort(scratch, &scratch_nbytes, bench->input, sorted, 8,
					bench->n),
			 "radix sort");
	bench_check_cuda(run(bench), "merge");
	bench_check_cuda(bench_compare_memory(bench->out, sorted, bench->n * 8, &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: merge of %u runs\n", (unsigned)bench->k);
		exit(2);
	}
	cudaFree(scratch);
	cudaFree(sorted);
}

static void merge_bench_open(struct merge_bench *bench, const struct bench_options *options,
			     uint32_t k)
{
	*bench = (struct merge_bench){
		.n = (uint64_t)1 << (options->log2_n ? options->log2_n : 29),
		.k = k,
	};
	bench->input = bench_device_alloc(bench->n * 8);
	bench->out = bench_device_alloc(bench->n * 8);
	bench->scratch = bench_device_alloc(kernel_merge_scratch_nbytes(k, bench->n, 8));
	bench->slices = calloc(k, sizeof *bench->slices);
	for (uint32_t i = 0; i < k; i++)
		bench->slices[i] =
			(struct kernel_slice){ bench->input + i * (bench->n / k), bench->n / k };
	bench_check_cuda(bench_fill_runs(bench->input, 8, bench->n, bench->n / k), "fill");
}

static void merge_bench_close(struct merge_bench *bench)
{
	free(bench->slices);
	cudaFree(bench->scratch);
	cudaFree(bench->out);
	cudaFree(bench->input);
}

static float bench_merge_kernel(struct merge_bench *bench, const struct bench_options *options,
				int (*run)(void *context), const char *label, float base_ms)
{
	float ms;

	verify_merge(bench, run);
	ms = bench_median_ms((struct bench_task){ NULL, run, bench }, options->n_runs);
	bench_print_row(label, 8, bench->n, ms, base_ms);
	return ms;
}

static void bench_merge(const struct bench_options *options)
{
	static const uint32_t run_counts[] = { 2, 4, 8, 16, 64, 256 };

	for (size_t i = 0; i < sizeof run_counts / sizeof run_counts[0]; i++) {
		struct merge_bench bench;
		char label[64];

		merge_bench_open(&bench, options, run_counts[i]);
		snprintf(label, sizeof label, "gsort, %u runs", (unsigned)run_counts[i]);
		bench_merge_kernel(&bench, options, merge_with_gsort, label, 0);
		merge_bench_close(&bench);
	}
}

/* The steps, on two runs. */

#define DEFINE_VARIANT(name)                                                                       \
	static int run_##name(void *context)                                                       \
	{                                                                                          \
		struct merge_bench *bench = context;                                               \
		const uint64_t half = bench->n / 2;                                                \
                                                                                                   \
		return name(bench->input, half, bench->input + half, half, bench->out);            \
	}

DEFINE_VARIANT(merge_variant_direct)
DEFINE_VARIANT(merge_variant_tiles)
DEFINE_VARIANT(merge_variant_circular)
DEFINE_VARIANT(thrust_merge)

static void bench_merge_variants(const struct bench_options *options)
{
	static const struct {
		int (*work)(void *context);
		const char *what;
	} variants[] = {
		{ run_merge_variant_direct, "a thread per piece" },
		{ run_merge_variant_tiles, "tiles in shared memory" },
		{ run_merge_variant_circular, "circular buffers" },
		{ merge_with_gsort, "gsort" },
	};
	struct merge_bench bench;
	float thrust_ms;

	merge_bench_open(&bench, options, 2);
	thrust_ms = bench_merge_kernel(&bench, options, run_thrust_merge, "thrust::merge", 0);
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		bench_merge_kernel(&bench, options, variants[i].work, variants[i].what, thrust_ms);
	merge_bench_close(&bench);
}

/* Where k runs are cut, for all tiles of the first pass and for one splitter. */

/* Cuts by one splitter are short: so many are timed together. */
enum { N_TIMED_CUTS = 32 };

struct splitters_bench {
	struct merge_bench merge;
	struct split_pass split;
	uint64_t *cuts;
	uint64_t key; /* another for each cut, or the cache would have all that it looks at */
};

static int run_split_exactly(void *context)
{
	return split_exactly(&((struct splitters_bench *)context)->split);
}

static int run_split_by_keys(void *context)
{
	return split_by_keys(&((struct splitters_bench *)context)->split);
}

static int run_cuts(void *context)
{
	struct splitters_bench *bench = context;
	int r = 0;

	for (unsigned i = 0; !r && i < N_TIMED_CUTS; i++) {
		bench->key += 0x9e3779b97f4a7c15u;
		r = launch_cut(bench->merge.slices, bench->merge.k, 8,
			       (struct kernel_key){ bench->key, 0 }, 0, bench->cuts, NULL);
	}
	return r;
}

/*
 * Random runs. Those of merge_bench_open() are so regular that the exact splitters' first guesses
 * are as good as right.
 */
static void fill_random_runs(struct merge_bench *merge)
{
	const uint64_t run_n = merge->slices[0].n;
	void *scratch = bench_device_alloc(kernel_sort_scratch_nbytes(run_n, 8));

	bench_check_cuda(bench_fill_keys(merge->input, 8, merge->n, KEYS_RANDOM), "fill");
	for (uint32_t i = 0; i < merge->k; i++)
		bench_check_cuda(launch_sort(merge->input + i * run_n, run_n, 8, scratch, NULL),
				 "sort");
	bench_check_cuda(cudaDeviceSynchronize(), "sort");
	cudaFree(scratch);
}

static void splitters_bench_open(struct splitters_bench *bench, const struct bench_options *options,
				 uint32_t k)
{
	bool is_correct;

	*bench = (struct splitters_bench){ 0 };
	merge_bench_open(&bench->merge, options, k);
	fill_random_runs(&bench->merge);
	bench_check_cuda(split_pass_open(&bench->split, bench->merge.input, bench->merge.n, k),
			 "splitters");
	bench->cuts = bench_device_alloc(k * sizeof *bench->cuts);
	bench_check_cuda(split_check(&bench->split, &is_correct), "splitters");
	if (!is_correct) {
		printf("WRONG: splitters of %u runs\n", (unsigned)k);
		exit(2);
	}
	verify_merge(&bench->merge, merge_with_gsort);
}

static void splitters_bench_close(struct splitters_bench *bench)
{
	cudaFree(bench->cuts);
	split_pass_close(&bench->split);
	merge_bench_close(&bench->merge);
}

static void print_splitters(const char *label, const struct splitters_bench *bench, float ms,
			    float merge_ms)
{
	printf("%-34s %4u runs  %8llu boundaries  %8.3f ms  %7.1f M/s  %5.1f %% of the merge\n",
	       label, (unsigned)bench->merge.k, (unsigned long long)bench->split.n_rows, ms,
	       (double)bench->split.n_rows / ms / 1e3, 100 * ms / merge_ms);
}

static void bench_splitters(const struct bench_options *options)
{
	static const uint32_t run_counts[] = { 16, 64, 256 };

	for (size_t i = 0; i < sizeof run_counts / sizeof run_counts[0]; i++) {
		struct splitters_bench bench;
		float merge_ms, cuts_ms;

		splitters_bench_open(&bench, options, run_counts[i]);
		merge_ms =
			bench_median_ms((struct bench_task){ NULL, merge_with_gsort, &bench.merge },
					options->n_runs);
		print_splitters(
			"by given keys, a thread per run", &bench,
			bench_median_ms((struct bench_task){ NULL, run_split_by_keys, &bench },
					options->n_runs),
			merge_ms);
		print_splitters(
			"gsort, exact, first pass", &bench,
			bench_median_ms((struct bench_task){ NULL, run_split_exactly, &bench },
					options->n_runs),
			merge_ms);
		cuts_ms = bench_median_ms((struct bench_task){ NULL, run_cuts, &bench },
					  options->n_runs);
		printf("%-34s %4u runs  %8u splitter    %8.1f us\n", "gsort, one splitter",
		       (unsigned)run_counts[i], 1, cuts_ms * 1e3 / N_TIMED_CUTS);
		splitters_bench_close(&bench);
	}
}

static const struct {
	const char *name;
	void (*bench)(const struct bench_options *options);
	const char *help;
} benches[] = {
	{ "sort", bench_kernel_sort, "random elements, against CUB" },
	{ "distributions", bench_kernel_distributions, "against random elements" },
	{ "merge", bench_merge, "k sorted runs" },
	{ "merge-steps", bench_merge_variants,
	  "two sorted runs: from simple to fast, against Thrust" },
	{ "splitters", bench_splitters, "where k sorted runs are cut" },
	{ "delta", bench_kernel_delta, "sorted codes to packed blocks, and back" },
	{ "pairs", bench_kernel_pairs, "keys of 8 bytes with 8 bytes, against CUB" },
	{ "records", bench_kernel_records, "records of 100 bytes, step by step, against copying" },
};

static int usage(void)
{
	printf("gsort-bench BENCH [--element=BYTES] [--log2=N] [--runs=N] [--no-reference]\n");
	for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
		printf("  %-14s %s\n", benches[i].name, benches[i].help);
	return 2;
}

int bench_kernels(int argc, char **argv)
{
	static const struct option long_options[] = { { "element", required_argument, NULL, 'e' },
						      { "log2", required_argument, NULL, 'l' },
						      { "runs", required_argument, NULL, 'n' },
						      { "no-reference", no_argument, NULL, 'x' },
						      { NULL, 0, NULL, 0 } };
	struct bench_options options = { .n_runs = 7, .compares_cub = true };
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		switch (c) {
		case 'e':
			options.element_nbytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'l':
			options.log2_n = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			options.n_runs = (unsigned)strtoul(optarg, NULL, 10);
			options.n_runs = options.n_runs < BENCH_MAX_RUNS ? options.n_runs :
									   BENCH_MAX_RUNS;
			break;
		case 'x':
			options.compares_cub = false;
			break;
		default:
			return usage();
		}
	for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
		if (strcmp(argv[0], benches[i].name) == 0) {
			benches[i].bench(&options);
			return 0;
		}
	return usage();
}
