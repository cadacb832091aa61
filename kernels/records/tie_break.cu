/*
 * tie_break - elements that tie in their part of the key are put in order by the rest of it
 *
 * Round by round, eight bytes at a time, and only where there are ties. The tied elements of a list
 * are copied out, each with its group and the next bytes of its item's key:
 *
 *	element      | first 12 bytes of the key | number |
 *	of a round   | group | next 8 bytes      | number |
 *
 * and the list of these is sorted by launch_sort(): groups stay together and in order, since they
 * are numbered in order, and numbers are distinct, so it is stable. It then occupies the same
 * places among the elements, which take over the numbers. What ties in the new list is the next
 * round's. Groups get new numbers in every round, so a group needs no more than 32 bits.
 *
 * Long keys that agree for long would cost a round for every eight bytes. So when all of a
 * list ties the host asks how far keys agree, and goes on there.
 */
#include "kernels/records/items.cuh"
#include "kernels/records/tie_flags.cuh"

/* In the scratch of ties. */
struct tie_marks {
	uint32_t *equal; /* a word for each row */
	uint64_t *sums;  /* of each stretch: tied elements, and groups in the upper half */
};

static struct tie_marks lay_out_marks(const void *scratch, uint64_t n)
{
	struct tie_marks marks;

	marks.equal = (uint32_t *)scratch;
	marks.sums = (uint64_t *)(marks.equal + stretches_for(n) * WARP);
	return marks;
}

size_t kernel_ties_scratch_nbytes(uint64_t n)
{
	return stretches_for(n) * (WARP * sizeof(uint32_t) + sizeof(uint64_t));
}

/* Does element i agree with the one before it in all but the number? */
struct prefix_agrees {
	const uint128_t *list;

	__device__ bool operator()(uint64_t i) const
	{
		return list[i - 1] >> NUMBER_BITS == list[i] >> NUMBER_BITS;
	}
};

__global__ void __launch_bounds__(sweep::n_threads)
	mark_ties(const uint128_t *list, uint64_t n, tie_marks marks)
{
	const unsigned lane = threadIdx.x % WARP;
	const prefix_agrees agrees = { list };

	for (uint64_t stretch = first_stretch(); stretch < stretches_for(n);
	     stretch += stretch_step()) {
		const uint64_t base = stretch * STRETCH, next = base + STRETCH;
		const uint32_t word = vote_rows(base, n, agrees);
		const uint32_t tied = tied_of(word, lane == WARP - 1 && next < n && agrees(next));
		const uint64_t heads = (uint64_t)__popc(tied & ~word) << 32;
		const uint64_t sum = lanes_sum(heads + __popc(tied), WARP);

		marks.equal[stretch * WARP + lane] = word;
		if (lane == 0)
			marks.sums[stretch] = sum;
	}
}

static_assert(sizeof(tie_counts) == sizeof(uint64_t), "the counts are one sum");

int launch_count_ties(const void *elements, uint64_t n, void *scratch, struct tie_counts *ties,
		      CUstream_st *stream)
{
	const struct tie_marks marks = lay_out_marks(scratch, n);

	if (n == 0)
		return (int)cudaMemsetAsync(ties, 0, sizeof *ties, stream);
	LAUNCH(mark_ties, blocks_for(n, STRETCH * sweep::n_warps), sweep::n_threads, 0, stream,
	       (const uint128_t *)elements, n, marks);
	return launch_scan(marks.sums, stretches_for(n), (uint64_t *)(void *)ties, stream);
}

/* Copy what is tied out, and give it the next bytes of its key. */
__global__ void __launch_bounds__(sweep::n_threads)
	take_ties(kernel_items items, const uint128_t *list, const uint32_t *places, uint64_t n,
		  tie_marks marks, uint32_t at, uint128_t *next, uint32_t *next_places)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t stretch = first_stretch(); stretch < stretches_for(n);
	     stretch += stretch_step()) {
		const uint64_t base = stretch * STRETCH, end = base + STRETCH;
		const uint32_t word = marks.equal[stretch * WARP + lane];
		const uint32_t tied = tied_of(word, lane == WARP - 1 && end < n &&
							    marks.equal[(stretch + 1) * WARP] & 1);
		const uint32_t heads = tied & ~word;
		const uint64_t before =
			marks.sums[stretch] +
			lanes_sum_before((uint64_t)__popc(heads) << 32 | (uint64_t)__popc(tied),
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
				const uint64_t bytes =
					item_key_word(items, item_at(items, number), at);

				next[to] = (uint128_t)group << 96 |
					   (uint128_t)bytes << NUMBER_BITS | number;
				next_places[to] = places ? places[i] : (uint32_t)i;
			}
		}
	}
}

/* Put the numbers of a sorted list into the elements that it was taken from. */
__global__ void __launch_bounds__(sweep::n_threads)
	put_numbers(const uint128_t *list, const uint32_t *places, uint32_t n, uint128_t *elements)
{
	for (uint64_t i = (uint64_t)blockIdx.x * sweep::n_threads + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * sweep::n_threads)
		*(uint32_t *)(void *)&elements[places[i]] = number_of(list[i]);
}

int launch_refine(const struct refine_task *task, CUstream_st *stream)
{
	int r;

	LAUNCH(take_ties, blocks_for(task->n, STRETCH * sweep::n_warps), sweep::n_threads, 0,
	       stream, *task->items, (const uint128_t *)task->list, task->places, task->n,
	       lay_out_marks(task->ties_scratch, task->n), task->at, (uint128_t *)task->next,
	       task->next_places);
	r = (int)cudaGetLastError();
	if (!r)
		r = launch_sort(task->next, task->n_ties, sizeof(uint128_t), task->sort_scratch,
				stream);
	if (r)
		return r;
	LAUNCH(put_numbers, blocks_for(task->n_ties), sweep::n_threads, 0, stream,
	       (const uint128_t *)task->next, task->next_places, task->n_ties,
	       (uint128_t *)task->elements);
	return (int)cudaGetLastError();
}

/* Of two items that agree up to `at`: where they differ, or `limit` if that is further. */
__device__ __forceinline__ uint32_t reach_of(const kernel_items &items, const unsigned char *a,
					     const unsigned char *b, uint32_t at, uint32_t limit)
{
	while (at < limit && item_key_word(items, a, at) == item_key_word(items, b, at))
		at += 8;
	return at;
}

__global__ void __launch_bounds__(sweep::n_threads)
	find_reach(kernel_items items, const uint128_t *list, uint64_t n, uint32_t at,
		   uint32_t *reach)
{
	for (uint64_t i = (uint64_t)blockIdx.x * sweep::n_threads + threadIdx.x + 1; i < n;
	     i += (uint64_t)gridDim.x * sweep::n_threads) {
		const uint128_t a = list[i - 1], b = list[i];

		if (a >> NUMBER_BITS == b >> NUMBER_BITS)
			atomicMin(reach,
				  reach_of(items, item_at(items, number_of(a)),
					   item_at(items, number_of(b)), at, atomicAdd(reach, 0u)));
	}
}

__global__ void __launch_bounds__(1) set_reach(uint32_t *reach, uint32_t value)
{
	*reach = value;
}

int launch_find_reach(const struct kernel_items *items, const void *list, uint64_t n, uint32_t at,
		      uint32_t *reach, CUstream_st *stream)
{
	const uint32_t n_left = items->keys.key_nbytes - at;

	LAUNCH(set_reach, 1, 1, 0, stream, reach, at + (uint32_t)round_up(n_left, 8));
	if (n > 1)
		LAUNCH(find_reach, blocks_for(n), sweep::n_threads, 0, stream, *items,
		       (const uint128_t *)list, n, at, reach);
	return (int)cudaGetLastError();
}
