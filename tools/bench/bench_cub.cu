/*
 * bench_cub.cu - sorts and merges of CUB and Thrust with a C interface (see bench_device.h)
 */
#include "tools/bench/bench_device.h"

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <thrust/execution_policy.h>
#include <thrust/merge.h>

static constexpr unsigned THREADS = 256;
static constexpr unsigned BLOCKS = 132 * 16;

struct less {
	template <class T> __device__ bool operator()(const T &x, const T &y) const
	{
		return x < y;
	}
};

/* Store the upper bytes of the key. */
__device__ void store_key(char *elements, uint32_t element_nbytes, uint64_t i, uint128_t key)
{
	if (element_nbytes == 4)
		((uint32_t *)elements)[i] = (uint32_t)(key >> 96);
	else if (element_nbytes == 8)
		((uint64_t *)elements)[i] = (uint64_t)(key >> 64);
	else
		((uint128_t *)elements)[i] = key;
}

__global__ void fill(char *elements, uint32_t element_nbytes, uint64_t n,
		     key_distribution distribution)
{
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
	     i += THREADS * BLOCKS)
		store_key(elements, element_nbytes, i,
			  key_make(distribution, i, n, element_nbytes * 8));
}

__global__ void fill_runs(char *elements, uint32_t element_nbytes, uint64_t n, uint64_t run_n)
{
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
	     i += THREADS * BLOCKS) {
		const uint128_t step = ~(uint128_t)0 / run_n;
		const uint128_t random = digest_mix64(i + 1) >> 1;

		store_key(elements, element_nbytes, i, step * (i % run_n) + (step >> 63) * random);
	}
}

__global__ void compare_words(const uint32_t *a, const uint32_t *b, uint64_t n, int *is_different)
{
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
	     i += THREADS * BLOCKS)
		if (a[i] != b[i])
			*is_different = 1;
}

int bench_fill_keys(void *elements, uint32_t element_nbytes, uint64_t n,
		    enum key_distribution distribution)
{
	fill<<<BLOCKS, THREADS>>>((char *)elements, element_nbytes, n, distribution);
	return cudaGetLastError();
}

int bench_fill_runs(void *elements, uint32_t element_nbytes, uint64_t n, uint64_t run_n)
{
	fill_runs<<<BLOCKS, THREADS>>>((char *)elements, element_nbytes, n, run_n);
	return cudaGetLastError();
}

int bench_compare_memory(const void *a, const void *b, size_t nbytes, bool *ret_is_different)
{
	int *is_different, value = 1;
	int r = cudaMalloc(&is_different, sizeof *is_different);

	if (r)
		return r;
	cudaMemset(is_different, 0, sizeof *is_different);
	compare_words<<<BLOCKS, THREADS>>>((const uint32_t *)a, (const uint32_t *)b, nbytes / 4,
					   is_different);
	r = cudaMemcpy(&value, is_different, sizeof value, cudaMemcpyDeviceToHost);
	cudaFree(is_different);
	*ret_is_different = value != 0;
	return r;
}

template <class E>
static int radix_sort(void *scratch, size_t *scratch_nbytes, const void *elements, void *out,
		      uint64_t n)
{
	return cub::DeviceRadixSort::SortKeys(scratch, *scratch_nbytes, (const E *)elements,
					      (E *)out, n);
}

int cub_radix_sort(void *scratch, size_t *scratch_nbytes, const void *elements, void *out,
		   uint32_t element_nbytes, uint64_t n)
{
	switch (element_nbytes) {
	case 4:
		return radix_sort<uint32_t>(scratch, scratch_nbytes, elements, out, n);
	case 8:
		return radix_sort<uint64_t>(scratch, scratch_nbytes, elements, out, n);
	default:
		return radix_sort<uint128_t>(scratch, scratch_nbytes, elements, out, n);
	}
}

template <class E>
static int merge_sort(void *scratch, size_t *scratch_nbytes, void *elements, uint64_t n)
{
	return cub::DeviceMergeSort::SortKeys(scratch, *scratch_nbytes, (E *)elements, n, less());
}

int cub_merge_sort(void *scratch, size_t *scratch_nbytes, void *elements, uint32_t element_nbytes,
		   uint64_t n)
{
	switch (element_nbytes) {
	case 4:
		return merge_sort<uint32_t>(scratch, scratch_nbytes, elements, n);
	case 8:
		return merge_sort<uint64_t>(scratch, scratch_nbytes, elements, n);
	default:
		return merge_sort<uint128_t>(scratch, scratch_nbytes, elements, n);
	}
}

int thrust_merge(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b, uint64_t *out)
{
	thrust::merge(thrust::device, a, a + n_a, b, b + n_b, out);
	return cudaGetLastError();
}
