/*
 * tie_break - order elements with equal prefixes by the rest of their keys
 *
 * Ties are broken in rounds, each by a word of the keys. The tied elements of a list are copied,
 * each with its group and the next word of its key:
 *
 *	element      | first 12 bytes of the key | number |
 *	in a round   | group | next 8 bytes      | number |
 *
 * launch_sort() sorts this list. Groups stay together and in order, because they are numbered in
 * order; numbers are distinct, so the sort is stable. The sorted list occupies the same positions
 * among the elements, so its numbers are stored in these elements. Ties in the new list go to the
 * next round. Every round numbers its groups from 0, so 32 bits suffice for a group.
 *
 * Long keys with long common prefixes would need a round for every word. So if the whole list ties,
 * the host asks for the length of the common prefix and continues there.
 *
 * Keys is a struct that is passed to the kernels by value, with these members:
 *
 *	is_tie(a, b)	whether neighbours of a list are equal, but their keys may differ later
 *	word(number, at)	the bytes of a key from `at` on, as a word that sorts like them
 *	first_difference(a, b, at, limit)
 *		the offset of the round in which two keys that agree up to `at` differ, or `limit`
 *		if they agree up to there
 */
#include "kernels/lines/lines.cuh"
#include "kernels/records/items.cuh"
#include "kernels/records/tie_flags.cuh"

/* The scratch of launch_count_ties(). */
struct tie_flags {
	uint32_t *equal; /* one word per row */
	uint64_t *sums;  /* per segment: tied elements, and groups in the upper half */
};

static struct tie_flags lay_out_tie_flags(const void *scratch, uint64_t n)
{
	struct tie_flags flags;

	flags.equal = (uint32_t *)scratch;
	flags.sums = (uint64_t *)(flags.equal + n_segments_for(n) * WARP);
	return flags;
}

/* Whether element i of a list ties with the previous one. */
template <class Keys> struct ties_with_previous {
	Keys keys;
	const uint128_t *list;

	__device__ bool operator()(uint64_t i) const
	{
		return i > 0 && keys.is_tie(list[i - 1], list[i]);
	}
};

template <class Keys>
__global__ void __launch_bounds__(stream_pass::n_threads)
	flag_ties(Keys keys, const uint128_t *list, uint64_t n, tie_flags flags)
{
	const unsigned lane = threadIdx.x % WARP;
	const ties_with_previous<Keys> is_equal = { keys, list };

	for (uint64_t segment = first_segment(); segment < n_segments_for(n);
	     segment += segment_step()) {
		const uint64_t base = segment * SEGMENT, next = base + SEGMENT;
		const uint32_t word = ballot_rows(base, n, is_equal);
		const uint32_t tied =
			tied_mask(word, lane == WARP - 1 && next < n && is_equal(next));
		const uint64_t heads = (uint64_t)__popc(tied & ~word) << 32;
		const uint64_t sum = lanes_sum(heads + __popc(tied), WARP);

		flags.equal[segment * WARP + lane] = word;
		if (lane == 0)
			flags.sums[segment] = sum;
	}
}

static_assert(sizeof(tie_counts) == sizeof(uint64_t), "the counts are one sum");

template <class Keys>
static int count_ties(const Keys &keys, const void *list, uint64_t n, void *scratch,
		      struct tie_counts *ties, CUstream_st *stream)
{
	const struct tie_flags flags = lay_out_tie_flags(scratch, n);

	if (n == 0)
		return (int)cudaMemsetAsync(ties, 0, sizeof *ties, stream);
	LAUNCH(flag_ties<Keys>, n_blocks_for(n, SEGMENT * stream_pass::n_warps),
	       stream_pass::n_threads, 0, stream, keys, (const uint128_t *)list, n, flags);
	return launch_scan(flags.sums, n_segments_for(n), (uint64_t *)(void *)ties, stream);
}

/* Copy the tied elements with the next bytes of their keys. */
template <class Keys>
__global__ void __launch_bounds__(stream_pass::n_threads)
	extract_ties(Keys keys, const uint128_t *list, const uint32_t *positions, uint64_t n,
		     tie_flags flags, uint64_t at, uint128_t *next, uint32_t *next_positions)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t segment = first_segment(); segment < n_segments_for(n);
	     segment += segment_step()) {
		const uint64_t base = segment * SEGMENT, end = base + SEGMENT;
		const uint32_t word = flags.equal[segment * WARP + lane];
		const uint32_t tied = tied_mask(
			word, lane == WARP - 1 && end < n && flags.equal[(segment + 1) * WARP] & 1);
		const uint32_t heads = tied & ~word;
		const uint64_t before =
			flags.sums[segment] +
			lanes_exclusive_sum((uint64_t)__popc(heads) << 32 | (uint64_t)__popc(tied),
					    WARP);

		for (unsigned row = 0; row < WARP; row++) {
			const uint32_t row_tied = lane_broadcast(tied, row, WARP);
			const uint32_t row_heads = lane_broadcast(heads, row, WARP);
			const uint64_t row_before = lane_broadcast(before, row, WARP);
			const uint32_t earlier = (1u << lane) - 1;
			const uint64_t i = base + row * WARP + lane;

			if (row_tied >> lane & 1) {
				const uint32_t to =
					(uint32_t)row_before + __popc(row_tied & earlier);
				const uint32_t group = (uint32_t)(row_before >> 32) +
						       __popc(row_heads & (earlier << 1 | 1));
				const uint32_t number = number_of(list[i]);
				const uint64_t bytes = keys.word(number, at);

				next[to] = (uint128_t)group << 96 |
					   (uint128_t)bytes << NUMBER_BITS | number;
				next_positions[to] = positions ? positions[i] : (uint32_t)i;
			}
		}
	}
}

/* Store the numbers of a sorted list in the elements that it was copied from. */
static __global__ void __launch_bounds__(stream_pass::n_threads)
	store_numbers(const uint128_t *list, const uint32_t *positions, uint32_t n,
		      uint128_t *elements)
{
	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads)
		*(uint32_t *)(void *)&elements[positions[i]] = number_of(list[i]);
}

template <class Keys>
static int break_ties(const Keys &keys, const struct tie_break_task *task, CUstream_st *stream)
{
	int r;

	LAUNCH(extract_ties<Keys>, n_blocks_for(task->n, SEGMENT * stream_pass::n_warps),
	       stream_pass::n_threads, 0, stream, keys, (const uint128_t *)task->list,
	       task->positions, task->n, lay_out_tie_flags(task->ties_scratch, task->n), task->at,
	       (uint128_t *)task->next, task->next_positions);
	r = (int)cudaGetLastError();
	if (!r)
		r = launch_sort(task->next, task->n_ties, sizeof(uint128_t), task->sort_scratch,
				stream);
	if (r)
		return r;
	LAUNCH(store_numbers, n_blocks_for(task->n_ties), stream_pass::n_threads, 0, stream,
	       (const uint128_t *)task->next, task->next_positions, task->n_ties,
	       (uint128_t *)task->elements);
	return (int)cudaGetLastError();
}

template <class Keys>
__global__ void __launch_bounds__(stream_pass::n_threads)
	find_common_prefix(Keys keys, const uint128_t *list, uint64_t n, uint64_t at,
			   uint64_t *common_nbytes)
{
	unsigned long long *const common = (unsigned long long *)common_nbytes;

	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x + 1; i < n;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads) {
		const uint128_t a = list[i - 1], b = list[i];

		if (keys.is_tie(a, b))
			atomicMin(common,
				  (unsigned long long)keys.first_difference(
					  number_of(a), number_of(b), at, atomicAdd(common, 0ull)));
	}
}

static __global__ void __launch_bounds__(1)
	set_common_prefix(uint64_t *common_nbytes, uint64_t value)
{
	*common_nbytes = value;
}

/* Find the common prefix of tied keys. limit: the result if no neighbours differ. */
template <class Keys>
static int find_common(const Keys &keys, const void *list, uint64_t n, uint64_t at, uint64_t limit,
		       uint64_t *common_nbytes, CUstream_st *stream)
{
	LAUNCH(set_common_prefix, 1, 1, 0, stream, common_nbytes, limit);
	if (n > 1)
		LAUNCH(find_common_prefix<Keys>, n_blocks_for(n), stream_pass::n_threads, 0, stream,
		       keys, (const uint128_t *)list, n, at, common_nbytes);
	return (int)cudaGetLastError();
}

size_t kernel_ties_scratch_nbytes(uint64_t n)
{
	return n_segments_for(n) * (WARP * sizeof(uint32_t) + sizeof(uint64_t));
}

/* The keys of items. All have the same length, at which the host ends the rounds. */
struct item_keys {
	kernel_items items;

	__device__ bool is_tie(uint128_t a, uint128_t b) const
	{
		return a >> NUMBER_BITS == b >> NUMBER_BITS;
	}

	__device__ uint64_t word(uint32_t number, uint64_t at) const
	{
		return item_key_word(items, item_at(items, number), (uint32_t)at);
	}

	__device__ uint64_t first_difference(uint32_t a, uint32_t b, uint64_t at,
					     uint64_t limit) const
	{
		const unsigned char *item = item_at(items, a), *other = item_at(items, b);

		while (at < limit && item_key_word(items, item, (uint32_t)at) ==
					     item_key_word(items, other, (uint32_t)at))
			at += 8;
		return at;
	}
};

/* The strings of lines as keys. Equal elements whose strings have ended are no tie. */
struct line_tie_keys {
	kernel_lines lines;

	__device__ bool is_tie(uint128_t a, uint128_t b) const
	{
		return a >> NUMBER_BITS == b >> NUMBER_BITS && line_continues(lines, a);
	}

	__device__ uint64_t word(uint32_t number, uint64_t at) const
	{
		return line_word(lines, number, at);
	}

	__device__ uint64_t first_difference(uint32_t a, uint32_t b, uint64_t at,
					     uint64_t limit) const
	{
		const uint64_t difference =
			line_first_difference(string_at(lines, a), string_at(lines, b), at, limit);

		return difference < limit ?
			       at + (difference - at) / LINE_WORD_NBYTES * LINE_WORD_NBYTES :
			       limit;
	}
};

int launch_count_ties(struct kernel_tie_keys keys, const void *list, uint64_t n, void *scratch,
		      struct tie_counts *ties, CUstream_st *stream)
{
	return keys.lines ?
		       count_ties(line_tie_keys{ *keys.lines }, list, n, scratch, ties, stream) :
		       count_ties(item_keys{ *keys.items }, list, n, scratch, ties, stream);
}

int launch_break_ties(struct kernel_tie_keys keys, const struct tie_break_task *task,
		      CUstream_st *stream)
{
	return keys.lines ? break_ties(line_tie_keys{ *keys.lines }, task, stream) :
			    break_ties(item_keys{ *keys.items }, task, stream);
}

int launch_find_common_prefix(struct kernel_tie_keys keys, const void *list, uint64_t n,
			      uint64_t at, uint64_t *common_nbytes, CUstream_st *stream)
{
	return keys.lines ? find_common(line_tie_keys{ *keys.lines }, list, n, at, UINT64_MAX,
					common_nbytes, stream) :
			    find_common(item_keys{ *keys.items }, list, n, at,
					at + round_up(keys.items->keys.key_nbytes - at, 8),
					common_nbytes, stream);
}
