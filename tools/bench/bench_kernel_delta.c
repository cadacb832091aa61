/*
 * bench_kernel_delta - time packing sorted codes, and unpacking them (see bench_kernel_delta.h)
 */
#include "tools/bench/bench_kernel_delta.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tools/bench/bench_cub.h"

enum { BLOCK_NBYTES = 1 << 20, WINDOW_LOG2_NBYTES = 23, LONG_LOG2_NBYTES = 30 };

struct delta_bench {
	uint64_t n;
	uint32_t element_nbytes, n_blocks;
	size_t elements_nbytes;
	void *elements, *unpacked, *packed, *scratch, *tables;
	uint32_t *sizes, *damaged; /* device memory */
	uint32_t *host_sizes;
	struct kernel_packed_block *blocks; /* host memory */
};

static int pack(void *context)
{
	const struct delta_bench *bench = context;

	return launch_delta_pack(
		&(struct delta_pack_task){ .elements = bench->elements,
					   .n = bench->n,
					   .element_nbytes = bench->element_nbytes,
					   .block_n = BLOCK_NBYTES / bench->element_nbytes,
					   .packed = bench->packed,
					   .packed_nbytes = bench->sizes,
					   .scratch = bench->scratch },
		NULL);
}

static int unpack(void *context)
{
	const struct delta_bench *bench = context;

	return launch_delta_unpack(&(struct delta_unpack_task){ .blocks = bench->blocks,
								.n_blocks = bench->n_blocks,
								.element_nbytes =
									bench->element_nbytes,
								.damaged = bench->damaged,
								.tables = bench->tables },
				   NULL);
}

/* n sorted random codes. */
static void fill(struct delta_bench *bench)
{
	const size_t nbytes = kernel_sort_scratch_nbytes(bench->n, bench->element_nbytes);
	void *scratch = bench_device_alloc(nbytes);

	bench_check_cuda(bench_fill_keys(bench->elements, bench->element_nbytes, bench->n,
					 KEYS_RANDOM),
			 "fill");
	bench_check_cuda(launch_sort(bench->elements, bench->n, bench->element_nbytes, scratch,
				     NULL),
			 "sort");
	bench_check_cuda(cudaDeviceSynchronize(), "sort");
	cudaFree(scratch);
}

static void open_bench(struct delta_bench *bench, uint32_t element_nbytes, unsigned log2_nbytes)
{
	*bench = (struct delta_bench){ .element_nbytes = element_nbytes };
	bench->elements_nbytes = (size_t)1 << log2_nbytes;
	bench->n = bench->elements_nbytes / element_nbytes;
	bench->n_blocks = (uint32_t)(bench->elements_nbytes / BLOCK_NBYTES);
	bench->elements = bench_device_alloc(bench->elements_nbytes);
	bench->unpacked = bench_device_alloc(bench->elements_nbytes);
	bench->packed = bench_device_alloc(bench->elements_nbytes);
	bench->scratch = bench_device_alloc(
		kernel_delta_pack_scratch_nbytes(bench->n, BLOCK_NBYTES / element_nbytes));
	bench->tables = bench_device_alloc(kernel_delta_unpack_nbytes(bench->n_blocks));
	bench->sizes = bench_device_alloc(bench->n_blocks * sizeof *bench->sizes);
	bench->damaged = bench_device_alloc(sizeof *bench->damaged);
	bench->host_sizes = malloc(bench->n_blocks * sizeof *bench->host_sizes);
	bench->blocks = malloc(bench->n_blocks * sizeof *bench->blocks);
	bench_check_cuda(bench->host_sizes && bench->blocks ? cudaSuccess :
							      cudaErrorMemoryAllocation,
			 "malloc");
	fill(bench);
}

static void close_bench(struct delta_bench *bench)
{
	cudaFree(bench->elements);
	cudaFree(bench->unpacked);
	cudaFree(bench->packed);
	cudaFree(bench->scratch);
	cudaFree(bench->tables);
	cudaFree(bench->sizes);
	cudaFree(bench->damaged);
	free(bench->host_sizes);
	free(bench->blocks);
}

/* The blocks as they were packed; returns the bytes of all of them. */
static uint64_t locate_blocks(struct delta_bench *bench)
{
	const uint32_t block_n = BLOCK_NBYTES / bench->element_nbytes;
	uint64_t nbytes = 0;

	bench_check_cuda(cudaMemcpy(bench->host_sizes, bench->sizes,
				    bench->n_blocks * sizeof *bench->sizes, cudaMemcpyDeviceToHost),
			 "sizes");
	for (uint32_t i = 0; i < bench->n_blocks; i++) {
		bench->blocks[i] = (struct kernel_packed_block){
			.packed = (char *)bench->packed + nbytes,
			.elements = (char *)bench->unpacked + (size_t)i * BLOCK_NBYTES,
			.packed_nbytes = bench->host_sizes[i],
			.n = block_n,
		};
		nbytes += bench->host_sizes[i];
	}
	return nbytes;
}

static void check_unpacked(struct delta_bench *bench)
{
	bool is_different;

	bench_check_cuda(bench_compare_memory(bench->unpacked, bench->elements,
					      bench->elements_nbytes, &is_different),
			 "compare");
	if (is_different) {
		printf("WRONG: unpacked codes\n");
		exit(2);
	}
}

static void bench_elements(const struct bench_options *options, uint32_t element_nbytes,
			   unsigned log2_nbytes)
{
	struct delta_bench bench;
	uint64_t packed_nbytes;
	float pack_ms, unpack_ms;

	open_bench(&bench, element_nbytes, log2_nbytes);
	pack_ms = bench_median_ms((struct bench_task){ NULL, pack, &bench }, options->n_runs);
	packed_nbytes = locate_blocks(&bench);
	unpack_ms = bench_median_ms((struct bench_task){ NULL, unpack, &bench }, options->n_runs);
	check_unpacked(&bench);
	printf("%2u B  %10zu B  to %5.1f %%  pack %8.3f ms %7.1f GB/s  unpack %8.3f ms %7.1f "
	       "GB/s\n",
	       element_nbytes, bench.elements_nbytes,
	       100.0 * (double)packed_nbytes / (double)bench.elements_nbytes, pack_ms,
	       (double)bench.elements_nbytes / pack_ms / 1e6, unpack_ms,
	       (double)bench.elements_nbytes / unpack_ms / 1e6);
	fflush(stdout);
	close_bench(&bench);
}

void bench_kernel_delta(const struct bench_options *options)
{
	for (uint32_t element_nbytes = 4; element_nbytes <= 16; element_nbytes *= 2) {
		if (options->element_nbytes && options->element_nbytes != element_nbytes)
			continue;
		bench_elements(options, element_nbytes, WINDOW_LOG2_NBYTES);
		bench_elements(options, element_nbytes, LONG_LOG2_NBYTES);
	}
}
