/*
 * plan_partitions - in how many ranges the output is merged, and what each of them has (see plan.h)
 */
#include "src/plan/plan_internal.h"

enum {
	MIN_PARTITION_NBYTES = 256 << 20,
	DEVICE_PARTITION_NBYTES = 1
				  << 30, /* of memory, for a range of what is copied to a device */
	WINDOWS_DIVISOR = 8, /* of the memory, that windows of ranges are no longer than */
	MAPPED_WINDOWS = 1,  /* of a range: what its writer has mapped of the output */
};

/*
 * A writer that maps is as fast as one that writes, but others beside it are, too; with few
 * processors they are needed to merge. A short range is not worth its windows. A window of stored
 * runs that is merged by a device with a memory of its own is a hundred copies and launches,
 * however short it is: with little memory few ranges have windows that are worth these. But each
 * device has one, and all have as many.
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
 * Where the places of items are not known before they are merged there is one, unless each range is
 * a file. Where they are to end as files do, there are as many as go into these.
 */
uint32_t plan_partition_limit(const struct plan_request *request, const struct plan *plan,
			      uint64_t nbytes)
{
	const uint32_t n_files = request->n_part_files;

	if (request->sequential_input || request->sequential_output ||
	    (request->unique && !n_files))
		return 1;
	/* Where the limit is would be known when all parts before are merged. */
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
 * Many windows that are shorter than 3/2 of the overhang of stored runs carry too much. What has a
 * device for itself takes no more of its memory than the undivided merge would.
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

/* Of n ranges, those of the device that has the most. */
static uint64_t partitions_per_device(const struct plan *plan, uint64_t n)
{
	return divide_up(n, plan->n_devices);
}

/* Of a merge in n ranges, what each has of the threads. */
static void split_threads(const struct plan *plan, uint64_t n, struct plan *ret_partition_plan)
{
	*ret_partition_plan = *plan;
	if (n == 1)
		return;
	ret_partition_plan->n_queues =
		(uint32_t)divide_up(plan->n_queues, partitions_per_device(plan, n));
	ret_partition_plan->n_readers = (uint32_t)divide_up(plan->n_readers, n);
	ret_partition_plan->n_fetchers = (uint32_t)divide_up(plan->n_fetchers, n);
	ret_partition_plan->n_writers = 1;
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

/* What the final merge has, as far as it can be known. */
struct final_merge_estimate {
	uint64_t n_records;
	uint32_t n_resident, n_stored;
	uint64_t memory_nbytes;
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
		.memory_nbytes = u64_max(plan->merge_nbytes,
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
	n = plan_partitions(plan, request, final.memory_nbytes, final.n_records, final.n_resident,
			    final.n_stored, plan_max_partitions(plan, request, final.n_records),
			    &partition_plan);
	/* All that is beyond a limit is in the last of them. */
	n_kept = request->limit ? u64_min(request->limit, final.n_records) : final.n_records;
	return plan_worth_splitting(final.n_records, final.n_records - n_kept / n * (n - 1), n) ?
		       n :
		       1;
}
