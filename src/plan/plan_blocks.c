/*
 * plan_blocks - how long blocks of stored runs are, and how many runs are merged at once (see
 * plan.h)
 */
#include "src/plan/plan_internal.h"

#include "src/plan/plan_passes.h"

enum {
	LEAST_BLOCK_NBYTES = 4 << 10,
	MOST_BLOCK_NBYTES = 1 << 20,
	RANGE_BLOCKS = 100, /* of a run, at least, in the range of a rank */
	SMALL_REST_PART = 8,
	LONG_BLOCK_NBYTES = 64 << 10, /* for a message of its own */
	UNKNOWN_INPUT_TIMES_MEMORY = 32,
	USUAL_FAN_IN = 32, /* that an index of its usual part must leave */
	LEAST_FAN_IN = 2,
	MOST_FAN_IN = 1 << 20,
};

/* Runs that will be spilled from an input that takes input_nbytes in chunks. */
static uint64_t expected_runs(const struct plan *plan, uint64_t input_nbytes)
{
	return expect_runs(plan, divide_up(input_nbytes, plan->chunk_nbytes));
}

uint64_t plan_expected_input_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       plan->memory_nbytes * UNKNOWN_INPUT_TIMES_MEMORY :
		       plan_input_in_chunks_nbytes(request);
}

uint64_t plan_stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t input_nbytes = plan_expected_input_nbytes(request, plan);
	const uint64_t most_nbytes = request->limit ? times(request->limit, plan->resident_nbytes) :
						      UINT64_MAX;
	const uint64_t run_nbytes = at_most(plan->spill_chunks * plan->chunk_nbytes, most_nbytes);
	uint64_t nbytes;

	if (request->n_input_runs)
		return input_nbytes;
	nbytes = times(expected_runs(plan, input_nbytes), run_nbytes);
	return request->counts_first || plan_has_ranks(request) ?
		       at_least(nbytes, at_most(input_nbytes, most_nbytes)) :
		       nbytes;
}

uint64_t plan_expected_stored_runs(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_own =
		request->n_input_runs ?
			request->n_input_runs :
			expected_runs(plan, plan_expected_input_nbytes(request, plan));

	/* And what is resident in the end is one more. */
	return plan_has_ranks(request) ? times(n_own + 1, request->n_ranks) : n_own;
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
 * index has room, then 2. An index that has none then is too large for this memory (is_enough).
 */
static uint64_t nbytes_per_block(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t shortest =
		divide_up(9 * plan_merged_record_nbytes(request, plan), 4 * plan->resident_nbytes);

	return plan_most_windows(plan) * at_least(shortest, 6);
}

/*
 * Where a rank's range begins and ends, others read the same block, of each run, and ranges differ
 * by as much: a percent of the range at most.
 */
static uint64_t most_block_nbytes(const struct plan_request *request, uint64_t nbytes,
				  uint64_t n_runs)
{
	return plan_has_ranks(request) ?
		       at_most(nbytes / (RANGE_BLOCKS * n_runs), MOST_BLOCK_NBYTES) :
		       MOST_BLOCK_NBYTES;
}

static void plan_blocks_with(const struct plan_request *request, struct plan *plan,
			     uint64_t nbytes_of_each)
{
	const uint64_t per_block = nbytes_per_block(request, plan);
	const uint64_t n_runs = at_least(plan_expected_stored_runs(request, plan), 1);
	const uint64_t nbytes = plan_stored_nbytes(request, plan);
	const uint64_t usual =
		divide_up(nbytes, plan->memory_nbytes / PLAN_USUAL_INDEX_PART / nbytes_of_each);
	const uint64_t least = divide_up(nbytes, plan_index_room_nbytes(plan) / nbytes_of_each);
	const uint64_t merge_nbytes = plan->last_merge_nbytes;
	uint64_t block_nbytes = merge_nbytes / per_block / n_runs;

	block_nbytes =
		at_least(block_nbytes, at_most(usual, merge_nbytes / (per_block * USUAL_FAN_IN)));
	block_nbytes =
		at_least(block_nbytes, at_most(least, merge_nbytes / (per_block * LEAST_FAN_IN)));
	block_nbytes = at_most(block_nbytes, most_block_nbytes(request, nbytes, n_runs));
	block_nbytes = at_least(block_nbytes, LEAST_BLOCK_NBYTES);
	block_nbytes = at_least(block_nbytes, plan->resident_nbytes);
	plan->block_nbytes = at_least(block_nbytes, request->least_block_nbytes);
	plan->fan_in = (uint32_t)at_most(at_least(merge_nbytes / (per_block * plan->block_nbytes),
						  LEAST_FAN_IN),
					 request->batch_size ? request->batch_size : MOST_FAN_IN);
}

static bool merges_at_once(const struct plan_request *request, const struct plan *plan)
{
	return plan_expected_stored_runs(request, plan) <= plan->fan_in;
}

/* Long enough for a message each; or longer ones would cost a large part of the input. */
static bool has_long_blocks(const struct plan_request *request, const struct plan *plan)
{
	return plan->block_nbytes >= LONG_BLOCK_NBYTES ||
	       plan->n_chunks * plan->chunk_nbytes >
		       plan_expected_input_nbytes(request, plan) / SMALL_REST_PART;
}

/*
 * What is left in chunks is stored in memory, or to be written, and then the merge has all of the
 * memory. It is worth that if it takes a pass away, or blocks were so short that messages are.
 */
static void plan_rest(const struct plan_request *request, struct plan *plan)
{
	const uint64_t entry_nbytes = plan_entry_nbytes(request, request->counts_first);

	/* A checkpoint keeps what it keeps on a disk. */
	plan->keeps_rest = !plan->copies && !request->keeps_index;
	plan->last_merge_nbytes = plan->merge_nbytes;
	if (plan_has_ranks(request) && plan->fits && !plan->copies)
		plan->last_merge_nbytes =
			at_least(plan->merge_nbytes,
				 plan->device_nbytes - at_most(plan->n_chunks * plan->chunk_nbytes +
								       plan_lanes_nbytes(plan),
							       plan->device_nbytes));
	plan_blocks_with(request, plan, entry_nbytes);
	if (!plan_has_ranks(request) || plan->fits || plan->copies || request->n_input_runs ||
	    (merges_at_once(request, plan) && has_long_blocks(request, plan)))
		return;
	plan->keeps_rest = false;
	plan->last_merge_nbytes = plan->device_nbytes;
	plan_blocks_with(request, plan, entry_nbytes);
}

/*
 * Ranges, which take shorter blocks, must not cost a pass. Nor must they shorten those of an input
 * of unknown size, as the index of more blocks is full sooner: there may be no end of it.
 */
void plan_blocks(const struct plan_request *request, struct plan *plan)
{
	const bool is_known = request->input_nbytes != PLAN_SIZE_UNKNOWN;

	plan->n_ranges = plan_n_ranges(request, plan, is_known ? request->input_nbytes : 0);
	plan_rest(request, plan);
	if (merges_at_once(request, plan))
		return;
	plan->n_ranges = 1;
	plan_rest(request, plan);
	if (!merges_at_once(request, plan))
		plan_blocks_with(request, plan, plan_entry_nbytes(request, true));
}
