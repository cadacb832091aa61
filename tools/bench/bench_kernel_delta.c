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
	uint32_t code_nbytes, n_blocks;
	size_t codes_nbytes;
	void *codes, *back, *packed, *scratch, *tables;
	uint32_t *sizes, *damaged; /* device memory */
	uint32_t *host_sizes;
	struct kernel_packed_block *blocks; /* host memory */
};

static int pack(void *context)
{
	const struct delta_bench *bench = context;

	return launch_delta_pack(
		&(struct delta_pack_task){ .codes = bench->codes,
					   .n = bench->n,
					   .code_nbytes = bench->code_nbytes,
					   .block_n = BLOCK_NBYTES / bench->code_nbytes,
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
								.code_nbytes = bench->code_nbytes,
								.damaged = bench->damaged,
								.tables = bench->tables },
				   NULL);
}

/* n sorted random codes. */
static void fill(struct delta_bench *bench)
{
	const size_t nbytes = kernel_sort_scratch_nbytes(bench->n, bench->code_nbytes);
	void *scratch = bench_alloc(nbytes);

	bench_check(reference_fill(bench->codes, bench->code_nbytes, bench->n, KEYS_RANDOM),
		    "fill");
	bench_check(launch_sort(bench->codes, bench->n, bench->code_nbytes, scratch, NULL), "sort");
	bench_check(cudaDeviceSynchronize(), "sort");
	cudaFree(scratch);
}

static void open_bench(struct delta_bench *bench, uint32_t code_nbytes, unsigned log2_nbytes)
{
	*bench = (struct delta_bench){ .code_nbytes = code_nbytes };
	bench->codes_nbytes = (size_t)1 << log2_nbytes;
	bench->n = bench->codes_nbytes / code_nbytes;
	bench->n_blocks = (uint32_t)(bench->codes_nbytes / BLOCK_NBYTES);
	bench->codes = bench_alloc(bench->codes_nbytes);
	bench->back = bench_alloc(bench->codes_nbytes);
	bench->packed = bench_alloc(bench->codes_nbytes);
	bench->scratch =
		bench_alloc(kernel_delta_pack_scratch_nbytes(bench->n, BLOCK_NBYTES / code_nbytes));
	bench->tables = bench_alloc(kernel_delta_unpack_nbytes(bench->n_blocks));
	bench->sizes = bench_alloc(bench->n_blocks * sizeof *bench->sizes);
	bench->damaged = bench_alloc(sizeof *bench->damaged);
	bench->host_sizes = malloc(bench->n_blocks * sizeof *bench->host_sizes);
	bench->blocks = malloc(bench->n_blocks * sizeof *bench->blocks);
	bench_check(bench->host_sizes && bench->blocks ? cudaSuccess : cudaErrorMemoryAllocation,
		    "malloc");
	fill(bench);
}

static void close_bench(struct delta_bench *bench)
{
	cudaFree(bench->codes);
	cudaFree(bench->back);
	cudaFree(bench->packed);
	cudaFree(bench->scratch);
	cudaFree(bench->tables);
	cudaFree(bench->sizes);
	cudaFree(bench->damaged);
	free(bench->host_sizes);
	free(bench->blocks);
}

/* The blocks as they were packed; returns the bytes of all of them. */
static uint64_t find_blocks(struct delta_bench *bench)
{
	const uint32_t block_n = BLOCK_NBYTES / bench->code_nbytes;
	uint64_t nbytes = 0;

	bench_check(cudaMemcpy(bench->host_sizes, bench->sizes,
			       bench->n_blocks * sizeof *bench->sizes, cudaMemcpyDeviceToHost),
		    "sizes");
	for (uint32_t i = 0; i < bench->n_blocks; i++) {
		bench->blocks[i] = (struct kernel_packed_block){
			.packed = (char *)bench->packed + nbytes,
			.codes = (char *)bench->back + (size_t)i * BLOCK_NBYTES,
			.packed_nbytes = bench->host_sizes[i],
			.n = block_n,
		};
		nbytes += bench->host_sizes[i];
	}
	return nbytes;
}

static void check_back(struct delta_bench *bench)
{
	bool differ;

	bench_check(reference_differ(bench->back, bench->codes, bench->codes_nbytes, &differ),
		    "compare");
	if (differ) {
		printf("WRONG: unpacked codes\n");
		exit(2);
	}
}

static void bench_codes(const struct bench_options *options, uint32_t code_nbytes,
			unsigned log2_nbytes)
{
	struct delta_bench bench;
	uint64_t packed_nbytes;
	float pack_ms, unpack_ms;

	open_bench(&bench, code_nbytes, log2_nbytes);
	pack_ms = bench_median_ms((struct bench_timed){ NULL, pack, &bench }, options->n_runs);
	packed_nbytes = find_blocks(&bench);
	unpack_ms = bench_median_ms((struct bench_timed){ NULL, unpack, &bench }, options->n_runs);
	check_back(&bench);
	printf("%2u B  %10zu B  to %5.1f %%  pack %8.3f ms %7.1f GB/s  unpack %8.3f ms %7.1f "
	       "GB/s\n",
	       code_nbytes, bench.codes_nbytes,
	       100.0 * (double)packed_nbytes / (double)bench.codes_nbytes, pack_ms,
	       (double)bench.codes_nbytes / pack_ms / 1e6, unpack_ms,
	       (double)bench.codes_nbytes / unpack_ms / 1e6);
	fflush(stdout);
	close_bench(&bench);
}

void bench_kernel_delta(const struct bench_options *options)
{
	for (uint32_t code_nbytes = 4; code_nbytes <= 16; code_nbytes *= 2) {
		if (options->element_nbytes && options->element_nbytes != code_nbytes)
			continue;
		bench_codes(options, code_nbytes, WINDOW_LOG2_NBYTES);
		bench_codes(options, code_nbytes, LONG_LOG2_NBYTES);
	}
}
