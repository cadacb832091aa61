/*
 * plan_internal - what the parts of the plan share; of plan*.c only
 *
 * Limits and sizes of inputs may be any numbers of 64 bits. Limits are bounded by
 * PLAN_MAX_MEMORY_NBYTES, and what comes of inputs by PLAN_MAX_DATA_NBYTES, before anything is
 * computed from them, so that sums and multiples of them fit. Only that needs times().
 */
#pragma once

#include "src/base/int_math.h"
#include "src/plan/plan.h"

static inline uint64_t u64_max(uint64_t value, uint64_t min)
{
	return value < min ? min : value;
}

static inline uint64_t u64_min(uint64_t value, uint64_t max)
{
	return value > max ? max : value;
}

/* The product, or the largest number if it is larger. */
static inline uint64_t saturating_mul(uint64_t value, uint64_t factor)
{
	uint64_t product;

	return __builtin_mul_overflow(value, factor, &product) ? UINT64_MAX : product;
}

/* Is it one of several ranks, which reads what all have stored? */
static inline bool plan_is_distributed(const struct plan_request *request)
{
	return request->n_ranks > 1;
}

enum {
	PLAN_INDEX_DIVISOR = 4, /* of the memory, at most, for the index of runs */
	PLAN_DEFAULT_INDEX_DIVISOR = 8,
	PLAN_MIN_QUEUES = 2,
};

/* Records of a block of a stored run. */
static inline uint64_t plan_block_records(const struct plan *plan)
{
	return plan->block_nbytes / plan->resident_nbytes;
}

/* --- plan.c --- */

/* Of the host's memory, what is there for data; nothing is left by a mapping that is too large. */
uint64_t plan_data_nbytes(const struct plan *plan);
/* Does it store any runs? */
bool plan_stores_runs(const struct plan *plan);

/* --- plan_chunks.c --- */

/* Chunks and what sorts them, and the memory for merges while they are there. */
void plan_chunks(const struct plan_request *request, const struct device_info *info,
		 struct plan *plan);
/* UINT64_MAX: not known. */
uint64_t plan_input_records(const struct plan_request *request);
/* The size of the input in chunks, or PLAN_SIZE_UNKNOWN. */
uint64_t plan_input_in_chunks_nbytes(const struct plan_request *request);
/* What the queues of a device take that sort chunks. */
uint64_t plan_queues_nbytes(const struct plan *plan);

/* --- plan_blocks.c --- */

/* Blocks, fan-in and ranges of what is planned so far. */
void plan_blocks(const struct plan_request *request, struct plan *plan);
/* The size of the input in chunks, or something to plan with. */
uint64_t plan_expected_input_nbytes(const struct plan_request *request, const struct plan *plan);
/* Of that, what goes to stored runs, or is in inputs of a merge; and in how many. */
uint64_t plan_stored_nbytes(const struct plan_request *request, const struct plan *plan);
uint64_t plan_expected_stored_runs(const struct plan_request *request, const struct plan *plan);

/* --- plan_memory.c --- */

/* What is known of a block of a stored run; the most it may take of all blocks; what it does. */
uint64_t plan_index_entry_nbytes(const struct plan_request *request, bool merges_to_runs);
uint64_t plan_max_index_nbytes(const struct plan *plan);
uint64_t plan_index_nbytes(const struct plan_request *request, const struct plan *plan);
/* What those need that write and fetch blocks; and of the memory, what streams have. */
uint64_t plan_thread_codec_nbytes(const struct plan_request *request, const struct plan *plan);
uint64_t plan_block_codecs_nbytes(const struct plan_request *request, const struct plan *plan);
uint64_t plan_stream_codecs_nbytes(const struct plan_request *request, const struct plan *plan);
/* All of the host's memory that is needed at once. */
uint64_t plan_total_nbytes(const struct plan_request *request, const struct plan *plan);

/* --- plan_windows.c --- */

/* What each record of a merge of stored runs takes in a window: read, written, and scratch. */
uint64_t plan_window_record_nbytes(const struct plan_request *request, const struct plan *plan);

/* --- plan_partitions.c --- */

/* Of the final merge of so many bytes, at most. */
uint32_t plan_partition_limit(const struct plan_request *request, const struct plan *plan,
			      uint64_t nbytes);
/* Those that it will be made in, when all else is planned. */
uint32_t plan_expected_partitions(const struct plan_request *request, const struct plan *plan);
/* Of all of them, in flight; what is mapped of the output counts, too. */
uint64_t plan_max_windows(const struct plan *plan);
