/*
 * plan_partitions - in how many ranges the output is merged, and what each of them has (see plan.h)
 */
#include "src/plan/plan_internal.h"

enum {
	LEAST_RANGE_NBYTES = 256 << 20,
	COPIED_RANGE_NBYTES = 1 << 30, /* of memory, for a range of what is copied to a device */
	WINDOWS_PART = 8,   /* of the memory, that windows of ranges are no longer than */
	MAPPED_WINDOWS = 1, /* of a range: what its writer has mapped of the output */
};

/*
 * A writer that maps is as fast as one that writes, but others beside it are, too; with few
 * processors they are needed to merge. A short range is not worth its windows. A window of stored
 * runs that is merged by a device with a memory of its own is a hundred copies and launches,
 * however short it is: with little memory few ranges have windows that are worth these. But each
 * device has one, and all have as many.
 */
static uint32_t usual_ranges(const struct plan_request *request, const struct plan *plan,
			     uint64_t nbytes)
{
	const uint64_t limit_nbytes = request->limit ? times(request->limit, plan->record_nbytes) :
						       UINT64_MAX;
	uint64_t n = at_most(at_most(request->n_threads / 2, PLAN_USUAL_RANGES),
			     at_most(nbytes, limit_nbytes) / LEAST_RANGE_NBYTES);

	if (plan->copies && !plan->fits)
		n = at_most(n, plan->memory_nbytes / COPIED_RANGE_NBYTES);
	return (uint32_t)round_up(at_least(n, 1), plan->n_devices);
}

uint32_t plan_meet_files(uint32_t n_ranges, uint32_t n_files)
{
	while (n_files && n_files % n_ranges && n_ranges % n_files)
		n_ranges--;
	return n_ranges;
}

/*
 * Where the places of items are not known before they are merged there is one, unless each range is
 * a file. Where they are to end as files do, there are as many as go into these.
 */
uint32_t plan_n_ranges(const struct plan_request *request, const struct plan *plan, uint64_t nbytes)
{
	const uint32_t n_files = request->n_part_files;

	if (request->ordered_input || request->ordered_output || (request->unique && !n_files))
		return 1;
	/* Where the limit is would be known when all parts before are merged. */
	if (request->limit && (request->unique || request->parts_are_ranges))
		return 1;
	if (request->n_ranges)
		return request->n_ranges;
	return plan_meet_files(usual_ranges(request, plan, nbytes), n_files);
}

uint32_t plan_most_ranges(const struct plan *plan, const struct plan_request *request,
			  uint64_t n_records)
{
	const uint64_t nbytes = times(n_records, plan->record_nbytes);

	if (request->input_nbytes != PLAN_SIZE_UNKNOWN || request->n_ranges)
		return plan->n_ranges;
	return (uint32_t)at_most(plan->n_ranges, plan_n_ranges(request, plan, nbytes));
}

/*
 * Many windows that are shorter than 3/2 of the overhang of stored runs carry too much. What has a
 * device for itself takes no more of its memory than the undivided merge would.
 */
static bool has_room(const struct plan *plan, const struct plan_request *request,
		     uint64_t n_records, uint32_t n_resident, uint32_t n_stored, bool is_alone)
{
	const uint64_t overhang = n_stored * plan_block_records(plan);
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, n_records, n_resident, n_stored, &windows);
	return (2 * windows.quota_records >= 3 * overhang ||
		n_records <= 4 * windows.quota_records) &&
	       (is_alone ||
		plan_windows_nbytes(plan, &windows, n_stored > 0) <= plan->merge_nbytes);
}

/* Of n ranges, those of the device that has the most. */
static uint64_t ranges_of_device(const struct plan *plan, uint64_t n)
{
	return divide_up(n, plan->n_devices);
}

/* Of a merge in n ranges, what each has of the threads. */
static void divide_threads(const struct plan *plan, uint64_t n, struct plan *ret_of_each)
{
	*ret_of_each = *plan;
	if (n == 1)
		return;
	ret_of_each->n_lanes = (uint32_t)divide_up(plan->n_lanes, ranges_of_device(plan, n));
	ret_of_each->n_readers = (uint32_t)divide_up(plan->n_readers, n);
	ret_of_each->n_fetchers = (uint32_t)divide_up(plan->n_fetchers, n);
	ret_of_each->n_writers = 1;
	ret_of_each->n_windows = ret_of_each->n_lanes + ret_of_each->n_writers + 1;
}

uint64_t plan_most_windows(const struct plan *plan)
{
	struct plan each;

	divide_threads(plan, plan->n_ranges, &each);
	return plan->n_ranges == 1 ?
		       plan->n_windows :
		       ranges_of_device(plan, plan->n_ranges) * (each.n_windows + MAPPED_WINDOWS);
}

uint32_t plan_ranges(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		     uint64_t n_records, uint32_t n_resident, uint32_t n_stored, uint32_t n_most,
		     struct plan *ret_of_each)
{
	uint64_t n = at_least(at_most(n_most, n_records), 1);

	for (; n > 1; n--) {
		divide_threads(plan, n, ret_of_each);
		ret_of_each->merge_nbytes = nbytes / ranges_of_device(plan, n) /
					    (ret_of_each->n_windows + MAPPED_WINDOWS) *
					    ret_of_each->n_windows;
		ret_of_each->window_nbytes =
			at_most(plan->window_nbytes / 2,
				plan->memory_nbytes / (WINDOWS_PART * n * ret_of_each->n_windows));
		if (has_room(ret_of_each, request, n_records / n, n_resident, n_stored,
			     n <= plan->n_devices))
			return (uint32_t)n;
	}
	*ret_of_each = *plan;
	return 1;
}

bool plan_divides(uint64_t n_items, uint64_t n_largest, uint32_t n)
{
	return n_largest <= n_items / 8 * 7 && n_largest <= 2 * (n_items / n + 1);
}

/* What the final merge has, as far as it can be known. */
struct last_merge {
	uint64_t n_records;
	uint32_t n_resident, n_stored;
	uint64_t memory_nbytes;
};

static struct last_merge expect_last_merge(const struct plan_request *request,
					   const struct plan *plan)
{
	const uint64_t n = plan->expected_nbytes / request->layout->record_nbytes;
	const uint64_t limit = request->limit ? request->limit : UINT64_MAX;
	const uint64_t n_runs = request->n_input_runs ? request->n_input_runs :
							plan->n_spilled_runs;
	const uint64_t run_records = times(plan->spill_chunks, plan->chunk_records);
	const uint64_t n_left = request->n_input_runs ? 0 :
							n - at_most(times(n_runs, run_records), n);
	const uint64_t n_full = n_left / plan->chunk_records, n_rest = n_left % plan->chunk_records;
	const uint64_t n_resident = at_most(n_full + (n_rest > 0), plan->n_chunks);
	const uint64_t resident_nbytes =
		times(divide_up(n_resident, plan->n_devices), plan->chunk_nbytes);

	return (struct last_merge){
		.n_records = plan->last_stored_nbytes / request->layout->item_nbytes +
			     times(n_full, at_most(plan->chunk_records, limit)) +
			     at_most(n_rest, limit),
		.n_resident = (uint32_t)n_resident,
		.n_stored = (uint32_t)at_most(n_runs, plan->fan_in),
		.memory_nbytes = at_least(plan->merge_nbytes,
					  plan->device_nbytes -
						  at_most(resident_nbytes, plan->device_nbytes)),
	};
}

uint32_t plan_expect_ranges(const struct plan_request *request, const struct plan *plan)
{
	struct last_merge last;
	struct plan each;
	uint64_t n_within;
	uint32_t n;

	if (request->parts_are_ranges && !request->limit)
		return request->n_part_files;
	if (plan->n_ranges == 1 || plan_has_ranks(request) || request->assumes_endless)
		return plan->n_ranges;
	last = expect_last_merge(request, plan);
	n = plan_ranges(plan, request, last.memory_nbytes, last.n_records, last.n_resident,
			last.n_stored, plan_most_ranges(plan, request, last.n_records), &each);
	/* All that is beyond a limit is in the last of them. */
	n_within = request->limit ? at_most(request->limit, last.n_records) : last.n_records;
	return plan_divides(last.n_records, last.n_records - n_within / n * (n - 1), n) ? n : 1;
}
