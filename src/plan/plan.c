/*
 * plan - how much of what, before anything starts (see plan.h)
 *
 * What is here divides the memory, and has the parts of the plan made in turn: chunks
 * (plan_chunks.c), blocks (plan_blocks.c), windows and ranges of merges (plan_windows.c,
 * plan_partitions.c), what is to be expected of all that (plan_passes.c), and what it needs
 * (plan_memory.c).
 */
#include "src/plan/plan_internal.h"

#include <stdio.h>

#include "src/plan/plan_passes.h"

enum {
	MOST_WRITERS = 2, /* a file has one lock for writes: more only wait for it */
	FETCHERS_OF_RANKS = 8,
	CODECS_PART = 16, /* of the memory, at most */
	ROUNDS = 3,
};

uint64_t plan_data_nbytes(const struct plan *plan)
{
	const uint64_t others_nbytes = plan->side_nbytes + plan->index_nbytes +
				       at_most(plan->mapped_nbytes, plan->memory_nbytes);

	return plan->memory_nbytes - at_most(others_nbytes, plan->memory_nbytes);
}

/* Does the device pack what is spilled? It pays for what goes over a link. */
static bool device_packs(const struct plan_request *request, const struct plan *plan)
{
	return plan->copies && (!plan->fits || request->n_ranks > 1) && request->stores_codes &&
	       compression_takes_delta(&request->compression);
}

/* Does it store any runs? */
bool plan_stores_runs(const struct plan *plan)
{
	return plan->temporary_nbytes || plan->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/* All that depends on how much memory there is for data. */
static void plan_data(const struct plan_request *request, const struct device_info *info,
		      struct plan *plan)
{
	plan->device_nbytes =
		info->unified ? plan_data_nbytes(plan) :
				at_most(at_least(request->device_nbytes, PLAN_LEAST_MEMORY_NBYTES),
					PLAN_MOST_MEMORY_NBYTES);
	plan_chunks(request, info, plan);
	plan->packs = device_packs(request, plan);
	plan_blocks(request, plan);
	plan_expect(request, plan);
}

/*
 * Who fetches blocks of another rank waits for messages and takes no processor meanwhile, so there
 * are more of them than readers, as far as there is room for what decodes.
 */
static uint32_t n_fetchers(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codec_nbytes = at_least(plan_codec_nbytes(request, plan), 1);
	const uint64_t n = plan->memory_nbytes / CODECS_PART / codec_nbytes;

	if (!plan_has_ranks(request) || request->n_input_runs || n <= plan->n_writers)
		return plan->n_readers;
	return (uint32_t)at_least(at_most(n - plan->n_writers, FETCHERS_OF_RANKS), plan->n_readers);
}

/* What a sort as it is planned takes besides data. */
static void plan_side(const struct plan_request *request, struct plan *plan)
{
	uint64_t index_nbytes;

	plan->n_fetchers = n_fetchers(request, plan);
	plan->side_nbytes = plan_streams_nbytes(request, plan);
	if (plan_stores_runs(plan))
		plan->side_nbytes += at_most(plan_codecs_nbytes(request, plan),
					     plan->memory_nbytes / CODECS_PART);
	/* What of the index is beyond its usual part goes beside the memory, as far as it can. */
	index_nbytes = plan_index_nbytes(request, plan);
	plan->index_nbytes = at_most(index_nbytes, plan->memory_nbytes / PLAN_USUAL_INDEX_PART);
	index_nbytes -= at_most(index_nbytes, PLAN_BESIDE_NBYTES / 2);
	plan->index_nbytes = at_least(plan->index_nbytes,
				      at_most(index_nbytes, plan->memory_nbytes / PLAN_INDEX_PART));
	plan->most_stored_blocks = plan_index_room_nbytes(plan) / plan_entry_nbytes(request, true);
}

uint64_t plan_most_threads(uint64_t memory_nbytes)
{
	return at_least(memory_nbytes / PLAN_THREAD_NBYTES, PLAN_LEAST_LANES);
}

/*
 * What is at the side depends on the blocks and on whether anything is stored, and these on how
 * much is left for data: so both are computed in turn, until little changes.
 */
static void plan_all(const struct plan_request *request, const struct device_info *info,
		     struct plan *plan)
{
	plan->n_windows = plan->n_lanes + plan->n_writers + 1;
	plan->side_nbytes = plan_streams_nbytes(request, plan);
	plan->index_nbytes = 0;
	for (int i = 0; i < ROUNDS; i++) {
		plan_data(request, info, plan);
		plan_side(request, plan);
	}
	plan_data(request, info, plan);
	plan->full_index_nbytes = plan_index_nbytes(request, plan);
	plan->total_nbytes = plan_total_nbytes(request, plan);
	plan->is_enough = plan->total_nbytes <= plan->memory_nbytes + PLAN_BESIDE_NBYTES;
}

/* All that is planned with may be more than was asked for: the least that can be. */
static uint64_t exchange_nbytes(const struct plan_request *request, uint64_t memory_nbytes)
{
	const uint64_t all_nbytes = request->memory_nbytes + request->exchange_nbytes;

	return at_most(request->exchange_nbytes, all_nbytes - at_most(memory_nbytes, all_nbytes));
}

/* With that much of the memory. */
static void plan_within(const struct plan_request *request, uint64_t memory_nbytes,
			struct plan *plan)
{
	struct plan_request undivided = *request;
	struct device_info info;

	device_describe(request->device, &info);
	*plan = (struct plan){
		.exchange_nbytes = exchange_nbytes(request, memory_nbytes),
		.memory_nbytes = memory_nbytes,
		.input_nbytes = request->input_nbytes,
		.record_nbytes = (uint32_t)request->layout->record_nbytes,
		.element_nbytes = request->layout->element_nbytes,
		.resident_nbytes = request->layout->resident_nbytes,
		.copies = !info.unified,
		.shares_processors = info.unified,
		.n_lanes = info.n_lanes,
		.n_ranks = (uint32_t)at_least(request->n_ranks, 1),
		.n_devices = info.unified ? 1 : (uint32_t)at_least(request->n_devices, 1),
		.n_writers = (uint32_t)at_most(request->n_threads, MOST_WRITERS),
	};
	plan->n_readers = (uint32_t)at_most(request->n_threads,
					    UINT64_C(1) * PLAN_MOST_READERS * plan->n_devices);
	if (info.unified)
		plan->n_lanes =
			(uint32_t)at_most(info.n_lanes, plan_most_threads(plan->memory_nbytes));
	if (layout_refers(request->layout)) {
		plan->mapped_nbytes = request->input_nbytes;
		plan->gathered_nbytes = plan->record_nbytes;
	}
	if (request->ordered_output)
		plan->n_writers = 1;
	snprintf(plan->device, sizeof plan->device, "%s",
		 request->device_name ? request->device_name : info.name);
	plan_all(request, &info, plan);
	/* What does not shrink: blocks of ranges, then lanes and windows, are the first to go. */
	if (!plan->is_enough && plan->n_ranges > 1) {
		undivided.n_ranges = 1;
		request = &undivided;
		plan_all(request, &info, plan);
	}
	while (!plan->is_enough && info.unified && plan->n_lanes > PLAN_LEAST_LANES) {
		plan->n_lanes = (uint32_t)at_least(plan->n_lanes / 2, PLAN_LEAST_LANES);
		plan->n_readers = (uint32_t)at_most(plan->n_readers, plan->n_lanes);
		plan_all(request, &info, plan);
	}
}

/* What is too much for any plan with that memory: what is there before one is made. */
static bool is_hopeless(const struct plan_request *request, const struct plan *plan,
			uint64_t memory_nbytes)
{
	const uint64_t streams_nbytes = at_most(request->streams_nbytes, PLAN_MOST_MEMORY_NBYTES);

	return at_least(streams_nbytes, plan->mapped_nbytes) > memory_nbytes + PLAN_BESIDE_NBYTES;
}

/*
 * A plan for less memory that is enough is one for more, too. Not all that a plan takes grows with
 * the memory evenly: blocks that become longer with it may make codecs grow, and windows have room
 * for a record of each chunk, of which there may be more. So a plan that is not enough is replaced
 * by that for less, by halves and by three quarters of these, if that is. What is enough then is so
 * with twice the memory as well, whatever is added here.
 */
static void replace_by_smaller(const struct plan_request *request, struct plan *plan)
{
	uint64_t less = plan->memory_nbytes;
	struct plan smaller;

	for (bool halve = false; less / 2 >= PLAN_LEAST_MEMORY_NBYTES; halve = !halve) {
		const uint64_t nbytes = halve ? less / 2 : less - less / 4;

		if (halve)
			less = nbytes;
		if (is_hopeless(request, plan, nbytes))
			return;
		plan_within(request, nbytes, &smaller);
		if (smaller.is_enough) {
			*plan = smaller;
			return;
		}
	}
}

void plan_make(const struct plan_request *request, struct plan *ret_plan)
{
	plan_within(request,
		    at_most(at_least(request->memory_nbytes, PLAN_LEAST_MEMORY_NBYTES),
			    PLAN_MOST_MEMORY_NBYTES),
		    ret_plan);
	if (!ret_plan->is_enough)
		replace_by_smaller(request, ret_plan);
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN && !request->n_ranges)
		ret_plan->n_ranges = plan_n_ranges(request, ret_plan, UINT64_MAX);
	ret_plan->n_expected_ranges = plan_expect_ranges(request, ret_plan);
}
