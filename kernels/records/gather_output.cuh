/*
 * gather_output - where an item goes when it is gathered, and what is found out about it
 *
 * Element i goes to place i, or, if only the first of equal ones are kept, to the number of firsts
 * before it; nowhere from the limit on. An item that is not kept is digested all the same. Counts
 * of those that are not are added to the one that stands for them, in an array of their own: the
 * counts in items lie at any address.
 */
#pragma once

#include "kernels/records/staged_rows.cuh"

static constexpr uint32_t NOWHERE = UINT32_MAX;

/* What the threads of a block have found. */
struct tally {
	uint64_t n_kept, kept_sum, n_dropped, dropped_sum, n_disorders, n_counted;
};

/* Firsts among the first i elements; all of them if that is not asked. */
__device__ __forceinline__ uint64_t firsts_before(const gather_task &task, uint64_t i)
{
	if (!task.firsts.equal)
		return i;
	if (i == task.n)
		return *task.firsts.n;
	return task.firsts.before[i / WARP] +
	       __popc(~task.firsts.equal[i / WARP] & ((1u << i % WARP) - 1));
}

__device__ __forceinline__ bool is_first(const gather_task &task, uint64_t i)
{
	return !task.firsts.equal || !(task.firsts.equal[i / WARP] >> i % WARP & 1);
}

/* How many of the first i elements are kept. */
__device__ __forceinline__ uint64_t kept_before(const gather_task &task, uint64_t i)
{
	const uint64_t n = firsts_before(task, i);

	return n < task.limit ? n : task.limit;
}

/* The place of element i, or NOWHERE. */
__device__ __forceinline__ uint32_t place_of(const gather_task &task, uint64_t i)
{
	const uint64_t place = firsts_before(task, i);

	return is_first(task, i) && place < task.limit ? (uint32_t)place : NOWHERE;
}

__device__ __forceinline__ const unsigned char *item_of(const gather_task &task, uint64_t i)
{
	return item_at(task.items, number_at(task.elements, task.element_nbytes, i));
}

__device__ __forceinline__ uint64_t count_of(const gather_task &task, const unsigned char *item)
{
	const uint64_t count = task.has_count ? bytes_load(item, 8) : 1;

	return task.has_count && task.count_is_be ? code_swap_8(count) : count;
}

__device__ __forceinline__ void tally_hash(struct tally &tally, uint64_t hash, bool is_kept)
{
	tally.kept_sum += is_kept ? hash : 0;
	tally.dropped_sum += is_kept ? 0 : hash;
	tally.n_kept += is_kept;
	tally.n_dropped += !is_kept;
}

/*
 * Add the count of element i, an item in shared or device memory, to that of the one which stands
 * for it: of the firsts up to i the last. It may be beyond the limit.
 */
__device__ __forceinline__ void tally_count(struct tally &tally, const gather_task &task,
					    uint64_t i, const unsigned char *item)
{
	const uint64_t stands = firsts_before(task, i) + is_first(task, i) - 1;
	const uint64_t count = count_of(task, item);

	if (stands >= task.limit)
		return;
	tally.n_counted += count;
	if (task.counts)
		atomicAdd((unsigned long long *)&task.counts[stands], (unsigned long long)count);
}

__device__ __forceinline__ void report(sweep_memory &memory, const struct tally &tally,
				       const gather_task &task)
{
	gather_findings *found = task.findings;
	const uint64_t n_disorders = block_sum(memory, tally.n_disorders);
	const uint64_t n_counted = block_sum(memory, tally.n_counted);

	block_add_digest(memory, tally.n_kept, tally.kept_sum, &found->digest);
	block_add_digest(memory, tally.n_dropped, tally.dropped_sum, &found->dropped);
	if (threadIdx.x == 0) {
		atomicAdd((unsigned long long *)&found->n_disorders,
			  (unsigned long long)n_disorders);
		atomicAdd((unsigned long long *)&found->n_counted, (unsigned long long)n_counted);
	}
	if (threadIdx.x == 0 && blockIdx.x == 0)
		found->n = kept_before(task, task.n);
}

__device__ __forceinline__ void copy_item(void *to, const unsigned char *item, uint32_t nbytes,
					  uint32_t thread, uint32_t n_threads)
{
	for (uint32_t i = thread; to && i < nbytes; i += n_threads)
		((unsigned char *)to)[i] = item[i];
}
