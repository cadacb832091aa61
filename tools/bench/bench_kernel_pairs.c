/*
 * bench_kernel_pairs - time sorting pairs (see bench_kernel_pairs.h)
 *
 * The radix sort has its keys and values in arrays of their own, as it likes them; the merge sorts
 * have pairs of 16 bytes. Both merge sorts are stable, so that they must agree bit for bit.
 */
#include "tools/bench/bench_kernel_pairs.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tools/bench/bench_cub.h"

enum { PAIR_NBYTES = 16 };

struct pairs_bench {
	uint64_t n;
	void *input, *pairs, *sorted, *scratch;
	size_t scratch_nbytes;
};

static void prepare(void *context)
{
	struct pairs_bench *bench = context;

	bench_check_cuda(cudaMemcpyAsync(bench->pairs, bench->input, bench->n * PAIR_NBYTES,
					 cudaMemcpyDeviceToDevice, NULL),
			 "copy");
}

static int sort_with_gsort(void *context)
{
	struct pairs_bench *bench = context;

	return launch_sort_pairs(bench->pairs, bench->n, bench->scratch, NULL);
}

static int sort_with_cub_merge(void *context)
{
	struct pairs_bench *bench = context;

	return cub_merge_sort_pairs(bench->scratch, &bench->scratch_nbytes, bench->pairs, bench->n);
}

/* The lower half of the input serves as keys, the upper as values. */
static int sort_with_cub_radix(void *context)
{
	struct pairs_bench *bench = context;

	return cub_radix_sort_pairs(bench->scratch, &bench->scratch_nbytes, bench->input,
				    bench->sorted, bench->n);
}

static void open_bench(struct pairs_bench *bench, uint64_t n)
{
	size_t scratch_nbytes = 0;

	*bench = (struct pairs_bench){ .n = n };
	bench->input = bench_device_alloc(n * PAIR_NBYTES);
	bench->pairs = bench_device_alloc(n * PAIR_NBYTES);
	bench->sorted = bench_device_alloc(n * PAIR_NBYTES);
	bench->scratch_nbytes = kernel_sort_pairs_scratch_nbytes(n);
	bench_check_cuda(cub_radix_sort_pairs(NULL, &scratch_nbytes, NULL, NULL, n), "size");
	bench->scratch_nbytes = scratch_nbytes > bench->scratch_nbytes ? scratch_nbytes :
									 bench->scratch_nbytes;
	bench_check_cuda(cub_merge_sort_pairs(NULL, &scratch_nbytes, NULL, n), "size");
	bench->scratch_nbytes = scratch_nbytes > bench->scratch_nbytes ? scratch_nbytes :
									 bench->scratch_nbytes;
	bench->scratch = bench_device_alloc(bench->scratch_nbytes);
	bench_check_cuda(bench_fill_keys(bench->input, PAIR_NBYTES, n, KEYS_RANDOM), "fill");
}

static void close_bench(struct pairs_bench *bench)
{
	cudaFree(bench->scratch);
	cudaFree(bench->sorted);
	cudaFree(bench->pairs);
	cudaFree(bench->input);
}

/* Nearly all keys are equal and carry different bytes, so the order of equal ones shows. */
static void check_order(struct pairs_bench *bench)
{
	bool is_different;

	bench_check_cuda(bench_fill_keys(bench->input, PAIR_NBYTES, bench->n, KEYS_SKEWED), "fill");
	prepare(bench);
	bench_check_cuda(sort_with_cub_merge(bench), "merge sort");
	bench_check_cuda(cudaMemcpyAsync(bench->sorted, bench->pairs, bench->n * PAIR_NBYTES,
					 cudaMemcpyDeviceToDevice, NULL),
			 "copy");
	prepare(bench);
	bench_check_cuda(sort_with_gsort(bench), "sort");
	bench_check_cuda(bench_compare_memory(bench->pairs, bench->sorted, bench->n * PAIR_NBYTES,
					      &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: sort of pairs\n");
		exit(2);
	}
	bench_check_cuda(bench_fill_keys(bench->input, PAIR_NBYTES, bench->n, KEYS_RANDOM), "fill");
}

static float print_sort(struct pairs_bench *bench, const struct bench_options *options,
			struct bench_task task, const char *label)
{
	const float ms = bench_median_ms(task, options->n_runs);

	printf("%-44s 8 + 8 B  %11llu  %8.3f ms  %7.2f Gpair/s\n", label,
	       (unsigned long long)bench->n, ms, (double)bench->n / ms / 1e6);
	fflush(stdout);
	return ms;
}

void bench_kernel_pairs(const struct bench_options *options)
{
	struct pairs_bench bench;
	float radix_ms, merge_ms, gsort_ms;

	open_bench(&bench, (uint64_t)1 << (options->log2_n ? options->log2_n : 28));
	check_order(&bench);
	merge_ms = print_sort(&bench, options,
			      (struct bench_task){ prepare, sort_with_cub_merge, &bench },
			      "cub::DeviceMergeSort::StableSortKeys, pairs");
	radix_ms = print_sort(&bench, options,
			      (struct bench_task){ NULL, sort_with_cub_radix, &bench },
			      "cub::DeviceRadixSort::SortPairs");
	gsort_ms = print_sort(&bench, options,
			      (struct bench_task){ prepare, sort_with_gsort, &bench }, "gsort");
	printf("%-44s %.2f x and %.2f x\n", "  against these", merge_ms / gsort_ms,
	       radix_ms / gsort_ms);
	close_bench(&bench);
}
