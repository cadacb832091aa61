/*
 * cuda_on_cpu.h - the part of CUDA that compiles the kernels' source as C++ for the CPU
 *
 * A file includes this first and then kernels/x.cu; so the kernels of x are ordinary functions. A
 * launch runs at once: one block after the other, the threads of a block in turns
 * (threads_on_cpu.h). The sanitizers find errors of threads: a missing __syncthreads() is a data
 * race for ThreadSanitizer, an index that is too large an overflow for AddressSanitizer.
 *
 * __syncthreads(): a barrier of the block's threads. Shuffles: slots that the lanes of a warp
 * share, between two barriers of the warp. Shared memory: a heap block of exactly the size that the
 * launch requests. Streams: each launch checks that stream and arguments belong to one device.
 *
 * Lanes do not run in lockstep: code that relies on it is wrong on a GPU, too.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "tests/kernels/threads_on_cpu.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

using std::max;
using std::min;

/* The architecture that kernels are compiled for. A file may define another. */
#ifndef EMULATED_ARCHITECTURE
#define EMULATED_ARCHITECTURE 90
#endif

typedef int cudaError_t;
static const cudaError_t cudaSuccess = 0;
static const int cudaFuncAttributeMaxDynamicSharedMemorySize = 0;
static const int cudaFuncAttributePreferredSharedMemoryCarveout = 1;
struct CUstream_st;

/* Defined in cuda_emulation/cuda_runtime.c. Tests may wrap it. */
extern "C" cudaError_t cudaGetLastError();
extern "C" void runtime_note_launch(CUstream_st *stream, const void *argument, size_t nbytes);
extern "C" cudaError_t cudaMemsetAsync(void *to, int byte, size_t nbytes, CUstream_st *);

template <class Kernel> static inline cudaError_t cudaFuncSetAttribute(Kernel, int, int)
{
	return cudaSuccess;
}

struct cudaFuncAttributes {
	int ptxVersion;
};

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);

template <class Kernel>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel *kernel)
{
	attributes->ptxVersion = EMULATED_ARCHITECTURE;
	return cudaFuncGetAttributes(attributes, (const void *)kernel);
}

/*
 * The values that lanes of a warp exchange: two sets of slots, used in turn, so one barrier is
 * enough.
 */
struct emulated_warp {
	emulated_barrier barrier;
	uint32_t slots[2][32];

	explicit emulated_warp(unsigned n_lanes) : barrier(n_lanes), slots()
	{
	}
};

enum { MAX_WARPS = 32 };

struct emulated_block {
	emulated_barrier barrier;
	emulated_warp *warps[MAX_WARPS];
	unsigned votes[2];
	unsigned char *shared;

	emulated_block(unsigned n_threads, size_t shared_nbytes)
	    : barrier(n_threads), warps(), votes()
	{
		shared = new unsigned char[shared_nbytes];
		for (unsigned i = 0; i * 32 < n_threads; i++)
			warps[i] = new emulated_warp(min(n_threads - i * 32, 32u));
	}
	~emulated_block()
	{
		for (emulated_warp *warp : warps)
			delete warp;
		delete[] shared;
	}
};

#define threadIdx (this_thread()->thread_index)
#define blockIdx (this_thread()->block_index)
#define blockDim (this_thread()->block_size)
#define gridDim (this_thread()->grid_size)

static inline void __syncthreads()
{
	this_thread()->block->barrier.wait();
}

/* Two counters are used in turn. The unused one is cleared between the two barriers. */
static inline int __syncthreads_or(int predicate)
{
	emulated_block *block = this_thread()->block;
	unsigned *votes = block->votes;
	const unsigned turn = this_thread()->vote_turn ^= 1;

	if (predicate)
		__atomic_fetch_or(&votes[turn], 1, __ATOMIC_RELAXED);
	block->barrier.wait();
	predicate = (int)__atomic_load_n(&votes[turn], __ATOMIC_RELAXED);
	if (threadIdx.x == 0)
		__atomic_store_n(&votes[turn ^ 1], 0, __ATOMIC_RELAXED);
	block->barrier.wait();
	return predicate;
}

static inline emulated_warp *this_warp()
{
	return this_thread()->block->warps[threadIdx.x / 32];
}

static inline uint32_t emulated_exchange(uint32_t value, unsigned source_lane)
{
	emulated_thread *self = this_thread();
	emulated_warp *warp = self->block->warps[self->thread_index.x / 32];
	uint32_t *slots = warp->slots[self->warp_turn ^= 1];

	slots[self->thread_index.x % 32] = value;
	warp->barrier.wait();
	return slots[source_lane];
}

/* Return the values of all lanes, combined by |. Lanes that the warp lacks never write. */
static inline uint32_t emulated_combine(uint32_t value)
{
	emulated_thread *self = this_thread();
	emulated_warp *warp = self->block->warps[self->thread_index.x / 32];
	uint32_t *slots = warp->slots[self->warp_turn ^= 1], combined = 0;

	slots[self->thread_index.x % 32] = value;
	warp->barrier.wait();
	for (unsigned lane = 0; lane < 32; lane++)
		combined |= slots[lane];
	return combined;
}

static inline void __syncwarp()
{
	this_warp()->barrier.wait();
}

static inline uint32_t __shfl_sync(unsigned, uint32_t value, unsigned source, unsigned width = 32)
{
	return emulated_exchange(value, threadIdx.x % 32 / width * width + source % width);
}

static inline uint32_t __shfl_xor_sync(unsigned, uint32_t value, unsigned distance)
{
	return emulated_exchange(value, (threadIdx.x % 32) ^ distance);
}

static inline int __any_sync(unsigned, int predicate)
{
	return (int)emulated_combine(predicate != 0);
}

static inline unsigned __ballot_sync(unsigned, int predicate)
{
	return emulated_combine(predicate ? 1u << threadIdx.x % 32 : 0);
}

static inline int __ffs(int x)
{
	return __builtin_ffs(x);
}

static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}

/* Return the bytes of y:x that the nibbles of the selector name, lowest first. */
static inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector)
{
	const uint64_t bytes = (uint64_t)y << 32 | x;
	uint32_t result = 0;

	for (unsigned i = 0; i < 4; i++)
		result |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
	return result;
}

static inline void __threadfence()
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline int __clzll(long long x)
{
	return x ? __builtin_clzll((unsigned long long)x) : 64;
}

static inline int __ffsll(long long x)
{
	return __builtin_ffsll(x);
}

template <class T> static inline T atomicExch(T *to, T value)
{
	return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);
}

template <class T> static inline T atomicAdd(T *to, T value)
{
	return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

template <class T> static inline T atomicMin(T *to, T value)
{
	T old = __atomic_load_n(to, __ATOMIC_RELAXED);

	while (value < old && !__atomic_compare_exchange_n(to, &old, value, true, __ATOMIC_RELAXED,
							   __ATOMIC_RELAXED))
		;
	return old;
}

template <class T> static inline T atomicMax(T *to, T value)
{
	T old = __atomic_load_n(to, __ATOMIC_RELAXED);

	while (old < value && !__atomic_compare_exchange_n(to, &old, value, true, __ATOMIC_RELAXED,
							   __ATOMIC_RELAXED))
		;
	return old;
}

template <class T> static inline T *shared_memory()
{
	return (T *)(void *)this_thread()->block->shared;
}

static inline void copy_async(void *shared, const void *from)
{
	memcpy(shared, from, 16);
}

static inline void copies_wait()
{
}

/* Run a kernel: each thread runs in all blocks, and threads meet between blocks. */
template <class Kernel, class... Args>
static inline void emulated_launch(CUstream_st *stream, Kernel kernel, unsigned n_blocks,
				   unsigned n_threads, size_t shared_nbytes, const Args &...args)
{
	(runtime_note_launch(stream, &args, sizeof args), ...);
	emulated_block block(n_threads, shared_nbytes);
	const auto run = [&] {
		for (unsigned b = 0; b < n_blocks; b++) {
			blockIdx.x = b;
			kernel(args...);
			block.barrier.wait();
		}
	};

	emulated_pool::launch({
		.run = [](const void *context) { (*(const decltype(run) *)context)(); },
		.context = &run,
		.block = &block,
		.n_threads = n_threads,
		.n_blocks = n_blocks,
	});
}

#define LAUNCH(kernel, n_blocks, n_threads, shared_nbytes, stream, ...)                            \
	emulated_launch(stream, kernel, n_blocks, n_threads, shared_nbytes, __VA_ARGS__)
