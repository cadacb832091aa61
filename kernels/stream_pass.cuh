/*
 * stream_pass - the common part of the kernels that read all records once: encode, decode, unique
 *
 * A fixed number of blocks processes tiles of records. If writing a tile could overwrite records
 * that another block has not read yet (records that grow or shrink in place), tiles are claimed in
 * order. Each block announces when it has loaded its tile, and waits for the tiles that its writes
 * would overwrite. Those tiles are always earlier, and their blocks do not wait before they load,
 * so there is no deadlock.
 */
#pragma once

#include "kernels/device.cuh"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

template <unsigned THREADS, unsigned THREAD_ITEMS> struct stream_pass_shape {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned items = THREAD_ITEMS;
	static constexpr unsigned n = THREADS * THREAD_ITEMS; /* records per tile */
	static constexpr unsigned n_warps = THREADS / WARP;
};
typedef stream_pass_shape<GSORT_STREAM_PASS> stream_pass;

/* Enough blocks to keep any GPU busy; each processes many tiles. */
static constexpr unsigned STREAM_PASS_MAX_BLOCKS = GSORT_MULTIPROCESSORS * 8;

/* Return the number of blocks for n objects, of which a block processes n_at_once in a step. */
static inline unsigned n_blocks_for(uint64_t n, uint64_t n_at_once = stream_pass::n_threads)
{
	const uint64_t n_blocks = divide_up(n, n_at_once);

	return (unsigned)(n_blocks < STREAM_PASS_MAX_BLOCKS ? n_blocks : STREAM_PASS_MAX_BLOCKS);
}

static inline uint64_t stream_pass_n_tiles(uint64_t n)
{
	return divide_up(n, stream_pass::n);
}

static inline unsigned stream_pass_n_blocks(uint64_t n)
{
	return n_blocks_for(n, stream_pass::n);
}

/* Scratch memory. stream_pass_clear() zeroes it, except for the edges. */
struct stream_pass_scratch {
	uint64_t *next_tile;
	uint64_t *status; /* one word per tile */
	void *edges;      /* the element before each tile; edges[0] is not used */
};

static inline struct stream_pass_scratch stream_pass_lay_out(void *memory, uint64_t n)
{
	struct stream_pass_scratch scratch;

	scratch.edges = memory;
	scratch.next_tile =
		(uint64_t *)((char *)memory + stream_pass_n_tiles(n) * sizeof(uint128_t));
	scratch.status = scratch.next_tile + 1;
	return scratch;
}

static inline int stream_pass_clear(struct stream_pass_scratch scratch, uint64_t n,
				    CUstream_st *stream)
{
	return (int)cudaMemsetAsync(scratch.next_tile, 0,
				    (1 + stream_pass_n_tiles(n)) * sizeof(uint64_t), stream);
}

template <class E>
__global__ void __launch_bounds__(WARP) copy_edges(const E *elements, uint64_t n_tiles, E *edges)
{
	const uint64_t tile = (uint64_t)blockIdx.x * WARP + threadIdx.x;

	if (tile > 0 && tile < n_tiles)
		edges[tile] = elements[tile * stream_pass::n - 1];
}

template <class E>
static int launch_edges(const void *elements, uint64_t n, struct stream_pass_scratch scratch,
			CUstream_st *stream)
{
	LAUNCH(copy_edges<E>, (unsigned)divide_up(stream_pass_n_tiles(n), WARP), WARP, 0, stream,
	       (const E *)elements, stream_pass_n_tiles(n), (E *)scratch.edges);
	return (int)cudaGetLastError();
}

/* The shared memory of a block. */
struct stream_pass_memory {
	uint64_t tile;
	uint64_t sums[stream_pass::n_warps];
};

/*
 * Claim the block's next tile; `tile` is the previous one, or UINT64_MAX. ordered: tiles are
 * claimed in order (see above).
 */
__device__ __forceinline__ uint64_t claim_tile(stream_pass_memory &memory,
					       const stream_pass_scratch &scratch, bool ordered,
					       uint64_t tile)
{
	if (!ordered)
		return tile == UINT64_MAX ? blockIdx.x : tile + gridDim.x;
	__syncthreads();
	if (threadIdx.x == 0)
		memory.tile = atomicAdd((unsigned long long *)scratch.next_tile, 1ull);
	__syncthreads();
	return memory.tile;
}

/*
 * Announce that the block has loaded `tile`, and wait until the tiles from `first` on are loaded.
 */
__device__ __forceinline__ void wait_for_tiles(const stream_pass_scratch &scratch, uint64_t tile,
					       uint64_t first)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicExch((unsigned long long *)&scratch.status[tile], 1ull);
	}
	for (uint64_t i = first + threadIdx.x; i < tile; i += stream_pass::n_threads)
		while (!atomicAdd((unsigned long long *)&scratch.status[i], 0ull))
			;
	__threadfence();
	__syncthreads();
}

/* Return the sum over the block (stream_pass::n_threads at most) to thread 0. */
__device__ __forceinline__ uint64_t block_sum(stream_pass_memory &memory, uint64_t value)
{
	value = lanes_sum(value, WARP);
	__syncthreads();
	if (threadIdx.x % WARP == 0)
		memory.sums[threadIdx.x / WARP] = value;
	__syncthreads();
	value = 0;
	for (unsigned i = 0; threadIdx.x == 0 && i < blockDim.x / WARP; i++)
		value += memory.sums[i];
	return value;
}

/* Add the digests of the block's threads to a digest in device memory. */
__device__ __forceinline__ void block_add_digest(stream_pass_memory &memory, uint64_t n,
						 uint64_t sum, struct digest *digest)
{
	n = block_sum(memory, n);
	sum = block_sum(memory, sum);
	if (threadIdx.x == 0) {
		atomicAdd((unsigned long long *)&digest->n_records, (unsigned long long)n);
		atomicAdd((unsigned long long *)&digest->sum, (unsigned long long)sum);
	}
}

/*
 * Encode a word that holds the bytes of a record, the first byte lowest, to an element, or decode
 * an element. There is one overload per element size.
 */

__device__ __forceinline__ uint32_t encode_word(uint32_t word, const key_encoding &encoding)
{
	return encode_raw_key_4(word, &encoding);
}

__device__ __forceinline__ uint64_t encode_word(uint64_t word, const key_encoding &encoding)
{
	return encode_raw_key_8(word, &encoding);
}

__device__ __forceinline__ uint128_t encode_word(uint128_t word, const key_encoding &encoding)
{
	return encode_raw_key_16(word, &encoding);
}

__device__ __forceinline__ uint32_t decode_word(uint32_t key, const key_encoding &encoding)
{
	return decode_raw_key_4(key, &encoding);
}

__device__ __forceinline__ uint64_t decode_word(uint64_t key, const key_encoding &encoding)
{
	return decode_raw_key_8(key, &encoding);
}

__device__ __forceinline__ uint128_t decode_word(uint128_t key, const key_encoding &encoding)
{
	return decode_raw_key_16(key, &encoding);
}

/*
 * Return the hash of a record from its word. Elements of 16 bytes hold records of 9 or more bytes.
 */
template <class E> __device__ __forceinline__ uint64_t digest_of_word(E word)
{
	if constexpr (sizeof(E) == 16)
		return digest_word16((uint64_t)word, (uint64_t)(word >> 64));
	else
		return digest_word8(word);
}

/* Widen an element to a key of 16 bytes. */
template <class E> __device__ __forceinline__ kernel_key widen(E element)
{
	kernel_key key;

	key.lo = (uint64_t)element;
	key.hi = (uint64_t)((uint128_t)element >> 64);
	return key;
}

/*
 * Copy bytes of any alignment between device and shared memory, in words where both sides allow it.
 * In shared memory they begin at bytes + skew(address), which is aligned like the address.
 */
__device__ __forceinline__ unsigned skew(const void *address)
{
	return (unsigned)((uintptr_t)address % 4);
}

__device__ __forceinline__ void copy_bytes(unsigned char *to, const unsigned char *from,
					   uint32_t nbytes)
{
	const uint32_t to_word = (4 - skew(to)) % 4;
	const uint32_t head = to_word < nbytes ? to_word : nbytes;
	const uint32_t n_words = (nbytes - head) / 4, tail = head + 4 * n_words;

	for (uint32_t i = threadIdx.x; i < head; i += stream_pass::n_threads)
		to[i] = from[i];
	for (uint32_t i = threadIdx.x; i < n_words; i += stream_pass::n_threads)
		((uint32_t *)(void *)(to + head))[i] =
			((const uint32_t *)(const void *)(from + head))[i];
	for (uint32_t i = tail + threadIdx.x; i < nbytes; i += stream_pass::n_threads)
		to[i] = from[i];
}
