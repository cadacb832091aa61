/*
 * gather - gather the items of sorted elements, with digests and a check of their order
 *
 * This is the only pass that moves whole items, from any address to consecutive positions
 * (gather_output.cuh computes these). Items are staged in shared memory (staged_rows.cuh), where
 * their digests are computed and the keys of neighbours compared. So neighbouring threads load and
 * store neighbouring addresses, and the checked bytes are the written bytes. There are three
 * kernels:
 *
 *	gather_short_rows
 *			items of 4 to about 240 bytes, if all are written, whole, and none is
 *			counted: most gathers (short_rows.cuh)
 *	gather_rows	longer items, and short ones of which only heads, a limited number, or
 *			parts are written, or which are counted
 *	gather_wide	items that are too long to be staged
 *
 * gather_rows is the general kernel: a block stages a tile and the item before it, and writes the
 * output's part of the items as one range of bytes (packed_store.cuh). The look-ups for this make
 * the kernel slower for short items. If counts are added up, a last kernel writes them to the
 * items.
 */
#include "kernels/records/gather_output.cuh"
#include "kernels/records/short_rows.cuh"
#include "kernels/records/packed_store.cuh"

struct gather_memory : staged_rows {
	const unsigned char *from[rows::n_rows]; /* row 0: the item before the tile */
	uint64_t key_word[rows::n_rows];         /* first 8 bytes of the key */
	uint32_t position[rows::n_rows];         /* of each row in the output, or NO_POSITION */
};

/* Return the address of a row in shared memory. */
__device__ __forceinline__ const unsigned char *row_at(const gather_memory &memory,
						       const row_shape &shape, uint32_t row)
{
	return memory.slots + slot_offset(memory.from[row], shape, row);
}

/* --- Items staged in shared memory --- */

/* Return the item number of this thread's row in the tile that begins at element `base`, or 0. */
__device__ __forceinline__ uint32_t row_item_number(const gather_task &task, uint64_t base)
{
	const uint64_t i = base + threadIdx.x - 1;

	return i < task.n ? number_at(task.elements, task.element_nbytes, i) : 0;
}

/* Find the items and output positions of elements [base, base + n), one row per thread. */
__device__ __forceinline__ void find_rows(gather_memory &memory, const gather_task &task,
					  const row_shape &shape, uint64_t base, uint32_t n,
					  uint32_t number)
{
	const uint32_t row = threadIdx.x;
	const uint64_t i = base + row - 1;
	const unsigned char *item;
	uint32_t position;

	if (row > n || (row == 0 && base == 0))
		return;
	item = item_at(task.items, number);
	position = row == 0 ? NO_POSITION : output_position(task, i);
	memory.from[row] = item;
	memory.position[row] = position;
	if (position != NO_POSITION)
		memory.kept[position - kept_before(task, base)] = slot_offset(item, shape, row);
}

/* Hash each of the rows 1 to n in shared memory, and load their keys and the key of row 0. */
template <bool WORDS>
__device__ __forceinline__ void hash_rows(gather_memory &memory, const gather_task &task,
					  const row_shape &shape, const body_hash<WORDS> &body,
					  uint64_t base, uint32_t n, struct tally &tally)
{
	for (uint32_t first = 1; first <= n; first += shape.n_hashed) {
		const uint32_t mine = first + threadIdx.x / shape.n_hashers;
		const uint32_t row = mine <= n ? mine : 1;
		const unsigned char *item = row_at(memory, shape, row);
		const uint64_t hash = body.hash(item + task.items.body_offset);

		if (mine <= n && body.lane == 0) {
			tally_hash(tally, hash, memory.position[row] != NO_POSITION);
			tally_count(tally, task, base + row - 1, item);
			memory.key_word[row] = item_key_word(task.items, item, 0);
		}
	}
	if (base > 0 && threadIdx.x == 0)
		memory.key_word[0] = item_key_word(task.items, row_at(memory, shape, 0), 0);
}

/* Compare each row within the limit with the row before it. */
__device__ __forceinline__ void compare_rows(const gather_memory &memory, const gather_task &task,
					     const row_shape &shape, uint64_t base, uint32_t n,
					     struct tally &tally)
{
	for (uint32_t row = 1 + threadIdx.x; row <= n; row += rows::n_threads) {
		const uint64_t before = memory.key_word[row - 1], word = memory.key_word[row];

		if (base + row == 1 || !is_within_limit(task, base + row - 1))
			continue;
		tally.n_disorders +=
			before == word ? compare_items(task.items, row_at(memory, shape, row - 1),
						       row_at(memory, shape, row), 8) > 0 :
					 before > word;
	}
}

template <bool WORDS>
__global__ void __launch_bounds__(rows::n_threads, rows::n_blocks)
	gather_rows(gather_task task, row_shape shape)
{
	gather_memory &memory = *shared_memory<gather_memory>();
	const body_hash<WORDS> body(task.items.body_nbytes, shape.n_hashers);
	const uint64_t n_kept = kept_before(task, task.n);
	const uint64_t step = (uint64_t)gridDim.x * shape.n;
	uint32_t number = row_item_number(task, (uint64_t)blockIdx.x * shape.n);
	struct tally tally = {};

	for (uint64_t base = (uint64_t)blockIdx.x * shape.n; base < task.n; base += step) {
		const uint32_t n = task.n - base < shape.n ? (uint32_t)(task.n - base) : shape.n;
		const uint64_t first = kept_before(task, base), end = kept_before(task, base + n);
		unsigned char *to = (unsigned char *)task.out + first * task.out_nbytes;

		find_rows(memory, task, shape, base, n, number);
		__syncthreads();
		number = row_item_number(task, base + step); /* prefetched */
		load_rows(memory.slots, memory.from, shape, base == 0, n + 1);
		hash_rows(memory, task, shape, body, base, n, tally);
		write_rows<WORDS>(memory, task, to, (uint32_t)(end - first));
		if (first == 0 && end > 0)
			copy_item(task.first, memory.slots + memory.kept[0], shape.nbytes,
				  threadIdx.x, rows::n_threads);
		if (end == n_kept && end > first)
			copy_item(task.last, memory.slots + memory.kept[end - first - 1],
				  shape.nbytes, threadIdx.x, rows::n_threads);
		__syncthreads();
		compare_rows(memory, task, shape, base, n, tally);
		__syncthreads();
	}
	add_tally(memory, tally, task);
}

/* --- Wide items, one warp per item --- */

/* Copy nbytes between any addresses, with the lanes of a warp. */
__device__ __forceinline__ void copy_wide(unsigned char *to, const unsigned char *from,
					  uint32_t nbytes)
{
	const unsigned lane = threadIdx.x % WARP;
	const uint32_t to_word = (4 - skew(to)) % 4, head = to_word < nbytes ? to_word : nbytes;
	const uint32_t n_words = (nbytes - head) / 4, tail = head + 4 * n_words;

	if (((uintptr_t)to | (uintptr_t)from | nbytes) % UNIT == 0) {
		for (uint32_t i = lane; i < nbytes / UNIT; i += WARP)
			((uint128_t *)(void *)to)[i] = ((const uint128_t *)(const void *)from)[i];
		return;
	}
	if (lane < head)
		to[lane] = from[lane];
	for (uint32_t i = lane; i < n_words; i += WARP)
		((uint32_t *)(void *)(to + head))[i] = (uint32_t)load_bytes(from + head + 4 * i, 4);
	if (lane < nbytes - tail)
		to[tail + lane] = from[tail + lane];
}

/* Return whether the key of a is greater than that of b. Each lane of the warp compares a part. */
__device__ __forceinline__ bool is_disorder_wide(const kernel_items &items, const unsigned char *a,
						 const unsigned char *b)
{
	for (uint32_t base = 0; base < items.keys.key_nbytes; base += 8 * WARP) {
		const uint32_t at = base + 8 * (threadIdx.x % WARP);
		const uint64_t x = key_word(&items.keys, a, at), y = key_word(&items.keys, b, at);
		const unsigned differ = __ballot_sync(ALL_LANES, x != y);

		if (differ)
			return lane_broadcast((uint32_t)(y < x), __ffs((int)differ) - 1, WARP);
	}
	return false;
}

template <bool WORDS>
__global__ void __launch_bounds__(rows::n_threads) gather_wide(gather_task task)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	const unsigned lane = threadIdx.x % WARP;
	const uint32_t item_nbytes = task.items.item_nbytes;
	const body_hash<WORDS> body(task.items.body_nbytes, WARP);
	const uint64_t n_kept = kept_before(task, task.n);
	struct tally tally = {};

	for (uint64_t i = (uint64_t)blockIdx.x * rows::n_warps + threadIdx.x / WARP; i < task.n;
	     i += (uint64_t)gridDim.x * rows::n_warps) {
		const unsigned char *item = sorted_item(task, i);
		const uint32_t position = output_position(task, i);
		const uint64_t hash = body.hash(item + task.items.body_offset);
		const bool disorder = i > 0 && is_within_limit(task, i) &&
				      is_disorder_wide(task.items, sorted_item(task, i - 1), item);

		if (lane == 0) {
			tally_hash(tally, hash, position != NO_POSITION);
			tally.n_disorders += disorder;
			tally_count(tally, task, i, item);
		}
		if (position == NO_POSITION)
			continue;
		copy_wide((unsigned char *)task.out + (uint64_t)position * task.out_nbytes,
			  item + task.out_offset, task.out_nbytes);
		if (position == 0)
			copy_item(task.first, item, item_nbytes, lane, WARP);
		if (position + 1 == n_kept)
			copy_item(task.last, item, item_nbytes, lane, WARP);
	}
	add_tally(memory, tally, task);
}

/* Write the count of an item, its first 8 bytes. NULL is ignored. */
__device__ __forceinline__ void store_count(const gather_task &task, void *item, uint64_t count)
{
	if (task.count_is_big_endian)
		count = byte_swap_8(count);
	for (unsigned i = 0; item && i < 8; i++)
		((unsigned char *)item)[i] = (unsigned char)(count >> 8 * i);
}

__global__ void __launch_bounds__(stream_pass::n_threads) store_counts(gather_task task)
{
	const uint64_t n_kept = kept_before(task, task.n);
	const bool are_written = task.out_nbytes == task.items.item_nbytes;

	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < n_kept;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads) {
		if (are_written)
			store_count(task, (unsigned char *)task.out + i * task.out_nbytes,
				    task.counts[i]);
		if (i == 0)
			store_count(task, task.first, task.counts[i]);
		if (i + 1 == n_kept)
			store_count(task, task.last, task.counts[i]);
	}
}

template <bool WORDS> static int gather_items(const gather_task &task, CUstream_st *stream)
{
	const struct row_shape shape = shape_rows(&task.items, 1);
	int r;

	if (shape.wide) {
		LAUNCH(gather_wide<WORDS>, row_blocks(task.n, rows::n_warps), rows::n_threads,
		       sizeof(stream_pass_memory), stream, task);
		return (int)cudaGetLastError();
	}
	r = prefer_shared_memory(gather_rows<WORDS>);
	if (r)
		return r;
	LAUNCH(gather_rows<WORDS>, row_blocks(task.n, shape.n), rows::n_threads,
	       sizeof(gather_memory), stream, task, shape);
	return (int)cudaGetLastError();
}

int launch_gather(const struct gather_task *task, CUstream_st *stream)
{
	struct gather_task counted = *task;
	struct short_rows_shape shape;
	int r = (int)cudaMemsetAsync(task->result, 0, sizeof *task->result, stream);

	if (r || task->n == 0)
		return r;
	if (shape_short_rows(task, &shape))
		return launch_short_rows(*task, shape, stream);
	if (!task->has_count || !task->heads.equal)
		counted.counts = NULL;
	if (counted.counts)
		r = (int)cudaMemsetAsync(counted.counts, 0, task->n * sizeof *counted.counts,
					 stream);
	if (!r)
		r = task->items.alignment >= 4 ? gather_items<true>(counted, stream) :
						 gather_items<false>(counted, stream);
	if (!r && counted.counts) {
		LAUNCH(store_counts, n_blocks_for(task->n), stream_pass::n_threads, 0, stream,
		       counted);
		r = (int)cudaGetLastError();
	}
	return r;
}
