/*
 * plan_internal.h - what the files of the plan share
 *
 * Limits and input sizes may be any 64-bit numbers. Before anything is computed from them, limits
 * are bounded by PLAN_MAX_MEMORY_NBYTES, and what depends on input sizes by PLAN_MAX_DATA_NBYTES,
 * so that sums and small multiples cannot overflow. Other products use saturating_mul().
 */
#pragma once

#include "src/base/int_math.h"
#include "src/plan/plan.h"

/* Return the product, or UINT64_MAX if it overflows. */
static inline uint64_t saturating_mul(uint64_t value, uint64_t factor)
{
	uint64_t product;

	return __builtin_mul_overflow(value, factor, &product) ? UINT64_MAX : product;
}

/* Return whether the plan is for one of several ranks, which read the stored runs of all. */
static inline bool plan_is_distributed(const struct plan_request *request)
{
	return request->n_ranks > 1;
}

/* Return the number of records in a block of a spilled run. */
static inline uint64_t plan_block_records(const struct plan *plan)
{
	return plan->block_nbytes / plan->resident_nbytes;
}

/* --- plan_merge.c --- */

/*
 * Return the size of a record in a window of a merge of spilled runs: read, written, and scratch.
 */
uint64_t plan_window_record_nbytes(const struct plan_request *request, const struct plan *plan);
/* Return the maximum number of partitions of a final merge of `nbytes`. */
uint32_t plan_partition_limit(const struct plan_request *request, const struct plan *plan,
			      uint64_t nbytes);
/* Return the expected number of partitions. All else must be planned. */
uint32_t plan_expected_partitions(const struct plan_request *request, const struct plan *plan);
/* Return the windows in flight in all partitions of a device, including mapped output. */
uint64_t plan_max_windows(const struct plan *plan);

/* --- plan_passes.c --- */

/* Return the number of spilled runs of an input of n_chunks, if its size is known. */
uint64_t plan_spilled_runs(const struct plan *plan, uint64_t n_chunks);

/* Set the expectations; all else must be planned. */
void plan_merge_passes(const struct plan_request *request, struct plan *plan);
