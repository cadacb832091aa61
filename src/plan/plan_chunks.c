/*
 * plan_chunks - how long chunks are, how many there are, and whether all of them stay (see plan.h)
 */
#include "src/plan/plan_internal.h"

enum {
	CHUNK_ALIGN_NBYTES = 8 << 10,
	MAX_CHUNK_ALIGN_RECORDS = 512,
	MIN_CHUNK_NBYTES = 64 << 10,
	SLOT_NBYTES = 4 << 20, /* all of them stay in the last cache until they are uploaded */
	MAX_SHORT_CHUNKS = 64,
	MIN_OVERLAP_CHUNKS = 32, /* so that reading, sorting and spilling can overlap */
	MIN_DEVICE_CHUNKS = 4,   /* of each device */
};

/* Numbers of 32 bits hold sums of them. */
static const uint64_t MAX_PLAN_CHUNKS = UINT64_C(1) << 31;

/* The room of a record in a chunk: it comes as a record, and stays as an element or an item. */
static uint64_t chunk_record_nbytes(const struct layout *layout)
{
	return u64_max(layout->resident_nbytes,
		       layout_has_elements(layout) ? 0 : layout->record_nbytes);
}

uint64_t plan_input_in_chunks_nbytes(const struct plan_request *request)
{
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN)
		return PLAN_SIZE_UNKNOWN;
	return u64_min(saturating_mul(request->input_nbytes / request->layout->record_nbytes,
				      chunk_record_nbytes(request->layout)),
		       PLAN_MAX_DATA_NBYTES);
}

uint64_t plan_input_records(const struct plan_request *request)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       UINT64_MAX :
		       request->input_nbytes / request->layout->record_nbytes;
}

/* Chunks and slots hold a multiple of so many records: whole pages or so, if they are narrow. */
static uint64_t align_records(const struct layout *layout)
{
	return u64_max(u64_min(CHUNK_ALIGN_NBYTES / chunk_record_nbytes(layout),
			       MAX_CHUNK_ALIGN_RECORDS),
		       1);
}

/*
 * Two for each reader, one of which is on its way to the device; a chunk is a number of whole
 * slots.
 */
static void plan_slots(const struct plan_request *request, struct plan *plan)
{
	const uint64_t align = align_records(request->layout);
	uint64_t slot_records;

	plan->n_slots = 2 * plan->n_readers;
	plan->slot_nbytes = u64_min(SLOT_NBYTES, plan_data_nbytes(plan) / (8 * plan->n_slots));
	slot_records = u64_max(plan->slot_nbytes / plan->record_nbytes / align, 1) * align;
	slot_records = u64_min(slot_records, plan->chunk_records);
	plan->chunk_records -= plan->chunk_records % slot_records;
	plan->slot_nbytes = slot_records * plan->record_nbytes;
	plan->host_spill_nbytes = plan_data_nbytes(plan) / 2;
}

/* What each queue needs to sort a chunk. */
static uint64_t sort_scratch_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t nbytes =
		device_sort_scratch_nbytes(request->device, layout, plan->chunk_records);

	if (!layout_has_elements(layout))
		return nbytes;
	/* Records that cannot expand where they are go by way of it (chunk_pool.c). */
	return u64_max(nbytes,
		       plan->copies_to_device ? plan->chunk_records * plan->record_nbytes : 0);
}

/*
 * Do the fewest queues that there are leave half of its room to the chunks (plan_spilling())? Where
 * elements are many times as wide as records, a chunk's scratch is many times as long as a chunk.
 */
static bool queues_fit(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t output_nbytes = plan->chunk_records * chunk_record_nbytes(layout);
	const uint64_t nbytes = sort_scratch_nbytes(request, plan) +
				(layout_has_elements(layout) ? 0 : output_nbytes);

	return PLAN_MIN_QUEUES * nbytes <= plan->device_nbytes / 8 * 3;
}

/*
 * As the device likes them, but no larger than a part of the input for each queue (all queues are
 * to work) or of the memory (several chunks are needed for overlap). Rounded up: of wide records
 * there would be twice as many chunks, each with room for a record in every window of a merge.
 */
static void plan_chunk_size(const struct plan_request *request, uint64_t preferred_nbytes,
			    struct plan *plan)
{
	const uint64_t record_nbytes = chunk_record_nbytes(request->layout);
	const uint64_t input_nbytes = plan_input_in_chunks_nbytes(request);
	const uint64_t align = align_records(request->layout);
	const uint64_t n_queues = plan->n_devices * plan->n_queues;
	uint64_t nbytes = u64_min(preferred_nbytes, plan->device_nbytes / MIN_OVERLAP_CHUNKS);

	if (input_nbytes != PLAN_SIZE_UNKNOWN)
		nbytes = u64_min(nbytes,
				 u64_max(divide_up(input_nbytes, 4 * n_queues), MIN_CHUNK_NBYTES));
	plan->chunk_records = round_up(u64_max(divide_up(nbytes, record_nbytes), 1), align);
	while (!queues_fit(request, plan) && plan->chunk_records > align)
		plan->chunk_records = round_up(plan->chunk_records / 2, align);
	if (plan->copies_to_device)
		plan_slots(request, plan);
	plan->chunk_nbytes = plan->chunk_records * record_nbytes;
	plan->sort_scratch_nbytes = sort_scratch_nbytes(request, plan);
	if (!layout_has_elements(request->layout))
		plan->sort_output_nbytes = plan->chunk_nbytes;
}

/* What the windows of a merge of resident chunks only take. */
static uint64_t resident_windows_nbytes(const struct plan *plan, const struct plan_request *request,
					uint32_t n_chunks)
{
	struct window_plan windows;

	plan_windows(plan, request, UINT64_MAX, plan_input_records(request), n_chunks, 0, &windows);
	return plan_windows_nbytes(plan, &windows, false);
}

uint64_t plan_queues_nbytes(const struct plan *plan)
{
	return plan->n_queues * (plan->sort_scratch_nbytes + plan->sort_output_nbytes);
}

static bool plan_resident(const struct plan_request *request, struct plan *plan)
{
	const uint64_t input_nbytes = plan_input_in_chunks_nbytes(request);
	const uint64_t n_device_chunks =
		divide_up(divide_up(input_nbytes, plan->chunk_nbytes), plan->n_devices);
	const uint64_t n_chunks = n_device_chunks * plan->n_devices;
	uint64_t required_nbytes;

	if (input_nbytes / plan->n_devices > plan->device_nbytes || n_chunks > MAX_PLAN_CHUNKS)
		return false;
	required_nbytes = n_device_chunks * plan->chunk_nbytes + plan_queues_nbytes(plan);
	plan->merge_nbytes = resident_windows_nbytes(plan, request, (uint32_t)n_chunks);
	if (required_nbytes + plan->merge_nbytes > plan->device_nbytes)
		return false;
	plan->fits_in_memory = true;
	plan->n_chunks = u64_max(n_chunks, plan->n_devices);
	plan->chunks_per_run = plan->n_chunks;
	return true;
}

static void plan_spilling(struct plan *plan)
{
	uint64_t pool_nbytes, n_device_chunks;

	plan->merge_nbytes = plan->device_nbytes / 4;
	pool_nbytes = plan->device_nbytes - plan->merge_nbytes;
	pool_nbytes -= u64_min(plan_queues_nbytes(plan), pool_nbytes / 2);
	n_device_chunks = u64_min(u64_max(pool_nbytes / plan->chunk_nbytes, MIN_DEVICE_CHUNKS),
				  MAX_PLAN_CHUNKS / plan->n_devices);
	plan->n_chunks = n_device_chunks * plan->n_devices;
	plan->chunks_per_run = plan->n_chunks / 2;
}

/* Chunks and windows, so many times as long as the device likes them with little memory. */
static void plan_sizes(const struct plan_request *request, const struct device_info *info,
		       uint64_t factor, struct plan *plan)
{
	plan->window_nbytes = u64_min(factor * info->window_nbytes,
				      plan_data_nbytes(plan) / (4 * plan->n_windows));
	plan_chunk_size(request, factor * info->chunk_nbytes, plan);
	plan->fits_in_memory = false;
}

/*
 * Of many chunks each gives a window so little that it is merged slowly. (Ranks have a use for the
 * memory: final_merge_nbytes.)
 */
static bool prefers_longer_chunks(const struct plan_request *request,
				  const struct device_info *info)
{
	const uint64_t n_chunks = plan_input_in_chunks_nbytes(request) / info->chunk_nbytes;

	return info->in_memory_factor > 1 && n_chunks > MAX_SHORT_CHUNKS &&
	       !plan_is_distributed(request);
}

/* Longer chunks and windows take memory, which is there if all fits with them. */
static bool plan_without_spilling(const struct plan_request *request,
				  const struct device_info *info, struct plan *plan)
{
	if (prefers_longer_chunks(request, info)) {
		plan_sizes(request, info, info->in_memory_factor, plan);
		if (plan_resident(request, plan))
			return true;
	}
	plan_sizes(request, info, 1, plan);
	return plan_resident(request, plan);
}

void plan_chunks(const struct plan_request *request, const struct device_info *info,
		 struct plan *plan)
{
	if (request->n_input_runs) {
		plan_sizes(request, info, 1, plan);
		plan->merge_nbytes = plan->device_nbytes;
	} else if (!plan_without_spilling(request, info, plan)) {
		plan_spilling(plan);
	}
}
