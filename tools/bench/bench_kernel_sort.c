/*
 * bench_kernel_sort - time sorting elements (see bench_kernel_sort.h)
 */
#include "tools/bench/bench_kernel_sort.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tools/bench/bench_cub.h"

struct sort_bench {
	uint32_t element_nbytes;
	uint64_t n;
	void *input, *elements, *sorted, *scratch;
	size_t scratch_nbytes;
};

static void sort_prepare(void *context)
{
	struct sort_bench *bench = context;

	bench_check_cuda(cudaMemcpyAsync(bench->elements, bench->input,
					 bench->n * bench->element_nbytes, cudaMemcpyDeviceToDevice,
					 NULL),
			 "copy");
}

static int sort_with_gsort(void *context)
{
	struct sort_bench *bench = context;

	return launch_sort(bench->elements, bench->n, bench->element_nbytes, bench->scratch, NULL);
}

static int sort_with_cub_radix(void *context)
{
	struct sort_bench *bench = context;

	return cub_radix_sort(bench->scratch, &bench->scratch_nbytes, bench->input, bench->sorted,
			      bench->element_nbytes, bench->n);
}

static int sort_with_cub_merge(void *context)
{
	struct sort_bench *bench = context;

	return cub_merge_sort(bench->scratch, &bench->scratch_nbytes, bench->elements,
			      bench->element_nbytes, bench->n);
}

static void sort_bench_open(struct sort_bench *bench, uint32_t element_nbytes, uint64_t n)
{
	const size_t nbytes = n * element_nbytes;
	size_t scratch_nbytes = 0;

	*bench = (struct sort_bench){ .element_nbytes = element_nbytes, .n = n };
	bench->input = bench_device_alloc(nbytes);
	bench->elements = bench_device_alloc(nbytes);
	bench->sorted = bench_device_alloc(nbytes);
	bench->scratch_nbytes = kernel_sort_scratch_nbytes(n, element_nbytes);
	bench_check_cuda(cub_radix_sort(NULL, &scratch_nbytes, NULL, NULL, element_nbytes, n),
			 "size");
	bench->scratch_nbytes = scratch_nbytes > bench->scratch_nbytes ? scratch_nbytes :
									 bench->scratch_nbytes;
	bench_check_cuda(cub_merge_sort(NULL, &scratch_nbytes, NULL, element_nbytes, n), "size");
	bench->scratch_nbytes = scratch_nbytes > bench->scratch_nbytes ? scratch_nbytes :
									 bench->scratch_nbytes;
	bench->scratch = bench_device_alloc(bench->scratch_nbytes);
}

static void sort_bench_close(struct sort_bench *bench)
{
	cudaFree(bench->scratch);
	cudaFree(bench->sorted);
	cudaFree(bench->elements);
	cudaFree(bench->input);
}

/* Sort once, compare with the radix sort; ends the program if they differ. */
static void sort_check(struct sort_bench *bench, enum key_distribution distribution)
{
	bool is_different;

	bench_check_cuda(bench_fill_keys(bench->input, bench->element_nbytes, bench->n,
					 distribution),
			 "fill");
	bench_check_cuda(sort_with_cub_radix(bench), "radix sort");
	sort_prepare(bench);
	bench_check_cuda(sort_with_gsort(bench), "sort");
	bench_check_cuda(bench_compare_memory(bench->elements, bench->sorted,
					      bench->n * bench->element_nbytes, &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: sort of %s, %u B, n %llu\n", key_distribution_names[distribution],
		       (unsigned)bench->element_nbytes, (unsigned long long)bench->n);
		exit(2);
	}
}

static void bench_sort_size(const struct bench_options *options, uint32_t element_nbytes,
			    unsigned log2_n)
{
	struct sort_bench bench;
	float gsort_ms, merge_ms = 0;

	sort_bench_open(&bench, element_nbytes, (uint64_t)1 << log2_n);
	sort_check(&bench, KEYS_RANDOM);
	if (options->compares_cub) {
		merge_ms = bench_median_ms((struct bench_task){ sort_prepare, sort_with_cub_merge,
								&bench },
					   options->n_runs);
		bench_print_row("cub::DeviceMergeSort", element_nbytes, bench.n, merge_ms, 0);
		bench_print_row(
			"cub::DeviceRadixSort", element_nbytes, bench.n,
			bench_median_ms((struct bench_task){ NULL, sort_with_cub_radix, &bench },
					options->n_runs),
			merge_ms);
	}
	gsort_ms = bench_median_ms((struct bench_task){ sort_prepare, sort_with_gsort, &bench },
				   options->n_runs);
	bench_print_row("gsort", element_nbytes, bench.n, gsort_ms, merge_ms);
	sort_bench_close(&bench);
}

void bench_kernel_sort(const struct bench_options *options)
{
	static const struct {
		uint32_t element_nbytes;
		unsigned log2_n;
	} table[] = { { 4, 28 }, { 4, 30 }, { 8, 28 }, { 8, 30 }, { 16, 28 } };

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (!options->element_nbytes || options->element_nbytes == table[i].element_nbytes)
			if (!options->log2_n || options->log2_n == table[i].log2_n)
				bench_sort_size(options, table[i].element_nbytes, table[i].log2_n);
}

void bench_kernel_distributions(const struct bench_options *options)
{
	const unsigned log2_n = options->log2_n ? options->log2_n : 28;

	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2) {
		struct sort_bench bench;
		float random_ms = 0;

		if (options->element_nbytes && options->element_nbytes != nbytes)
			continue;
		sort_bench_open(&bench, nbytes, (uint64_t)1 << log2_n);
		for (enum key_distribution distribution = 0; distribution < N_KEY_DISTRIBUTIONS;
		     distribution++) {
			float ms;

			sort_check(&bench, distribution);
			ms = bench_median_ms((struct bench_task){ sort_prepare, sort_with_gsort,
								  &bench },
					     options->n_runs);
			random_ms = distribution == KEYS_RANDOM ? ms : random_ms;
			bench_print_row(key_distribution_names[distribution], nbytes, bench.n, ms,
					random_ms);
		}
		sort_bench_close(&bench);
	}
}
