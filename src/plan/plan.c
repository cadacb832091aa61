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
	MAX_FILE_WRITERS = 2, /* a file has one lock for writes: more only wait for it */
	MAX_RANK_FETCHERS = 8,
	CODEC_MEMORY_DIVISOR = 16, /* of the memory, at most */
	PLANNING_ROUNDS = 3,
};

uint64_t plan_data_nbytes(const struct plan *plan)
{
	const uint64_t reserved_nbytes = plan->codec_nbytes + plan->index_nbytes +
					 u64_min(plan->mapped_nbytes, plan->memory_nbytes);

	return plan->memory_nbytes - u64_min(reserved_nbytes, plan->memory_nbytes);
}

/* Does the device pack what is spilled? It pays for what goes over a link. */
static bool should_pack_on_device(const struct plan_request *request, const struct plan *plan)
{
	return plan->copies_to_device && (!plan->fits_in_memory || request->n_ranks > 1) &&
	       request->stores_encoded_keys && compression_allows_delta(&request->compression);
}

/* Does it store any runs? */
bool plan_stores_runs(const struct plan *plan)
{
	return plan->temp_nbytes || plan->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/* All that depends on how much memory there is for data. */
static void plan_data_memory(const struct plan_request *request, const struct device_info *info,
			     struct plan *plan)
{
	plan->device_nbytes =
		info->unified ? plan_data_nbytes(plan) :
				u64_min(u64_max(request->device_nbytes, PLAN_MIN_MEMORY_NBYTES),
					PLAN_MAX_MEMORY_NBYTES);
	plan_chunks(request, info, plan);
	plan->packs_on_device = should_pack_on_device(request, plan);
	plan_blocks(request, plan);
	plan_merge_passes(request, plan);
}

/*
 * Who fetches blocks of another rank waits for messages and takes no processor meanwhile, so there
 * are more of them than readers, as far as there is room for what decodes.
 */
static uint32_t choose_n_fetchers(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codec_nbytes = u64_max(plan_thread_codec_nbytes(request, plan), 1);
	const uint64_t n = plan->memory_nbytes / CODEC_MEMORY_DIVISOR / codec_nbytes;

	if (!plan_is_distributed(request) || request->n_input_runs || n <= plan->n_writers)
		return plan->n_readers;
	return (uint32_t)u64_max(u64_min(n - plan->n_writers, MAX_RANK_FETCHERS), plan->n_readers);
}

/* What a sort as it is planned takes besides data. */
static void plan_overhead(const struct plan_request *request, struct plan *plan)
{
	uint64_t index_nbytes;

	plan->n_fetchers = choose_n_fetchers(request, plan);
	plan->codec_nbytes = plan_stream_codecs_nbytes(request, plan);
	if (plan_stores_runs(plan))
		plan->codec_nbytes += u64_min(plan_block_codecs_nbytes(request, plan),
					      plan->memory_nbytes / CODEC_MEMORY_DIVISOR);
	/* What of the index is beyond its usual part goes beside the memory, as far as it can. */
	index_nbytes = plan_index_nbytes(request, plan);
	plan->index_nbytes =
		u64_min(index_nbytes, plan->memory_nbytes / PLAN_DEFAULT_INDEX_DIVISOR);
	index_nbytes -= u64_min(index_nbytes, PLAN_OVERHEAD_NBYTES / 2);
	plan->index_nbytes =
		u64_max(plan->index_nbytes,
			u64_min(index_nbytes, plan->memory_nbytes / PLAN_INDEX_DIVISOR));
	plan->max_stored_blocks =
		plan_max_index_nbytes(plan) / plan_index_entry_nbytes(request, true);
}

uint64_t plan_max_threads(uint64_t memory_nbytes)
{
	return u64_max(memory_nbytes / PLAN_THREAD_NBYTES, PLAN_MIN_QUEUES);
}

/*
 * What is at the side depends on the blocks and on whether anything is stored, and these on how
 * much is left for data: so both are computed in turn, until little changes.
 */
static void plan_iterate(const struct plan_request *request, const struct device_info *info,
			 struct plan *plan)
{
	plan->n_windows = plan->n_queues + plan->n_writers + 1;
	plan->codec_nbytes = plan_stream_codecs_nbytes(request, plan);
	plan->index_nbytes = 0;
	for (int i = 0; i < PLANNING_ROUNDS; i++) {
		plan_data_memory(request, info, plan);
		plan_overhead(request, plan);
	}
	plan_data_memory(request, info, plan);
	plan->required_index_nbytes = plan_index_nbytes(request, plan);
	plan->total_nbytes = plan_total_nbytes(request, plan);
	plan->is_sufficient = plan->total_nbytes <= plan->memory_nbytes + PLAN_OVERHEAD_NBYTES;
}

/* All that is planned with may be more than was asked for: the least that can be. */
static uint64_t clamp_exchange_nbytes(const struct plan_request *request, uint64_t memory_nbytes)
{
	const uint64_t total_nbytes = request->memory_nbytes + request->exchange_nbytes;

	return u64_min(request->exchange_nbytes,
		       total_nbytes - u64_min(memory_nbytes, total_nbytes));
}

/* With that much of the memory. */
static void plan_with_memory(const struct plan_request *request, uint64_t memory_nbytes,
			     struct plan *plan)
{
	struct plan_request single_partition = *request;
	struct device_info info;

	device_get_info(request->device, &info);
	*plan = (struct plan){
		.exchange_nbytes = clamp_exchange_nbytes(request, memory_nbytes),
		.memory_nbytes = memory_nbytes,
		.input_nbytes = request->input_nbytes,
		.record_nbytes = (uint32_t)request->layout->record_nbytes,
		.element_nbytes = request->layout->element_nbytes,
		.resident_nbytes = request->layout->resident_nbytes,
		.copies_to_device = !info.unified,
		.sorts_on_cpu = info.unified,
		.n_queues = info.n_queues,
		.n_ranks = (uint32_t)u64_max(request->n_ranks, 1),
		.n_devices = info.unified ? 1 : (uint32_t)u64_max(request->n_devices, 1),
		.n_writers = (uint32_t)u64_min(request->n_threads, MAX_FILE_WRITERS),
	};
	plan->n_readers = (uint32_t)u64_min(request->n_threads,
					    UINT64_C(1) * PLAN_MAX_READERS * plan->n_devices);
	if (info.unified)
		plan->n_queues =
			(uint32_t)u64_min(info.n_queues, plan_max_threads(plan->memory_nbytes));
	if (layout_is_indirect(request->layout)) {
		plan->mapped_nbytes = request->input_nbytes;
		plan->gathered_nbytes = plan->record_nbytes;
	}
	if (request->sequential_output)
		plan->n_writers = 1;
	snprintf(plan->device, sizeof plan->device, "%s",
		 request->device_name ? request->device_name : info.name);
	plan_iterate(request, &info, plan);
	/* What does not shrink: blocks of ranges, then queues and windows, are the first to go. */
	if (!plan->is_sufficient && plan->n_partitions > 1) {
		single_partition.n_partitions = 1;
		request = &single_partition;
		plan_iterate(request, &info, plan);
	}
	while (!plan->is_sufficient && info.unified && plan->n_queues > PLAN_MIN_QUEUES) {
		plan->n_queues = (uint32_t)u64_max(plan->n_queues / 2, PLAN_MIN_QUEUES);
		plan->n_readers = (uint32_t)u64_min(plan->n_readers, plan->n_queues);
		plan_iterate(request, &info, plan);
	}
}

/* What is too much for any plan with that memory: what is there before one is made. */
static bool exceeds_memory(const struct plan_request *request, const struct plan *plan,
			   uint64_t memory_nbytes)
{
	const uint64_t streams_nbytes =
		u64_min(request->stream_codec_nbytes, PLAN_MAX_MEMORY_NBYTES);

	return u64_max(streams_nbytes, plan->mapped_nbytes) > memory_nbytes + PLAN_OVERHEAD_NBYTES;
}

/*
 * A plan for less memory that is enough is one for more, too. Not all that a plan takes grows with
 * the memory evenly: blocks that become longer with it may make codecs grow, and windows have room
 * for a record of each chunk, of which there may be more. So a plan that is not enough is replaced
 * by that for less, by halves and by three quarters of these, if that is. What is enough then is so
 * with twice the memory as well, whatever is added here.
 */
static void use_smaller_plan(const struct plan_request *request, struct plan *plan)
{
	uint64_t base_nbytes = plan->memory_nbytes;
	struct plan smaller;

	for (bool halve = false; base_nbytes / 2 >= PLAN_MIN_MEMORY_NBYTES; halve = !halve) {
		const uint64_t nbytes = halve ? base_nbytes / 2 : base_nbytes - base_nbytes / 4;

		if (halve)
			base_nbytes = nbytes;
		if (exceeds_memory(request, plan, nbytes))
			return;
		plan_with_memory(request, nbytes, &smaller);
		if (smaller.is_sufficient) {
			*plan = smaller;
			return;
		}
	}
}

void plan_make(const struct plan_request *request, struct plan *ret_plan)
{
	plan_with_memory(request,
			 u64_min(u64_max(request->memory_nbytes, PLAN_MIN_MEMORY_NBYTES),
				 PLAN_MAX_MEMORY_NBYTES),
			 ret_plan);
	if (!ret_plan->is_sufficient)
		use_smaller_plan(request, ret_plan);
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN && !request->n_partitions)
		ret_plan->n_partitions = plan_partition_limit(request, ret_plan, UINT64_MAX);
	ret_plan->n_expected_partitions = plan_expected_partitions(request, ret_plan);
}
