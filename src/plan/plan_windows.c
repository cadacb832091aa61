/*
 * plan_windows - how long the windows of a merge are, and what they take (see plan.h)
 */
#include "src/plan/plan_internal.h"

enum {
	LEAST_WINDOW_NBYTES = 64 << 10,
	LEAST_STRIDE_NBYTES = 256,
	USUAL_TIMES_RECORD =
		4, /* what a record takes in a window, as it is read, written and merged */
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
	const uint64_t overhang = n_stored * plan_block_records(plan);
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
	const uint64_t overhang = n_stored * plan_block_records(plan);
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
