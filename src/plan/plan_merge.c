/*
 * plan_merge.c - the windows of a merge, and the partitions that it is divided into
 */
#include "src/plan/plan_internal.h"

/* --- Windows --- */

enum {
	MIN_WINDOW_NBYTES = 64 << 10,
	MIN_STRIDE_NBYTES = 256,
	TYPICAL_RECORD_FACTOR = 4, /* the size of a record in a window, relative to that in a run */
};

uint64_t plan_window_record_nbytes(const struct plan_request *request, const struct plan *plan)
{
	enum {
		N_SCRATCH_RECORDS = 1 << 16
	}; /* for which the scratch is computed, to average its rounding */
	const uint64_t scratch = divide_up(
		device_merge_scratch_nbytes(request->device, request->layout, 2, N_SCRATCH_RECORDS),
		N_SCRATCH_RECORDS);

	return 2 * plan->resident_nbytes + plan->gathered_nbytes +
	       u64_max(scratch, plan->packs_on_device ? plan->resident_nbytes : 0);
}

/* Return the larger of the sizes of a record before and after the merge. */
static uint64_t max_record_nbytes(const struct plan *plan)
{
	return u64_max(plan->resident_nbytes, plan->gathered_nbytes);
}

/*
 * Return the number of a window's buffers for items: one for its output, and one for its input if
 * runs are stored or on another device.
 */
static uint64_t count_window_buffers(const struct plan *plan, bool has_stored)
{
	return has_stored || plan->n_devices > 1 ? 2 : 1;
}

/* Compute the windows with this quota. Returns the memory of one window. */
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
	if (plan->n_buckets)
		windows->scratch_nbytes =
			u64_max(windows->scratch_nbytes,
				device_sort_scratch_nbytes(request->device, request->layout,
							   windows->capacity_records));
	return windows->capacity_records *
		       (n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
	       windows->scratch_nbytes;
}

/* Return the minimum number of records in a window: fewer if they need much scratch. */
static uint64_t min_window_records(const struct plan *plan, const struct plan_request *request)
{
	const uint64_t n = u64_min(MIN_WINDOW_NBYTES / max_record_nbytes(plan),
				   TYPICAL_RECORD_FACTOR * MIN_WINDOW_NBYTES /
					   plan_window_record_nbytes(request, plan));

	return u64_max(n, 1);
}

/*
 * The quota is what the device prefers, or four times the overhang of stored runs if that is
 * longer, so that little is copied from window to window. It is reduced until memory allows it, and
 * limited so that all queues have work.
 */
void plan_windows(const struct plan *plan, const struct plan_request *request, uint64_t nbytes,
		  uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
		  struct window_plan *ret_windows)
{
	const uint64_t overhang = n_stored * plan_block_records(plan);
	const uint64_t record_nbytes = max_record_nbytes(plan);
	const uint64_t min_quota = u64_max(u64_max(overhang, min_window_records(plan, request)),
					   plan->max_bucket_records);
	uint64_t quota = u64_max(plan->window_nbytes / record_nbytes, 4 * overhang);

	quota = u64_max(u64_min(quota, divide_up(n_records, 2 * plan->n_queues)), min_quota);
	ret_windows->n_windows = plan->n_windows;
	while (window_total_nbytes(plan, request, quota, n_resident, n_stored, ret_windows) >
		       nbytes / plan->n_windows &&
	       quota > min_quota)
		quota = u64_max(quota - divide_up(quota, 4), min_quota); /* by one or more */
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

/* --- Partitions --- */

enum {
	MIN_PARTITION_NBYTES = 256 << 20,
	DEVICE_PARTITION_NBYTES = 1 << 30, /* memory for a partition that is copied to a device */
	WINDOWS_DIVISOR = 8,               /* of the memory, for windows of partitions, at most */
	MAPPED_WINDOWS = 1, /* of a partition: what its writer has mapped of the output */
};

/*
 * A writer that maps its file is as fast as one that writes, and several scale; but with few CPUs
 * the merging needs them. A short partition is not worth its windows. For a device with its
 * own memory, a window of stored runs is a hundred copies and launches, however short it is, so
 * with little memory there are few partitions. But each device has one, and all have the same
 * number.
 */
static uint32_t default_partitions(const struct plan_request *request, const struct plan *plan,
				   uint64_t nbytes)
{
	const uint64_t limit_nbytes =
		request->limit ? saturating_mul(request->limit, plan->record_nbytes) : UINT64_MAX;
	uint64_t n = u64_min(u64_min(request->n_threads / 2, PLAN_DEFAULT_MAX_PARTITIONS),
			     u64_min(nbytes, limit_nbytes) / MIN_PARTITION_NBYTES);

	if (plan->copies_to_device && !plan->fits_in_memory)
		n = u64_min(n, plan->memory_nbytes / DEVICE_PARTITION_NBYTES);
	return (uint32_t)round_up(u64_max(n, 1), plan->n_devices);
}

uint32_t plan_round_to_files(uint32_t n_partitions, uint32_t n_files)
{
	while (n_files && n_files % n_partitions && n_partitions % n_files)
		n_partitions--;
	return n_partitions;
}

/*
 * There is one partition if positions are not known before the merge, unless each is a part file.
 * If partitions should end where part files do, their number must fit.
 */
uint32_t plan_partition_limit(const struct plan_request *request, const struct plan *plan,
			      uint64_t nbytes)
{
	const uint32_t n_files = request->n_part_files;

	if (request->sequential_input || request->sequential_output ||
	    (request->unique && !n_files))
		return 1;
	/* Where the limit is would be known only after merging the partitions before it. */
	if (request->limit && (request->unique || request->part_files_are_partitions))
		return 1;
	if (request->n_partitions)
		return request->n_partitions;
	return plan_round_to_files(default_partitions(request, plan, nbytes), n_files);
}

uint32_t plan_max_partitions(const struct plan *plan, const struct plan_request *request,
			     uint64_t n_records)
{
	const uint64_t nbytes = saturating_mul(n_records, plan->record_nbytes);

	if (request->input_nbytes != PLAN_SIZE_UNKNOWN || request->n_partitions)
		return plan->n_partitions;
	return (uint32_t)u64_min(plan->n_partitions, plan_partition_limit(request, plan, nbytes));
}

/*
 * Return whether windows are long enough and fit in memory: those shorter than 3/2 of the overhang
 * of stored runs copy too much. A partition that has a device for itself uses no more of its memory
 * than a single merge would.
 */
static bool windows_fit(const struct plan *plan, const struct plan_request *request,
			uint64_t n_records, uint32_t n_resident, uint32_t n_stored,
			bool has_own_device)
{
	const uint64_t overhang = n_stored * plan_block_records(plan);
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, n_records, n_resident, n_stored, &windows);
	return (2 * windows.quota_records >= 3 * overhang ||
		n_records <= 4 * windows.quota_records) &&
	       (has_own_device ||
		plan_windows_nbytes(plan, &windows, n_stored > 0) <= plan->merge_nbytes);
}

/* Return how many of n partitions the device with the most merges. */
static uint64_t partitions_per_device(const struct plan *plan, uint64_t n)
{
	return divide_up(n, plan->n_devices);
}

/* Give each of n partitions its share of the threads. */
static void split_threads(const struct plan *plan, uint64_t n, struct plan *ret_partition_plan)
{
	*ret_partition_plan = *plan;
	if (n == 1)
		return;
	ret_partition_plan->n_queues =
		(uint32_t)divide_up(plan->n_queues, partitions_per_device(plan, n));
	ret_partition_plan->n_readers = (uint32_t)divide_up(plan->n_readers, n);
	ret_partition_plan->n_fetchers = (uint32_t)divide_up(plan->n_fetchers, n);
	ret_partition_plan->n_writers = (uint32_t)u64_max(plan->n_writers / n, 1);
	ret_partition_plan->n_windows =
		ret_partition_plan->n_queues + ret_partition_plan->n_writers + 1;
}

uint64_t plan_max_windows(const struct plan *plan)
{
	struct plan partition_plan;

	split_threads(plan, plan->n_partitions, &partition_plan);
	return plan->n_partitions == 1 ? plan->n_windows :
					 partitions_per_device(plan, plan->n_partitions) *
						 (partition_plan.n_windows + MAPPED_WINDOWS);
}

uint32_t plan_partitions(const struct plan *plan, const struct plan_request *request,
			 uint64_t nbytes, uint64_t n_records, uint32_t n_resident,
			 uint32_t n_stored, uint32_t max_partitions,
			 struct plan *ret_partition_plan)
{
	uint64_t n = u64_max(u64_min(max_partitions, n_records), 1);

	for (; n > 1; n--) {
		split_threads(plan, n, ret_partition_plan);
		ret_partition_plan->merge_nbytes =
			nbytes / partitions_per_device(plan, n) /
			(ret_partition_plan->n_windows + MAPPED_WINDOWS) *
			ret_partition_plan->n_windows;
		ret_partition_plan->window_nbytes =
			u64_min(plan->window_nbytes / 2,
				plan->memory_nbytes /
					(WINDOWS_DIVISOR * n * ret_partition_plan->n_windows));
		if (windows_fit(ret_partition_plan, request, n_records / n, n_resident, n_stored,
				n <= plan->n_devices))
			return (uint32_t)n;
	}
	*ret_partition_plan = *plan;
	return 1;
}

bool plan_worth_splitting(uint64_t n_items, uint64_t n_largest, uint32_t n)
{
	return n_largest <= n_items / 8 * 7 && n_largest <= 2 * (n_items / n + 1);
}

/* The expected inputs of the final merge. */
struct final_merge_estimate {
	uint64_t n_records;
	uint32_t n_resident, n_stored;
	uint64_t windows_nbytes; /* memory of a device for windows */
};

static struct final_merge_estimate estimate_final_merge(const struct plan_request *request,
							const struct plan *plan)
{
	const uint64_t n = plan->expected_nbytes / request->layout->record_nbytes;
	const uint64_t limit = request->limit ? request->limit : UINT64_MAX;
	const uint64_t n_runs = request->n_input_runs ? request->n_input_runs :
							plan->n_spilled_runs;
	const uint64_t run_records = saturating_mul(plan->chunks_per_run, plan->chunk_records);
	const uint64_t n_resident_records =
		request->n_input_runs ? 0 : n - u64_min(saturating_mul(n_runs, run_records), n);
	const uint64_t n_full_chunks = n_resident_records / plan->chunk_records,
		       n_partial_records = n_resident_records % plan->chunk_records;
	const uint64_t n_resident =
		u64_min(n_full_chunks + (n_partial_records > 0), plan->n_chunks);
	const uint64_t resident_nbytes =
		saturating_mul(divide_up(n_resident, plan->n_devices), plan->chunk_nbytes);

	return (struct final_merge_estimate){
		.n_records = plan->final_merge_stored_nbytes / request->layout->item_nbytes +
			     saturating_mul(n_full_chunks, u64_min(plan->chunk_records, limit)) +
			     u64_min(n_partial_records, limit),
		.n_resident = (uint32_t)n_resident,
		.n_stored = (uint32_t)u64_min(n_runs, plan->fan_in),
		.windows_nbytes = u64_max(plan->merge_nbytes,
					  plan->device_nbytes -
						  u64_min(resident_nbytes, plan->device_nbytes)),
	};
}

uint32_t plan_expected_partitions(const struct plan_request *request, const struct plan *plan)
{
	struct final_merge_estimate final;
	struct plan partition_plan;
	uint64_t n_kept;
	uint32_t n;

	if (request->part_files_are_partitions && !request->limit)
		return request->n_part_files;
	if (plan->n_partitions == 1 || plan_is_distributed(request) || request->assumes_unbounded)
		return plan->n_partitions;
	final = estimate_final_merge(request, plan);
	n = plan_partitions(plan, request, final.windows_nbytes, final.n_records, final.n_resident,
			    final.n_stored, plan_max_partitions(plan, request, final.n_records),
			    &partition_plan);
	/* Everything beyond the limit is in the last partition. */
	n_kept = request->limit ? u64_min(request->limit, final.n_records) : final.n_records;
	return plan_worth_splitting(final.n_records, final.n_records - n_kept / n * (n - 1), n) ?
		       n :
		       1;
}
