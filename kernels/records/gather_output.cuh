/*
 * gather_output - the output position of a gathered item, and the statistics of a gather
 *
 * The position of element i is i or, if only heads are kept, the number of heads before it. Items
 * after the limit are dropped. Dropped items are digested as well. Their counts are added to the
 * count of their head, in a separate array, because the counts in items have any alignment.
 */
#pragma once

#include "kernels/records/staged_rows.cuh"

static constexpr uint32_t NO_POSITION = UINT32_MAX;

/* Statistics of the threads of a block. */
struct tally {
	uint64_t n_kept, kept_sum, n_dropped, dropped_sum, n_disorders, n_counted;
};

/* Return the number of heads among the first i elements; i if heads are not needed. */
__device__ __forceinline__ uint64_t count_heads_before(const gather_task &task, uint64_t i)
{
	if (!task.heads.equal)
		return i;
	if (i == task.n)
		return *task.heads.n;
	return task.heads.before[i / WARP] +
	       __popc(~task.heads.equal[i / WARP] & ((1u << i % WARP) - 1));
}

__device__ __forceinline__ bool is_head(const gather_task &task, uint64_t i)
{
	return !task.heads.equal || !(task.heads.equal[i / WARP] >> i % WARP & 1);
}

/* Return the number of the first i elements that are kept. */
__device__ __forceinline__ uint64_t kept_before(const gather_task &task, uint64_t i)
{
	const uint64_t n = count_heads_before(task, i);

	return n < task.limit ? n : task.limit;
}

/* Return the output position of element i, or NO_POSITION. */
__device__ __forceinline__ uint32_t output_position(const gather_task &task, uint64_t i)
{
	const uint64_t position = count_heads_before(task, i);

	return is_head(task, i) && position < task.limit ? (uint32_t)position : NO_POSITION;
}

/* Return whether fewer items than the limit are kept before element i. */
__device__ __forceinline__ bool is_within_limit(const gather_task &task, uint64_t i)
{
	return count_heads_before(task, i) < task.limit;
}

__device__ __forceinline__ const unsigned char *sorted_item(const gather_task &task, uint64_t i)
{
	return item_at(task.items, number_at(task.elements, task.element_nbytes, i));
}

__device__ __forceinline__ uint64_t item_count(const gather_task &task, const unsigned char *item)
{
	const uint64_t count = task.has_count ? load_bytes(item, 8) : 1;

	return task.has_count && task.count_is_big_endian ? byte_swap_8(count) : count;
}

__device__ __forceinline__ void tally_hash(struct tally &tally, uint64_t hash, bool is_kept)
{
	tally.kept_sum += is_kept ? hash : 0;
	tally.dropped_sum += is_kept ? 0 : hash;
	tally.n_kept += is_kept;
	tally.n_dropped += !is_kept;
}

/*
 * Add the count of element i to the count of its head, unless the head is after the limit. The head
 * is the last one up to i, or with keep_last the first one from i on. The item may be in shared or
 * device memory.
 */
__device__ __forceinline__ void tally_count(struct tally &tally, const gather_task &task,
					    uint64_t i, const unsigned char *item)
{
	const uint64_t head_index =
		count_heads_before(task, i) - (!task.heads.keep_last && !is_head(task, i));
	const uint64_t count = item_count(task, item);

	if (head_index >= task.limit)
		return;
	tally.n_counted += count;
	if (task.counts)
		atomicAdd((unsigned long long *)&task.counts[head_index],
			  (unsigned long long)count);
}

__device__ __forceinline__ void add_tally(stream_pass_memory &memory, const struct tally &tally,
					  const gather_task &task)
{
	kernel_gather_result *result = task.result;
	const uint64_t n_disorders = block_sum(memory, tally.n_disorders);
	const uint64_t n_counted = block_sum(memory, tally.n_counted);

	block_add_digest(memory, tally.n_kept, tally.kept_sum, &result->digest);
	block_add_digest(memory, tally.n_dropped, tally.dropped_sum, &result->dropped);
	if (threadIdx.x == 0) {
		atomicAdd((unsigned long long *)&result->n_disorders,
			  (unsigned long long)n_disorders);
		atomicAdd((unsigned long long *)&result->n_counted, (unsigned long long)n_counted);
	}
	if (threadIdx.x == 0 && blockIdx.x == 0)
		result->n = kept_before(task, task.n);
}

__device__ __forceinline__ void copy_item(void *to, const unsigned char *item, uint32_t nbytes,
					  uint32_t thread, uint32_t n_threads)
{
	for (uint32_t i = thread; to && i < nbytes; i += n_threads)
		((unsigned char *)to)[i] = item[i];
}
