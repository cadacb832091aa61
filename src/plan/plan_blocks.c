/*
 * plan_blocks - how long blocks of stored runs are, and how many runs are merged at once (see
 * plan.h)
 */
#include "src/plan/plan_internal.h"

#include "src/plan/plan_passes.h"

enum {
	MIN_BLOCK_NBYTES = 4 << 10,
	MAX_BLOCK_NBYTES = 1 << 20,
	MIN_PARTITION_BLOCKS = 100, /* of a run, at least, in the range of a rank */
	SMALL_REMAINDER_DIVISOR = 8,
	LARGE_BLOCK_NBYTES = 64 << 10, /* for a message of its own */
	UNKNOWN_INPUT_MEMORY_FACTOR = 32,
	DEFAULT_FAN_IN = 32, /* that an index of its usual part must leave */
	MIN_FAN_IN = 2,
	MAX_FAN_IN = 1 << 20,
};

/* Runs that will be spilled from an input that takes input_nbytes in chunks. */
static uint64_t expected_spilled_runs(const struct plan *plan, uint64_t input_nbytes)
{
	return plan_spilled_runs(plan, divide_up(input_nbytes, plan->chunk_nbytes));
}

uint64_t plan_expected_input_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       plan->memory_nbytes * UNKNOWN_INPUT_MEMORY_FACTOR :
		       plan_input_in_chunks_nbytes(request);
}

uint64_t plan_stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t input_nbytes = plan_expected_input_nbytes(request, plan);
	const uint64_t max_nbytes =
		request->limit ? saturating_mul(request->limit, plan->resident_nbytes) : UINT64_MAX;
	const uint64_t run_nbytes = u64_min(plan->chunks_per_run * plan->chunk_nbytes, max_nbytes);
	uint64_t nbytes;

	if (request->n_input_runs)
		return input_nbytes;
	nbytes = saturating_mul(expected_spilled_runs(plan, input_nbytes), run_nbytes);
	return request->needs_count_pass || plan_is_distributed(request) ?
		       u64_max(nbytes, u64_min(input_nbytes, max_nbytes)) :
		       nbytes;
}

uint64_t plan_expected_stored_runs(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_local_runs =
		request->n_input_runs ?
			request->n_input_runs :
			expected_spilled_runs(plan, plan_expected_input_nbytes(request, plan));

	/* And what is resident in the end is one more. */
	return plan_is_distributed(request) ? saturating_mul(n_local_runs + 1, request->n_ranks) :
					      n_local_runs;
}

/*
 * n windows in flight, each with room to read and to write the quota and the overhang of k runs;
 * with the quota twice the overhang:
 *
 *	n * 2 * (2 + 1) * k * block <= merge memory
 *
 * A window may also be as short as its overhang, and a quarter of that longer if resident runs take
 * part. Where records have much scratch beside them, that is more:
 *
 *	n * (1 + 1 + 1/4) * k * block * (what a record takes / a record) <= merge memory
 *
 * Of what is many times as large as the memory there would be so many blocks that their index
 * filled it; then they are longer, and fewer runs are merged at once: 32 at least as long as the
 * index has room, then 2. An index that has none then is too large for this memory (is_sufficient).
 */
static uint64_t merge_nbytes_per_block(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t min_factor =
		divide_up(9 * plan_window_record_nbytes(request, plan), 4 * plan->resident_nbytes);

	return plan_max_windows(plan) * u64_max(min_factor, 6);
}

/*
 * Where a rank's range begins and ends, others read the same block, of each run, and ranges differ
 * by as much: a percent of the range at most.
 */
static uint64_t max_block_nbytes(const struct plan_request *request, uint64_t nbytes,
				 uint64_t n_runs)
{
	return plan_is_distributed(request) ?
		       u64_min(nbytes / (MIN_PARTITION_BLOCKS * n_runs), MAX_BLOCK_NBYTES) :
		       MAX_BLOCK_NBYTES;
}

static void plan_blocks_for_index(const struct plan_request *request, struct plan *plan,
				  uint64_t entry_nbytes)
{
	const uint64_t nbytes_per_block = merge_nbytes_per_block(request, plan);
	/* The fan-in is never less than MIN_FAN_IN, so windows need room for as many blocks. */
	const uint64_t n_runs = u64_max(plan_expected_stored_runs(request, plan), MIN_FAN_IN);
	const uint64_t nbytes = plan_stored_nbytes(request, plan);
	const uint64_t default_min_nbytes =
		divide_up(nbytes, plan->memory_nbytes / PLAN_DEFAULT_INDEX_DIVISOR / entry_nbytes);
	const uint64_t required_min_nbytes =
		divide_up(nbytes, plan_max_index_nbytes(plan) / entry_nbytes);
	const uint64_t merge_nbytes = plan->final_merge_nbytes;
	uint64_t block_nbytes = merge_nbytes / nbytes_per_block / n_runs;

	block_nbytes =
		u64_max(block_nbytes, u64_min(default_min_nbytes,
					      merge_nbytes / (nbytes_per_block * DEFAULT_FAN_IN)));
	block_nbytes =
		u64_max(block_nbytes, u64_min(required_min_nbytes,
					      merge_nbytes / (nbytes_per_block * MIN_FAN_IN)));
	block_nbytes = u64_min(block_nbytes, max_block_nbytes(request, nbytes, n_runs));
	block_nbytes = u64_max(block_nbytes, MIN_BLOCK_NBYTES);
	block_nbytes = u64_max(block_nbytes, plan->resident_nbytes);
	plan->block_nbytes = u64_max(block_nbytes, request->min_block_nbytes);
	plan->fan_in = (uint32_t)u64_min(
		u64_max(merge_nbytes / (nbytes_per_block * plan->block_nbytes), MIN_FAN_IN),
		request->batch_size ? request->batch_size : MAX_FAN_IN);
}

static bool is_single_merge(const struct plan_request *request, const struct plan *plan)
{
	return plan_expected_stored_runs(request, plan) <= plan->fan_in;
}

/* Long enough for a message each; or longer ones would cost a large part of the input. */
static bool has_large_blocks(const struct plan_request *request, const struct plan *plan)
{
	return plan->block_nbytes >= LARGE_BLOCK_NBYTES ||
	       plan->n_chunks * plan->chunk_nbytes >
		       plan_expected_input_nbytes(request, plan) / SMALL_REMAINDER_DIVISOR;
}

/*
 * What is left in chunks is stored in memory, or to be written, and then the merge has all of the
 * memory. It is worth that if it takes a pass away, or blocks were so short that messages are.
 */
static void plan_last_run(const struct plan_request *request, struct plan *plan)
{
	const uint64_t entry_nbytes = plan_index_entry_nbytes(request, request->needs_count_pass);

	/* A checkpoint keeps what it keeps on a disk. */
	plan->keep_last_run_in_memory = !plan->copies_to_device && !request->keeps_checkpoint_index;
	plan->final_merge_nbytes = plan->merge_nbytes;
	if (plan_is_distributed(request) && plan->fits_in_memory && !plan->copies_to_device)
		plan->final_merge_nbytes =
			u64_max(plan->merge_nbytes,
				plan->device_nbytes - u64_min(plan->n_chunks * plan->chunk_nbytes +
								      plan_queues_nbytes(plan),
							      plan->device_nbytes));
	plan_blocks_for_index(request, plan, entry_nbytes);
	if (!plan_is_distributed(request) || plan->fits_in_memory || plan->copies_to_device ||
	    request->n_input_runs ||
	    (is_single_merge(request, plan) && has_large_blocks(request, plan)))
		return;
	plan->keep_last_run_in_memory = false;
	plan->final_merge_nbytes = plan->device_nbytes;
	plan_blocks_for_index(request, plan, entry_nbytes);
}

/*
 * Ranges, which take shorter blocks, must not cost a pass. Nor must they shorten those of an input
 * of unknown size, as the index of more blocks is full sooner: there may be no end of it.
 */
void plan_blocks(const struct plan_request *request, struct plan *plan)
{
	const bool has_known_size = request->input_nbytes != PLAN_SIZE_UNKNOWN;

	plan->n_partitions =
		plan_partition_limit(request, plan, has_known_size ? request->input_nbytes : 0);
	plan_last_run(request, plan);
	if (is_single_merge(request, plan))
		return;
	plan->n_partitions = 1;
	plan_last_run(request, plan);
	if (!is_single_merge(request, plan))
		plan_blocks_for_index(request, plan, plan_index_entry_nbytes(request, true));
}
