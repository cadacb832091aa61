/*
 * plan_windows - how long the windows of a merge are, and what they take (see plan.h)
 */
#include "src/plan/plan_inside.h"

enum {
	LEAST_WINDOW_NBYTES = 64 << 10,
	LEAST_STRIDE_NBYTES = 256,
	USUAL_TIMES_RECORD =
		4,          /* what a record takes in a window, as it is read, written and merged */
	WINDOWS_PART = 8,   /* of the memory, that windows of ranges are no longer than */
	MAPPED_WINDOWS = 1, /* of a range: what its writer has mapped of the output */
};

uint64_t plan_merged_record_nbytes(const struct plan_request *request, const struct plan *plan)
{
	enum { N_RECORDS = 1 << 16 }; /* of which the scratch is known, rounded as it may be */
	const uint64_t scratch = divide_up(
		device_merge_scratch_nbytes(request->device, request->layout, 2, N_RECORDS),
		N_RECORDS);

	return 2 * plan->resident_nbytes + plan->gathered_nbytes +
	       at_least(scratch, plan->packs ? plan->resident_nbytes : 0);
}

/* Records of a block of a stored run. */
static uint64_t block_records(const struct plan *plan)
{
	return plan->block_nbytes / plan->resident_nbytes;
}

/* Of a record in a window, as it is merged or as it leaves. */
static uint64_t widest_nbytes(const struct plan *plan)
{
	return at_least(plan->resident_nbytes, plan->gathered_nbytes);
}

/* Has a window a buffer for what comes from elsewhere: from runs that are stored, or away? */
static uint64_t n_buffers_of(const struct plan *plan, bool has_stored)
{
	return has_stored || plan->n_devices > 1 ? 2 : 1;
}

/* What a window with that quota takes, all in all; fills in *windows. */
static uint64_t window_nbytes(const struct plan *plan, const struct plan_request *request,
			      uint64_t quota, uint32_t n_resident, uint32_t n_stored,
			      struct window_plan *windows)
{
	const uint64_t overhang = n_stored * block_records(plan);
	const uint64_t n_buffers = n_buffers_of(plan, n_stored > 0);
	const uint64_t least_stride =
		at_least(at_most(LEAST_STRIDE_NBYTES / widest_nbytes(plan), 16), 1);

	windows->quota_records = quota;
	windows->resident_stride = at_least(quota / (4 * at_least(n_resident, 1)), least_stride);
	windows->capacity_records = quota + overhang + n_resident * windows->resident_stride;
	windows->scratch_nbytes = at_least(
		device_merge_scratch_nbytes(request->device, request->layout, n_resident + n_stored,
					    windows->capacity_records),
		plan->packs ? windows->capacity_records * plan->resident_nbytes : 0);
	return windows->capacity_records *
		       (n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
	       windows->scratch_nbytes;
}

/* Fewer where a record has much beside it. */
static uint64_t least_records(const struct plan *plan, const struct plan_request *request)
{
	const uint64_t n = at_most(LEAST_WINDOW_NBYTES / widest_nbytes(plan),
				   USUAL_TIMES_RECORD * LEAST_WINDOW_NBYTES /
					   plan_merged_record_nbytes(request, plan));

	return at_least(n, 1);
}

/*
 * The quota is what the device likes, or four times the overhang of stored runs where that is
 * longer (so that little is carried from window to window), but reduced until memory allows it, and
 * no more than lets all lanes work.
 */
void plan_windows(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		  uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
		  struct window_plan *ret_windows)
{
	const uint64_t overhang = n_stored * block_records(plan);
	const uint64_t record_nbytes = widest_nbytes(plan);
	const uint64_t least = at_least(overhang, least_records(plan, request));
	uint64_t quota = at_least(plan->window_nbytes / record_nbytes, 4 * overhang);

	quota = at_least(at_most(quota, divide_up(n_records, 2 * plan->n_lanes)), least);
	ret_windows->n_windows = plan->n_windows;
	while (window_nbytes(plan, request, quota, n_resident, n_stored, ret_windows) >
		       nbytes / plan->n_windows &&
	       quota > least)
		quota = at_least(quota - divide_up(quota, 4), least); /* less, however small */
}

uint64_t plan_windows_nbytes(const struct plan *plan, const struct window_plan *windows,
			     bool has_stored)
{
	const uint64_t n_buffers = n_buffers_of(plan, has_stored);

	return windows->n_windows *
	       (windows->capacity_records *
			(n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
		windows->scratch_nbytes);
}

/*
 * Many windows that are shorter than 3/2 of the overhang of stored runs carry too much. What has a
 * device for itself takes no more of its memory than the undivided merge would.
 */
static bool has_room(const struct plan *plan, const struct plan_request *request,
		     uint64_t n_records, uint32_t n_resident, uint32_t n_stored, bool is_alone)
{
	const uint64_t overhang = n_stored * block_records(plan);
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
