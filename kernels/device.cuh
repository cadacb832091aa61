/*
 * device - the machine-dependent parts of the kernels
 *
 * The kernels are also compiled as C++ for the CPU (tests/kernels/cuda_on_cpu.h is included first
 * and defines the CUDA keywords used here). All differences are in this file: kernel launches,
 * shared memory, and a few collective operations over the threads of a warp.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/record/key_encoding.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#define LAUNCH(kernel, n_blocks, n_threads, shared_nbytes, stream, ...)                            \
	kernel<<<(n_blocks), (n_threads), (shared_nbytes), (stream)>>>(__VA_ARGS__)

/* Return the block's shared memory. Each kernel keeps all shared data in one struct there. */
template <class T> __device__ __forceinline__ T *shared_memory()
{
	extern __shared__ __align__(16) unsigned char shared_bytes[];

	return reinterpret_cast<T *>(shared_bytes);
}

/* Start to copy 16 bytes from device memory to shared memory. Both addresses are aligned to 16. */
__device__ __forceinline__ void copy_async(void *shared, const void *from)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
		     :
		     : "r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(from)
		     : "memory");
#else
	*(uint128_t *)shared = *(const uint128_t *)from;
#endif
}

/* Wait for the copies that this thread has started. Other threads see the data after a barrier. */
__device__ __forceinline__ void copies_wait()
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}
#endif

/*
 * The shared memory that a block may use depends on the code that the device runs: 64 KiB for
 * compute capability 7.5, 99 KiB or more from 8.0 on. Device code knows its architecture at compile
 * time. The host must ask (kernels_architecture()), because each function exists once per
 * architecture and a device may run code for an older one.
 */
enum shared_limit { SHARED_LIMIT_64K, SHARED_LIMIT_99K };

static constexpr GSORT_HD enum shared_limit shared_limit_of(int architecture)
{
	return architecture < 80 ? SHARED_LIMIT_64K : SHARED_LIMIT_99K;
}

static constexpr GSORT_HD size_t shared_limit_nbytes(enum shared_limit limit)
{
	return (limit == SHARED_LIMIT_64K ? 64 : 99) << 10;
}

#if defined(__CUDA_ARCH__)
static constexpr enum shared_limit SHARED_LIMIT = shared_limit_of(__CUDA_ARCH__ / 10);
#elif defined(EMULATED_ARCHITECTURE)
static constexpr enum shared_limit SHARED_LIMIT = shared_limit_of(EMULATED_ARCHITECTURE);
#else
static constexpr enum shared_limit SHARED_LIMIT =
	SHARED_LIMIT_99K; /* for the host pass, which does not run this code */
#endif

/*
 * Call `function` with a value of the element type of this size, on the host:
 *
 *	dispatch_element(nbytes, [&](auto e) { return sort((decltype(e) *)elements, n); });
 */
template <class F> auto dispatch_element(uint32_t element_nbytes, F function)
{
	switch (element_nbytes) {
	case 4:
		return function(uint32_t{});
	case 8:
		return function(uint64_t{});
	default:
		return function(uint128_t{});
	}
}

static constexpr unsigned WARP = 32;
static constexpr unsigned ALL_LANES = 0xffffffffu;

template <class T> struct unsigned_words {
	uint32_t word[sizeof(T) / 4];
};

/* Broadcast a value of any size from lane `source` of each group of `width` lanes. */
template <class T>
__device__ __forceinline__ T lane_broadcast(T value, unsigned source, unsigned width)
{
	unsigned_words<T> words;

	__builtin_memcpy(&words, &value, sizeof value);
#pragma unroll
	for (unsigned i = 0; i < sizeof(T) / 4; i++)
		words.word[i] = __shfl_sync(ALL_LANES, words.word[i], source, width);
	__builtin_memcpy(&value, &words, sizeof value);
	return value;
}

/* Exchange a value of any size with the lane whose number differs in the bits of `distance`. */
template <class T> __device__ __forceinline__ T lane_exchange(T value, unsigned distance)
{
	unsigned_words<T> words;

	__builtin_memcpy(&words, &value, sizeof value);
#pragma unroll
	for (unsigned i = 0; i < sizeof(T) / 4; i++)
		words.word[i] = __shfl_xor_sync(ALL_LANES, words.word[i], distance);
	__builtin_memcpy(&value, &words, sizeof value);
	return value;
}

/* Return the sum, minimum or maximum over each group of `width` lanes, to every lane. */
template <class T> __device__ __forceinline__ T lanes_sum(T value, unsigned width)
{
	for (unsigned distance = width / 2; distance; distance /= 2)
		value += lane_exchange(value, distance);
	return value;
}

template <class T> __device__ __forceinline__ T lanes_min(T value, unsigned width)
{
	for (unsigned distance = width / 2; distance; distance /= 2) {
		const T other = lane_exchange(value, distance);

		value = other < value ? other : value;
	}
	return value;
}

template <class T> __device__ __forceinline__ T lanes_max(T value, unsigned width)
{
	for (unsigned distance = width / 2; distance; distance /= 2) {
		const T other = lane_exchange(value, distance);

		value = value < other ? other : value;
	}
	return value;
}

/* Return the sum of the values of the lanes before this one in its group of `width`. */
template <class T> __device__ __forceinline__ T lanes_exclusive_sum(T value, unsigned width)
{
	const unsigned lane = threadIdx.x % width;
	T sum = value;

	for (unsigned distance = 1; distance < width; distance *= 2) {
		const T other =
			lane_broadcast(sum, lane >= distance ? lane - distance : lane, width);

		sum += lane >= distance ? other : (T)0;
	}
	return sum - value;
}

__device__ __forceinline__ unsigned bit_length(uint64_t x)
{
	return 64 - __clzll((long long)x);
}

__device__ __forceinline__ unsigned bit_length(uint128_t x)
{
	const uint64_t high = (uint64_t)(x >> 64);

	return high ? 64 + bit_length(high) : bit_length((uint64_t)x);
}

/* The unsigned integer type of NBYTES. */
template <unsigned NBYTES> struct element_of;
template <> struct element_of<4> {
	typedef uint32_t type;
};
template <> struct element_of<8> {
	typedef uint64_t type;
};
template <> struct element_of<16> {
	typedef uint128_t type;
};

struct less_than {
	template <class T> GSORT_HD bool operator()(const T &x, const T &y) const
	{
		return x < y;
	}
};

static constexpr GSORT_HD uint64_t divide_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

static constexpr GSORT_HD uint64_t round_up(uint64_t n, uint64_t to)
{
	return divide_up(n, to) * to;
}
