/*
 * cut_and_sample - find where one splitter cuts sorted slices, and sample elements for splitters
 */
#include "kernels/device.cuh"
#include "kernels/kernels.h"
#include "src/device/co_rank.h"

/* Slices per launch, passed as the kernel's argument. */
static constexpr unsigned SLICES_MAX = 128;

struct slice_args {
	kernel_slice slices[SLICES_MAX];
};

/* Cut n slices. first: the number of the first one among all slices. */
template <class E>
__global__ void __launch_bounds__(SLICES_MAX)
	cut(slice_args args, uint32_t n, uint32_t first, E key, uint32_t slice, uint64_t *cuts)
{
	const uint32_t i = threadIdx.x;

	if (i < n)
		cuts[first + i] = co_rank_pivot<uint64_t>((const E *)args.slices[i].elements, 0,
							  args.slices[i].n, key, first + i < slice,
							  less_than());
}

template <class E>
static int cut_slices(const kernel_slice *slices, uint32_t k, E key, uint32_t slice, uint64_t *cuts,
		      CUstream_st *stream)
{
	int r = 0;

	for (uint32_t first = 0; !r && first < k; first += SLICES_MAX) {
		const uint32_t n = k - first < SLICES_MAX ? k - first : SLICES_MAX;
		slice_args args = {};

		for (uint32_t i = 0; i < n; i++)
			args.slices[i] = slices[first + i];
		LAUNCH(cut<E>, 1, SLICES_MAX, 0, stream, args, n, first, key, slice, cuts);
		r = (int)cudaGetLastError();
	}
	return r;
}

int launch_cut(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes,
	       struct kernel_key key, uint32_t slice, uint64_t *cuts, CUstream_st *stream)
{
	return dispatch_element(element_nbytes, [&](auto e) {
		return cut_slices(slices, k, (decltype(e))((uint128_t)key.hi << 64 | key.lo), slice,
				  cuts, stream);
	});
}

static constexpr unsigned SAMPLE_THREADS = 128;

template <class E>
__global__ void __launch_bounds__(SAMPLE_THREADS)
	sample(const E *elements, uint64_t n_keys, uint64_t stride, kernel_key *keys)
{
	const uint64_t i = (uint64_t)blockIdx.x * SAMPLE_THREADS + threadIdx.x;

	if (i < n_keys) {
		const uint128_t key = elements[i * stride];

		keys[i].lo = (uint64_t)key;
		keys[i].hi = (uint64_t)(key >> 64);
	}
}

template <class E>
static int sample_elements(const void *elements, uint64_t n_keys, uint64_t stride, kernel_key *keys,
			   CUstream_st *stream)
{
	LAUNCH(sample<E>, (unsigned)divide_up(n_keys, SAMPLE_THREADS), SAMPLE_THREADS, 0, stream,
	       (const E *)elements, n_keys, stride, keys);
	return (int)cudaGetLastError();
}

int launch_sample(const void *elements, uint64_t n, uint64_t stride, uint32_t element_nbytes,
		  struct kernel_key *keys, CUstream_st *stream)
{
	const uint64_t n_keys = divide_up(n, stride);

	if (n == 0)
		return 0;
	return dispatch_element(element_nbytes, [&](auto e) {
		return sample_elements<decltype(e)>(elements, n_keys, stride, keys, stream);
	});
}
