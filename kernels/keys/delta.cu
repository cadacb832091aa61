/*
 * delta - pack sorted elements into blocks and unpack them (format: src/record/delta_pack.h)
 *
 * A warp processes a few neighbouring miniblocks, independently of other warps: it adds up the
 * widths before its first miniblock to find where it begins. The widths are one byte per miniblock,
 * and all warps of a block of threads read them from the L1 cache.
 *
 * Packing takes three steps, because the start of a block depends on the sizes of earlier blocks:
 *
 *	measure               the width of each miniblock, and the bytes of each block
 *	assign_block_offsets  the start of each block; one that does not shrink is stored as it is
 *	pack                  the bits
 *
 * Each lane makes whole words of 32 bits: it gathers the differences with bits in its word from
 * shared memory, so nothing is written twice. To unpack, each lane adds up the differences of a
 * group of eight elements, and a scan over the lanes turns the sums into elements. The first bit of
 * a difference follows from its number, so both directions work the same way for all widths.
 *
 * The bytes to unpack need not be valid. A warp reads the widths only if the block is long enough
 * for them, checks that they give exactly the block's size, and then reads only the bytes that they
 * describe. The first block that fails the check is reported; its elements are then undefined.
 */
#include "kernels/device.cuh"
#include "kernels/kernels.h"
#include "kernels/upload_table.cuh"
#include "kernels/tuning.h"
#include "src/record/delta_pack.h"

template <unsigned THREADS, unsigned WARP_MINIBLOCKS> struct delta_shape {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned n_warps = THREADS / WARP;
	static constexpr unsigned n_miniblocks = WARP_MINIBLOCKS; /* per warp */
};
typedef delta_shape<GSORT_DELTA> deltas;

/* A miniblock in shared memory: its differences, their packed words, or its elements. */
template <class E> union delta_buffer {
	E values[DELTA_MINIBLOCK_N];
	uint32_t words[DELTA_MINIBLOCK_N * sizeof(E) / sizeof(uint32_t)];
};

/* The memory of the warps of a block. */
template <class E> struct delta_memory {
	delta_buffer<E> buffers[deltas::n_warps];
};

/* Return the number of warps for a block of n elements. */
static inline uint32_t warps_per_block(uint64_t n)
{
	return (uint32_t)divide_up(delta_n_miniblocks(n), deltas::n_miniblocks);
}

/* Return the number of blocks of threads for n_warps. */
static inline unsigned grid_for(uint64_t n_warps)
{
	return (unsigned)divide_up(n_warps, deltas::n_warps);
}

/* The work of this warp: miniblocks [begin, end) of a block; none if begin >= end. */
struct warp_miniblocks {
	uint32_t block, begin, end;
};

/* Return the block and the miniblocks of this warp, not clipped to the end of the block. */
__device__ __forceinline__ warp_miniblocks find_warp_miniblocks(uint32_t n_warps_per_block)
{
	const uint32_t warp = blockIdx.x * deltas::n_warps + threadIdx.x / WARP;
	warp_miniblocks miniblocks;

	miniblocks.block = warp / n_warps_per_block;
	miniblocks.begin = warp % n_warps_per_block * deltas::n_miniblocks;
	miniblocks.end = miniblocks.begin + deltas::n_miniblocks;
	return miniblocks;
}

__device__ __forceinline__ void clip_miniblocks(warp_miniblocks &miniblocks, uint64_t n)
{
	const uint32_t n_miniblocks = (uint32_t)delta_n_miniblocks(n);

	miniblocks.end = miniblocks.end < n_miniblocks ? miniblocks.end : n_miniblocks;
}

/* Copy the elements of the warp's miniblocks, in whole cache lines. */
template <class E>
__device__ __forceinline__ void copy_miniblocks(E *to, const E *from, uint64_t n,
						warp_miniblocks miniblocks)
{
	const uint64_t end = miniblocks.end * (uint64_t)DELTA_MINIBLOCK_N;

	for (uint64_t i = miniblocks.begin * (uint64_t)DELTA_MINIBLOCK_N + threadIdx.x % WARP;
	     i < (end < n ? end : n); i += WARP)
		to[i] = from[i];
}

/* Return the bytes of the miniblocks before number `end`, all of which are full. */
__device__ __forceinline__ uint64_t packed_before(const unsigned char *widths, uint32_t end)
{
	uint64_t sum = 0;

	for (uint32_t i = threadIdx.x % WARP; i < end; i += WARP)
		sum += delta_miniblock_nbytes(DELTA_MINIBLOCK_N, widths[i]);
	return lanes_sum(sum, WARP);
}

/* --- Packing --- */

/* Scratch memory of packing. */
struct delta_scratch {
	uint64_t *offsets;     /* of each block, in the packed bytes */
	uint32_t *sums;        /* of the miniblocks of each block, in bytes */
	unsigned char *widths; /* of all miniblocks */
};

static inline uint32_t n_blocks_of(const delta_pack_task &task)
{
	return (uint32_t)divide_up(task.n, task.block_n);
}

static inline delta_scratch delta_lay_out(const delta_pack_task &task)
{
	delta_scratch scratch;

	scratch.offsets = (uint64_t *)task.scratch;
	scratch.sums = (uint32_t *)(scratch.offsets + n_blocks_of(task));
	scratch.widths = (unsigned char *)(scratch.sums + n_blocks_of(task));
	return scratch;
}

size_t kernel_delta_pack_scratch_nbytes(uint64_t n, uint32_t block_n)
{
	const uint64_t n_blocks = divide_up(n, block_n);

	return n_blocks * (sizeof(uint64_t) + sizeof(uint32_t) + delta_n_miniblocks(block_n));
}

/* Return the number of elements in a block. */
__device__ __forceinline__ uint32_t block_n_of(const delta_pack_task &task, uint32_t block)
{
	const uint64_t n_left = task.n - (uint64_t)block * task.block_n;

	return n_left < task.block_n ? (uint32_t)n_left : task.block_n;
}

/* Return the width of a miniblock of n elements, to every lane. */
template <class E> __device__ __forceinline__ uint32_t width_of(const E *elements, uint32_t n)
{
	E all_bits = 0;

	for (uint32_t i = 1 + threadIdx.x % WARP; i < n; i += WARP)
		all_bits |= elements[i] - elements[i - 1];
	for (unsigned distance = WARP / 2; distance; distance /= 2)
		all_bits |= lane_exchange(all_bits, distance);
	return delta_width(bit_length((uint128_t)all_bits), sizeof(E));
}

template <class E>
__global__ void __launch_bounds__(deltas::n_threads)
	measure(delta_pack_task task, delta_scratch scratch, uint32_t n_blocks,
		uint32_t n_warps_per_block)
{
	warp_miniblocks miniblocks = find_warp_miniblocks(n_warps_per_block);
	const E *elements = (const E *)task.elements + (uint64_t)miniblocks.block * task.block_n;
	uint32_t n, sum = 0;

	if (miniblocks.block >= n_blocks)
		return;
	n = block_n_of(task, miniblocks.block);
	clip_miniblocks(miniblocks, n);
	for (uint32_t i = miniblocks.begin; i < miniblocks.end; i++) {
		const uint32_t first = i * DELTA_MINIBLOCK_N,
			       miniblock_n = delta_miniblock_n(n, first);
		const uint32_t width = width_of(elements + first, miniblock_n);

		sum += delta_miniblock_nbytes(miniblock_n, width);
		if (threadIdx.x % WARP == 0)
			scratch.widths[miniblocks.block * delta_n_miniblocks(task.block_n) + i] =
				(unsigned char)width;
	}
	if (threadIdx.x % WARP == 0 && sum)
		atomicAdd(&scratch.sums[miniblocks.block], sum);
}

/* Find the size and the start of each block, in one warp. */
template <class E>
__global__ void __launch_bounds__(WARP)
	assign_block_offsets(delta_pack_task task, delta_scratch scratch, uint32_t n_blocks)
{
	uint64_t before = 0;

	for (uint32_t first = 0; first < n_blocks; first += WARP) {
		const uint32_t block = first + threadIdx.x;
		uint64_t nbytes = 0, sum_before;

		if (block < n_blocks) {
			const uint64_t n = block_n_of(task, block);

			nbytes = delta_block_nbytes(n, sizeof(E), scratch.sums[block]);
			nbytes = nbytes < n * sizeof(E) ? nbytes : n * sizeof(E);
		}
		sum_before = lanes_exclusive_sum(nbytes, WARP);
		if (block < n_blocks) {
			scratch.offsets[block] = before + sum_before;
			task.packed_nbytes[block] = (uint32_t)nbytes;
		}
		before += lane_broadcast(sum_before + nbytes, WARP - 1, WARP);
	}
}

/* Return word number k of the bits of the differences. */
template <class E>
__device__ __forceinline__ uint32_t pack_word(const E *differences, uint32_t width, uint32_t k)
{
	const uint32_t begin = 32 * k; /* bits */
	uint32_t word = 0;

	for (uint32_t i = begin / width; i * width < begin + 32; i++) {
		const uint32_t at = i * width;

		word |= at < begin ? (uint32_t)(differences[i] >> (begin - at)) :
				     (uint32_t)differences[i] << (at - begin);
	}
	return word;
}

/* Pack a miniblock; return the end of its words. */
template <class E>
__device__ __forceinline__ uint32_t *pack_miniblock(E *differences, const E *elements, uint32_t n,
						    uint32_t width, uint32_t *to)
{
	const uint32_t n_words = (uint32_t)divide_up(delta_miniblock_nbytes(n, width), 4);
	const unsigned lane = threadIdx.x % WARP;

	for (uint32_t i = lane; i < DELTA_MINIBLOCK_N; i += WARP)
		differences[i] = i > 0 && i < n ? elements[i] - elements[i - 1] : 0;
	__syncwarp();
	for (uint32_t k = lane; k < n_words; k += WARP)
		to[k] = pack_word(differences, width, k);
	__syncwarp();
	return to + n_words;
}

/* Pack the miniblocks of a block that shrinks, and write the padding. */
template <class E>
__device__ __forceinline__ void
pack_miniblocks(E *differences, const E *elements, uint32_t n, const unsigned char *widths,
		warp_miniblocks miniblocks, unsigned char *packed, uint32_t packed_nbytes)
{
	const uint32_t header_nbytes = (uint32_t)delta_header_nbytes(n, sizeof(E));
	const uint32_t widths_offset = (uint32_t)delta_widths_offset(n, sizeof(E));
	const uint32_t n_miniblocks = (uint32_t)delta_n_miniblocks(n);
	const unsigned lane = threadIdx.x % WARP;
	uint32_t *to = (uint32_t *)(void *)(packed + header_nbytes +
					    packed_before(widths, miniblocks.begin));

	for (uint32_t i = miniblocks.begin; i < miniblocks.end; i++) {
		const uint32_t first = i * DELTA_MINIBLOCK_N;

		if (lane == 0) {
			((E *)(void *)packed)[i] = elements[first];
			packed[widths_offset + i] = widths[i];
		}
		to = pack_miniblock(differences, elements + first, delta_miniblock_n(n, first),
				    widths[i], to);
	}
	if (miniblocks.end < n_miniblocks)
		return;
	for (uint32_t i = widths_offset + n_miniblocks + lane; i < header_nbytes; i += WARP)
		packed[i] = 0;
	for (to += lane; to < (uint32_t *)(void *)(packed + packed_nbytes); to += WARP)
		*to = 0;
}

template <class E>
__global__ void __launch_bounds__(deltas::n_threads)
	pack(delta_pack_task task, delta_scratch scratch, uint32_t n_blocks,
	     uint32_t n_warps_per_block)
{
	delta_memory<E> &memory = *shared_memory<delta_memory<E>>();
	warp_miniblocks miniblocks = find_warp_miniblocks(n_warps_per_block);
	const E *elements = (const E *)task.elements + (uint64_t)miniblocks.block * task.block_n;
	unsigned char *packed;
	uint32_t n, nbytes;

	if (miniblocks.block >= n_blocks)
		return;
	n = block_n_of(task, miniblocks.block);
	clip_miniblocks(miniblocks, n);
	if (miniblocks.begin >= miniblocks.end)
		return;
	packed = (unsigned char *)task.packed + scratch.offsets[miniblocks.block];
	nbytes = task.packed_nbytes[miniblocks.block];
	if (nbytes == n * sizeof(E))
		copy_miniblocks((E *)(void *)packed, elements, n, miniblocks);
	else
		pack_miniblocks(memory.buffers[threadIdx.x / WARP].values, elements, n,
				scratch.widths +
					miniblocks.block * delta_n_miniblocks(task.block_n),
				miniblocks, packed, nbytes);
}

template <class E> static int launch_pack_elements(const delta_pack_task &task, CUstream_st *stream)
{
	const delta_scratch scratch = delta_lay_out(task);
	const uint32_t n_blocks = n_blocks_of(task);
	const uint32_t n_warps_per_block =
		warps_per_block(task.block_n < task.n ? task.block_n : task.n);
	const unsigned grid = grid_for((uint64_t)n_blocks * n_warps_per_block);
	int r = (int)cudaMemsetAsync(scratch.sums, 0, n_blocks * sizeof *scratch.sums, stream);

	if (r)
		return r;
	LAUNCH(measure<E>, grid, deltas::n_threads, 0, stream, task, scratch, n_blocks,
	       n_warps_per_block);
	LAUNCH(assign_block_offsets<E>, 1, WARP, 0, stream, task, scratch, n_blocks);
	LAUNCH(pack<E>, grid, deltas::n_threads, sizeof(delta_memory<E>), stream, task, scratch,
	       n_blocks, n_warps_per_block);
	return (int)cudaGetLastError();
}

int launch_delta_pack(const struct delta_pack_task *task, CUstream_st *stream)
{
	if (task->n == 0)
		return 0;
	return dispatch_element(task->element_nbytes, [&](auto e) {
		return launch_pack_elements<decltype(e)>(*task, stream);
	});
}

/* --- Unpacking --- */

/*
 * Return to every lane whether the widths are valid and give a block of n elements exactly
 * packed_nbytes.
 */
template <class E>
__device__ __forceinline__ bool are_valid_widths(const unsigned char *widths, uint32_t n,
						 uint32_t packed_nbytes)
{
	const uint32_t n_miniblocks = (uint32_t)delta_n_miniblocks(n);
	uint64_t sum = 0;
	bool invalid = false;

	for (uint32_t i = threadIdx.x % WARP; i < n_miniblocks; i += WARP) {
		invalid = invalid || !delta_is_width(widths[i], sizeof(E));
		sum += delta_miniblock_nbytes(delta_miniblock_n(n, i * DELTA_MINIBLOCK_N),
					      widths[i]);
	}
	return !__any_sync(ALL_LANES, invalid) &&
	       delta_block_nbytes(n, sizeof(E), lanes_sum(sum, WARP)) == packed_nbytes;
}

/* Return the difference whose lowest bit is bit number `at`. */
template <class E>
__device__ __forceinline__ E extract_bits(const uint32_t *words, uint32_t at, uint32_t width)
{
	const uint32_t *word = words + at / 32;
	const uint32_t shift = at % 32;
	E bits = 0;

	if (width == 0)
		return 0;
	bits = (E)(word[0] >> shift);
#pragma unroll
	for (uint32_t k = 1; k <= sizeof(E) / 4; k++)
		if (32 * k < shift + width)
			bits |= (E)word[k] << (32 * k - shift);
	return bits & (E) ~(E)0 >> (8 * sizeof(E) - width);
}

template <class E>
__device__ __forceinline__ const uint32_t *unpack_miniblock(delta_buffer<E> &buffer,
							    const uint32_t *from, uint32_t width,
							    E base, E *elements, uint32_t n)
{
	const uint32_t n_words = (uint32_t)divide_up(delta_miniblock_nbytes(n, width), 4);
	const unsigned lane = threadIdx.x % WARP, first = lane * DELTA_GROUP_N;
	E sums[DELTA_GROUP_N], sum = 0;

	for (uint32_t k = lane; k < n_words; k += WARP)
		buffer.words[k] = from[k];
	__syncwarp();
#pragma unroll
	for (unsigned i = 0; i < DELTA_GROUP_N; i++) {
		if (first < n)
			sum += extract_bits<E>(buffer.words, (first + i) * width, width);
		sums[i] = sum;
	}
	base += lanes_exclusive_sum(sum, WARP);
	__syncwarp();
#pragma unroll
	for (unsigned i = 0; i < DELTA_GROUP_N; i++)
		buffer.values[first + i] = base + sums[i];
	__syncwarp();
	for (uint32_t i = lane; i < n; i += WARP)
		elements[i] = buffer.values[i];
	__syncwarp();
	return from + n_words;
}

template <class E>
__device__ __forceinline__ void unpack_miniblocks(delta_buffer<E> &buffer,
						  const kernel_packed_block &block,
						  warp_miniblocks miniblocks)
{
	const unsigned char *packed = (const unsigned char *)block.packed;
	const unsigned char *widths = packed + delta_widths_offset(block.n, sizeof(E));
	const uint32_t *from =
		(const uint32_t *)(const void *)(packed + delta_header_nbytes(block.n, sizeof(E)) +
						 packed_before(widths, miniblocks.begin));

	for (uint32_t i = miniblocks.begin; i < miniblocks.end; i++) {
		const uint32_t first = i * DELTA_MINIBLOCK_N;

		from = unpack_miniblock(buffer, from, widths[i],
					((const E *)(const void *)packed)[i],
					(E *)block.elements + first,
					delta_miniblock_n(block.n, first));
	}
}

template <class E>
__global__ void __launch_bounds__(deltas::n_threads)
	unpack(const kernel_packed_block *blocks, uint32_t n_blocks, uint32_t n_warps_per_block,
	       uint32_t *damaged)
{
	delta_memory<E> &memory = *shared_memory<delta_memory<E>>();
	warp_miniblocks miniblocks = find_warp_miniblocks(n_warps_per_block);
	kernel_packed_block block;

	if (miniblocks.block >= n_blocks)
		return;
	block = blocks[miniblocks.block];
	clip_miniblocks(miniblocks, block.n);
	if (miniblocks.begin >= miniblocks.end)
		return;
	if (block.packed_nbytes == block.n * sizeof(E))
		copy_miniblocks((E *)block.elements, (const E *)block.packed, block.n, miniblocks);
	else if (block.packed_nbytes >= delta_header_nbytes(block.n, sizeof(E)) &&
		 are_valid_widths<E>((const unsigned char *)block.packed +
					     delta_widths_offset(block.n, sizeof(E)),
				     block.n, block.packed_nbytes))
		unpack_miniblocks(memory.buffers[threadIdx.x / WARP], block, miniblocks);
	else if (threadIdx.x % WARP == 0)
		atomicMin(damaged, miniblocks.block);
}

template <class E>
static int launch_unpack_elements(const delta_unpack_task &task, uint32_t n_warps_per_block,
				  CUstream_st *stream)
{
	LAUNCH(unpack<E>, grid_for((uint64_t)task.n_blocks * n_warps_per_block), deltas::n_threads,
	       sizeof(delta_memory<E>), stream, (const kernel_packed_block *)task.tables,
	       task.n_blocks, n_warps_per_block, task.damaged);
	return (int)cudaGetLastError();
}

size_t kernel_delta_unpack_nbytes(uint32_t n_blocks)
{
	return n_blocks * sizeof(kernel_packed_block);
}

int launch_delta_unpack(const struct delta_unpack_task *task, CUstream_st *stream)
{
	struct table_writer writer = { (uint64_t *)task->tables, stream, {}, 0, 0 };
	uint32_t n_warps_per_block = 1;
	int r = (int)cudaMemsetAsync(task->damaged, 0xff, sizeof *task->damaged, stream);

	if (r || task->n_blocks == 0)
		return r;
	table_writer_put_bytes(&writer, task->blocks, task->n_blocks * sizeof(kernel_packed_block));
	table_writer_flush(&writer);
	if (writer.r)
		return writer.r;
	for (uint32_t i = 0; i < task->n_blocks; i++)
		n_warps_per_block = max(n_warps_per_block, warps_per_block(task->blocks[i].n));
	return dispatch_element(task->element_nbytes, [&](auto e) {
		return launch_unpack_elements<decltype(e)>(*task, n_warps_per_block, stream);
	});
}
