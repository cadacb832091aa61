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

	bench_check(cudaMemcpyAsync(bench->elements, bench->input, bench->n * bench->element_nbytes,
				    cudaMemcpyDeviceToDevice, NULL),
		    "copy");
}

static int sort_ours(void *context)
{
	struct sort_bench *bench = context;

	return launch_sort(bench->elements, bench->n, bench->element_nbytes, bench->scratch, NULL);
}

static int sort_radix(void *context)
{
	struct sort_bench *bench = context;

	return reference_radix_sort(bench->scratch, &bench->scratch_nbytes, bench->input,
				    bench->sorted, bench->element_nbytes, bench->n);
}

static int sort_merge(void *context)
{
	struct sort_bench *bench = context;

	return reference_merge_sort(bench->scratch, &bench->scratch_nbytes, bench->elements,
				    bench->element_nbytes, bench->n);
}

static void sort_bench_open(struct sort_bench *bench, uint32_t element_nbytes, uint64_t n)
{
	const size_t nbytes = n * element_nbytes;
	size_t more = 0;

	*bench = (struct sort_bench){ .element_nbytes = element_nbytes, .n = n };
	bench->input = bench_alloc(nbytes);
	bench->elements = bench_alloc(nbytes);
	bench->sorted = bench_alloc(nbytes);
	bench->scratch_nbytes = kernel_sort_scratch_nbytes(n, element_nbytes);
	bench_check(reference_radix_sort(NULL, &more, NULL, NULL, element_nbytes, n), "size");
	bench->scratch_nbytes = more > bench->scratch_nbytes ? more : bench->scratch_nbytes;
	bench_check(reference_merge_sort(NULL, &more, NULL, element_nbytes, n), "size");
	bench->scratch_nbytes = more > bench->scratch_nbytes ? more : bench->scratch_nbytes;
	bench->scratch = bench_alloc(bench->scratch_nbytes);
}

static void sort_bench_close(struct sort_bench *bench)
{
	cudaFree(bench->scratch);
	cudaFree(bench->sorted);
	cudaFree(bench->elements);
	cudaFree(bench->input);
}

/* Sort once, compare with the radix sort; ends the program if they differ. */
static void sort_check(struct sort_bench *bench, enum keys keys)
{
	bool differ;

	bench_check(reference_fill(bench->input, bench->element_nbytes, bench->n, keys), "fill");
	bench_check(sort_radix(bench), "radix sort");
	sort_prepare(bench);
	bench_check(sort_ours(bench), "sort");
	bench_check(reference_differ(bench->elements, bench->sorted,
				     bench->n * bench->element_nbytes, &differ),
		    "compare");
	if (differ) {
		printf("WRONG: sort of %s, %u B, n %llu\n", key_names[keys],
		       (unsigned)bench->element_nbytes, (unsigned long long)bench->n);
		exit(2);
	}
}

static void bench_sort_size(const struct bench_options *options, uint32_t element_nbytes,
			    unsigned log2_n)
{
	struct sort_bench bench;
	float ours_ms, merge_ms = 0;

	sort_bench_open(&bench, element_nbytes, (uint64_t)1 << log2_n);
	sort_check(&bench, KEYS_RANDOM);
	if (options->references) {
		merge_ms = bench_median_ms((struct bench_timed){ sort_prepare, sort_merge, &bench },
					   options->n_runs);
		bench_print_row("cub::DeviceMergeSort", element_nbytes, bench.n, merge_ms, 0);
		bench_print_row("cub::DeviceRadixSort", element_nbytes, bench.n,
				bench_median_ms((struct bench_timed){ NULL, sort_radix, &bench },
						options->n_runs),
				merge_ms);
	}
	ours_ms = bench_median_ms((struct bench_timed){ sort_prepare, sort_ours, &bench },
				  options->n_runs);
	bench_print_row("gsort", element_nbytes, bench.n, ours_ms, merge_ms);
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
		for (enum keys keys = 0; keys < N_KEYS; keys++) {
			float ms;

			sort_check(&bench, keys);
			ms = bench_median_ms((struct bench_timed){ sort_prepare, sort_ours,
								   &bench },
					     options->n_runs);
			random_ms = keys == KEYS_RANDOM ? ms : random_ms;
			bench_print_row(key_names[keys], nbytes, bench.n, ms, random_ms);
		}
		sort_bench_close(&bench);
	}
}
