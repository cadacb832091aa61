/*
 * plan_windows - how long the windows of a merge are, and what they take (see plan.h)
 */
#include "src/plan/plan_internal.h"

enum {
	MIN_WINDOW_NBYTES = 64 << 10,
	MIN_STRIDE_NBYTES = 256,
	TYPICAL_RECORD_FACTOR =
		4, /* what a record takes in a window, as it is read, written and merged */
};

uint64_t plan_window_record_nbytes(const struct plan_request *request, const struct plan *plan)
{
	enum {
		N_SCRATCH_RECORDS = 1 << 16
	}; /* of which the scratch is known, rounded as it may be */
	const uint64_t scratch = divide_up(
		device_merge_scratch_nbytes(request->device, request->layout, 2, N_SCRATCH_RECORDS),
		N_SCRATCH_RECORDS);

	return 2 * plan->resident_nbytes + plan->gathered_nbytes +
	       u64_max(scratch, plan->packs_on_device ? plan->resident_nbytes : 0);
}

/* Of a record in a window, as it is merged or as it leaves. */
static uint64_t max_record_nbytes(const struct plan *plan)
{
	return u64_max(plan->resident_nbytes, plan->gathered_nbytes);
}

/* Has a window a buffer for what comes from elsewhere: from runs that are stored, or away? */
static uint64_t count_window_buffers(const struct plan *plan, bool has_stored)
{
	return has_stored || plan->n_devices > 1 ? 2 : 1;
}

/* What a window with that quota takes, all in all; fills in *windows. */
static uint64_t window_total_nbytes(const struct plan *plan, const struct plan_request *request,
				    uint64_t quota, uint32_t n_resident, uint32_t n_stored,
				    struct window_plan *windows)
{
	const uint64_t overhang = n_stored * plan_block_records(plan);
	const uint64_t n_buffers = count_window_buffers(plan, n_stored > 0);
	const uint64_t min_stride =
		u64_max(u64_min(MIN_STRIDE_NBYTES / max_record_nbytes(plan), 16), 1);

	windows->quota_records = quota;
	windows->resident_stride = u64_max(quota / (4 * u64_max(n_resident, 1)), min_stride);
	windows->capacity_records = quota + overhang + n_resident * windows->resident_stride;
	windows->scratch_nbytes = u64_max(
		device_merge_scratch_nbytes(request->device, request->layout, n_resident + n_stored,
					    windows->capacity_records),
		plan->packs_on_device ? windows->capacity_records * plan->resident_nbytes : 0);
	return windows->capacity_records *
		       (n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
	       windows->scratch_nbytes;
}

/* Fewer where a record has much beside it. */
static uint64_t min_window_records(const struct plan *plan, const struct plan_request *request)
{
	const uint64_t n = u64_min(MIN_WINDOW_NBYTES / max_record_nbytes(plan),
				   TYPICAL_RECORD_FACTOR * MIN_WINDOW_NBYTES /
					   plan_window_record_nbytes(request, plan));

	return u64_max(n, 1);
}

/*
 * The quota is what the device likes, or four times the overhang of stored runs where that is
 * longer (so that little is carried from window to window), but reduced until memory allows it, and
 * no more than lets all queues work.
 */
void plan_windows(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		  uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
		  struct window_plan *ret_windows)
{
	const uint64_t overhang = n_stored * plan_block_records(plan);
	const uint64_t record_nbytes = max_record_nbytes(plan);
	const uint64_t min_quota = u64_max(overhang, min_window_records(plan, request));
	uint64_t quota = u64_max(plan->window_nbytes / record_nbytes, 4 * overhang);

	quota = u64_max(u64_min(quota, divide_up(n_records, 2 * plan->n_queues)), min_quota);
	ret_windows->n_windows = plan->n_windows;
	while (window_total_nbytes(plan, request, quota, n_resident, n_stored, ret_windows) >
		       nbytes / plan->n_windows &&
	       quota > min_quota)
		quota = u64_max(quota - divide_up(quota, 4), min_quota); /* less, however small */
}

uint64_t plan_windows_nbytes(const struct plan *plan, const struct window_plan *windows,
			     bool has_stored)
{
	const uint64_t n_buffers = count_window_buffers(plan, has_stored);

	return windows->n_windows *
	       (windows->capacity_records *
			(n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
		windows->scratch_nbytes);
}
