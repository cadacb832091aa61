/*
 * short_rows - gather short items that are all kept and written whole, 32 per warp
 *
 * This is the most frequent gather. A thread knows the position of its item without others, so
 * every warp works independently on tiles of 32 items:
 *
 *	memory	A, B and C, anywhere
 *	slots	|..AAAAAAAAA.....|...BBBBBBBBB....|.CCCCCCCCC......|	see staged_rows.cuh
 *	packed	|..AAAAAAAAABBBBBBBBBCCCCCCCCC|				as in the output
 *
 * The lanes load neighbouring units of 16 bytes, without using registers. Then each lane moves one
 * row from its slot to its packed position, and hashes it on the way. This frees the slots: the
 * next tile is loaded while the keys of neighbours in the packed rows are compared and the rows are
 * written. The write is a plain copy, because packed rows are aligned like the output.
 *
 * The first item of a tile is compared with the last one of the previous tile. So a warp processes
 * several consecutive tiles and keeps that item. At the start of such a sequence it loads the item
 * again.
 *
 * Longer items use gather_rows, because two copies of 32 rows per warp leave room for few warps. So
 * do items that are dropped, cut or counted: their positions and hashes depend on more than the
 * row.
 */
#pragma once

#include "kernels/records/gather_output.cuh"
#include "kernels/records/row_copy.cuh"

template <unsigned THREADS, unsigned BLOCKS, unsigned RUN> struct short_rows_block {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned n_warps = THREADS / WARP;
	static constexpr unsigned n_blocks = BLOCKS;  /* per multiprocessor, at most */
	static constexpr unsigned n_tiles = RUN;      /* consecutive tiles of a warp */
	static constexpr unsigned max_nbytes = 65536; /* of shared memory: at least three blocks */

	static_assert(THREADS % WARP == 0 && THREADS <= stream_pass::n_threads, "for block_sum()");
};
typedef short_rows_block<GSORT_SHORT_ROWS> short_rows;

/* Shared memory of a multiprocessor, and the part reserved by the system for each block. */
static constexpr unsigned SHARED_NBYTES = 228 << 10, SHARED_RESERVED_NBYTES = 1 << 10;

struct short_rows_shape {
	uint32_t nbytes;       /* of an item */
	uint32_t slot_nbytes;  /* of its slot */
	uint32_t n_loaders;    /* lanes that load one row, one unit each */
	uint32_t n_loaded;     /* rows that a warp loads at once */
	uint32_t packed_at;    /* where the packed rows are in the shared memory of a warp */
	uint32_t warp_nbytes;  /* of shared memory */
	uint32_t block_nbytes; /* of shared memory */
};

static inline bool is_plain_gather(const struct gather_task *task)
{
	const uint32_t nbytes = task->items.item_nbytes;

	return !task->heads.equal && task->limit >= task->n && !task->has_count &&
	       task->out_offset == 0 && task->out_nbytes == nbytes &&
	       task->items.body_offset == 0 && task->items.body_nbytes == nbytes;
}

/* Where the memory of the warps begins in the shared memory of a block. */
static constexpr uint32_t SHORT_ROWS_WARPS_AT =
	(uint32_t)round_up(sizeof(stream_pass_memory), UNIT);

/* Compute the shape of the task. Returns whether gather_short_rows() can run it. */
static inline bool shape_short_rows(const struct gather_task *task,
				    struct short_rows_shape *ret_shape)
{
	const uint32_t n_units = row_units(&task->items);
	struct short_rows_shape shape;

	shape.nbytes = task->items.item_nbytes;
	shape.slot_nbytes = slot_nbytes(n_units);
	shape.n_loaders = row_loaders(n_units);
	shape.n_loaded = WARP / shape.n_loaders;
	/* One more unit: copying the last row reads a word past it (row_copy.cuh). */
	shape.packed_at = WARP * shape.slot_nbytes + UNIT;
	/* One more unit: packed rows are aligned like the output. */
	shape.warp_nbytes = shape.packed_at + WARP * shape.nbytes + UNIT;
	shape.block_nbytes = SHORT_ROWS_WARPS_AT + short_rows::n_warps * shape.warp_nbytes;
	*ret_shape = shape;
	return is_plain_gather(task) && shape.nbytes >= 4 && n_units <= WARP &&
	       shape.block_nbytes <= short_rows::max_nbytes;
}

/* Return the number of blocks: as many as have work, at most as many as run at once. */
static inline unsigned short_rows_blocks(uint64_t n, const short_rows_shape &shape)
{
	const uint64_t n_blocks = divide_up(n, WARP * short_rows::n_tiles * short_rows::n_warps);
	const unsigned n_blocks_fitting =
		SHARED_NBYTES / (shape.block_nbytes + SHARED_RESERVED_NBYTES);
	const unsigned max_blocks =
		GSORT_MULTIPROCESSORS * min(n_blocks_fitting, short_rows::n_blocks);

	return (unsigned)(n_blocks < max_blocks ? n_blocks : max_blocks);
}

/* Return the tile that a warp processes after `tile`. */
__device__ __forceinline__ uint32_t next_tile(uint32_t tile)
{
	const uint32_t n_warps = gridDim.x * short_rows::n_warps;

	return (tile + 1) % short_rows::n_tiles ? tile + 1 :
						  tile + 1 + (n_warps - 1) * short_rows::n_tiles;
}

/* Return the number of this lane's item in a tile; 0 past the end. */
__device__ __forceinline__ uint32_t number_in_tile(const gather_task &task, uint32_t tile)
{
	const uint64_t i = (uint64_t)tile * WARP + threadIdx.x % WARP;

	return i < task.n ? number_at(task.elements, task.element_nbytes, i) : 0;
}

/* An item in device memory, and the first 8 bytes of its key. */
struct keyed_item {
	const unsigned char *item;
	uint64_t word;
};

/* Return the item before a tile that is not the first. */
__device__ __forceinline__ keyed_item last_item_before(const gather_task &task, uint32_t tile)
{
	const unsigned char *item = sorted_item(task, (uint64_t)tile * WARP - 1);

	return { item, item_key_word(task.items, item, 0) };
}

/* The work of a warp on a tile. */
template <bool WORDS> struct short_rows_warp {
	const gather_task &task;
	const short_rows_shape &shape;
	uint32_t lane;
	uint32_t first_row, at; /* the lane loads the unit at byte `at` of first_row, and others */
	unsigned char *slots, *packed;

	__device__ short_rows_warp(const gather_task &task, const short_rows_shape &shape,
				   unsigned char *memory)
	    : task(task), shape(shape), lane(threadIdx.x % WARP), first_row(lane / shape.n_loaders),
	      at(lane % shape.n_loaders * UNIT), slots(memory),
	      packed(memory + shape.packed_at + (uint32_t)((uintptr_t)task.out % UNIT))
	{
	}

	__device__ const unsigned char *row(uint32_t i) const
	{
		return packed + i * shape.nbytes;
	}

	/* Start to load the items of all lanes. */
	__device__ void begin_loading(const unsigned char *item) const
	{
		uint32_t row = first_row;

#pragma unroll 4
		for (uint32_t i = 0; i < shape.n_loaders; i++, row += shape.n_loaded) {
			const unsigned char *from = lane_broadcast(item, row, WARP);
			const uint32_t skew = (uint32_t)((uintptr_t)from % UNIT);

			if (at < skew + shape.nbytes)
				copy_async(slots + row * shape.slot_nbytes + at, from - skew + at);
		}
	}

	/* Move this lane's loaded row. Adds its hash, and returns the item with its key. */
	__device__ keyed_item move(const unsigned char *item, struct tally &tally) const
	{
		const unsigned char *from =
			slots + lane * shape.slot_nbytes + (uint32_t)((uintptr_t)item % UNIT);

		tally_hash(tally, copy_row<WORDS>(packed + lane * shape.nbytes, from, shape.nbytes),
			   true);
		return { item, item_key_word(task.items, from, 0) };
	}

	/*
	 * Return whether this lane's item is less than the one before it. `before`: the item before
	 * the tile, which is read from device memory if necessary.
	 */
	__device__ bool is_disorder(bool has_before, const keyed_item &mine,
				    const keyed_item &before) const
	{
		const uint64_t left = lane_broadcast(mine.word, (lane - 1) % WARP, WARP);
		const uint64_t word = lane > 0 ? left : before.word;

		if (!has_before)
			return false;
		if (word != mine.word)
			return word > mine.word;
		return compare_items(task.items, lane > 0 ? row(lane - 1) : before.item, row(lane),
				     8) > 0;
	}

	/* Write the first n packed rows to `to`. */
	__device__ void write(unsigned char *to, uint32_t n) const
	{
		const uint32_t nbytes = n * shape.nbytes;
		const uint32_t to_unit = (0u - (uint32_t)(uintptr_t)to) % UNIT;
		const uint32_t head = to_unit < nbytes ? to_unit : nbytes;
		const uint32_t n_units = (nbytes - head) / UNIT, tail = head + n_units * UNIT;
		const uint32_t edge = lane < head ? lane : lane - head + tail;

#pragma unroll 4
		for (uint32_t i = lane; i < n_units; i += WARP)
			((uint128_t *)(void *)(to + head))[i] =
				((const uint128_t *)(const void *)(packed + head))[i];
		if (edge < nbytes)
			to[edge] = packed[edge];
	}

	/* Write a tile of n items, and the first and last item of all. */
	__device__ void write_tile(uint32_t tile, uint32_t n) const
	{
		const uint64_t first = (uint64_t)tile * WARP;

		write((unsigned char *)task.out + first * shape.nbytes, n);
		if (first == 0)
			copy_item(task.first, row(0), shape.nbytes, lane, WARP);
		if (first + n == task.n)
			copy_item(task.last, row(n - 1), shape.nbytes, lane, WARP);
	}
};

template <bool WORDS>
__global__ void __launch_bounds__(short_rows::n_threads, short_rows::n_blocks)
	gather_short_rows(gather_task task, short_rows_shape shape)
{
	const uint32_t warp_of_block = threadIdx.x / WARP;
	const short_rows_warp<WORDS> warp(task, shape,
					  shared_memory<unsigned char>() + SHORT_ROWS_WARPS_AT +
						  warp_of_block * shape.warp_nbytes);
	const uint32_t n_tiles = (uint32_t)divide_up(task.n, WARP);
	uint32_t tile = (blockIdx.x * short_rows::n_warps + warp_of_block) * short_rows::n_tiles;
	uint32_t next = next_tile(tile), number = number_in_tile(task, next);
	const unsigned char *item = item_at(task.items, number_in_tile(task, tile));
	keyed_item before = {};
	struct tally tally = {};

	if (tile < n_tiles)
		warp.begin_loading(item);
	while (tile < n_tiles) {
		const uint32_t n = (uint32_t)min(task.n - (uint64_t)tile * WARP, (uint64_t)WARP);
		const bool has_item = warp.lane < n, has_before = has_item && tile + warp.lane > 0;
		const unsigned char *next_item = item_at(task.items, number);
		keyed_item mine = {};

		number = number_in_tile(task, next_tile(next)); /* prefetched */
		if (tile > 0 && tile % short_rows::n_tiles == 0)
			before = last_item_before(task, tile);
		copies_wait();
		__syncwarp();
		if (has_item)
			mine = warp.move(item, tally);
		__syncwarp();
		if (next < n_tiles)
			warp.begin_loading(next_item);
		tally.n_disorders += warp.is_disorder(has_before, mine, before);
		warp.write_tile(tile, n);
		before = lane_broadcast(mine, WARP - 1, WARP);
		item = next_item;
		tile = next;
		next = next_tile(next);
	}
	tally.n_counted = tally.n_kept;
	add_tally(*shared_memory<stream_pass_memory>(), tally, task);
}

template <bool WORDS>
static int gather_short_items(const gather_task &task, const short_rows_shape &shape,
			      CUstream_st *stream)
{
	int r = prefer_shared_memory(gather_short_rows<WORDS>);

	if (!r)
		r = (int)cudaFuncSetAttribute(gather_short_rows<WORDS>,
					      cudaFuncAttributeMaxDynamicSharedMemorySize,
					      (int)shape.block_nbytes);
	if (r)
		return r;
	LAUNCH(gather_short_rows<WORDS>, short_rows_blocks(task.n, shape), short_rows::n_threads,
	       shape.block_nbytes, stream, task, shape);
	return (int)cudaGetLastError();
}

static int launch_short_rows(const gather_task &task, const short_rows_shape &shape,
			     CUstream_st *stream)
{
	const bool are_words = task.items.alignment >= 4 && (uintptr_t)task.out % 4 == 0;

	return are_words ? gather_short_items<true>(task, shape, stream) :
			   gather_short_items<false>(task, shape, stream);
}
