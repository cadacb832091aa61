/*
 * plan - how much of what, before anything starts (see plan.h)
 */
#include "src/plan/plan.h"

#include <string.h>

#include "io/store/block_writer.h"
#include "io/store/run_format.h"
#include "src/plan/expectation.h"

enum {
	CHUNK_ALIGN_NBYTES = 8 << 10,
	MOST_CHUNK_ALIGN_RECORDS = 512,
	LEAST_CHUNK_NBYTES = 64 << 10,
	LEAST_BLOCK_NBYTES = 4 << 10,
	MOST_BLOCK_NBYTES = 1 << 20,
	LEAST_WINDOW_NBYTES = 64 << 10,
	LEAST_STRIDE_NBYTES = 256,
	SLOT_NBYTES = 4 << 20, /* all of them stay in the last cache until they are uploaded */
	MOST_READERS = 8,
	MOST_WRITERS = 2,     /* a file has one lock for writes: more only wait for it */
	CHUNKS_AT_LEAST = 32, /* so that reading, sorting and spilling can overlap */
	UNKNOWN_INPUT_TIMES_MEMORY = 32,
	STREAMS_PART = 2, /* of the memory, at most, as the next two */
	CODECS_PART = 16,
	INDEX_PART = 8,
	LEAST_FAN_IN = 32, /* that longer blocks, for the sake of a small index, must leave */
	ROUNDS = 3,
};

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return value < least ? least : value;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value > most ? most : value;
}

static uint64_t divide_up(uint64_t value, uint64_t by)
{
	return value / by + (value % by != 0);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return divide_up(value, to) * to;
}

/* Of the host's memory, what is there for data; nothing is left by a mapping that is too large. */
static uint64_t data_nbytes(const struct plan *plan)
{
	const uint64_t others_nbytes = plan->side_nbytes + plan->index_nbytes + plan->mapped_nbytes;

	return plan->memory_nbytes - at_most(others_nbytes, plan->memory_nbytes);
}

/* The room of a record in a chunk: it comes as a record, and stays as an element or an item. */
static uint64_t chunk_record_nbytes(const struct layout *layout)
{
	return at_least(layout->resident_nbytes,
			layout->kind == LAYOUT_RECORDS ? layout->record_nbytes : 0);
}

/* The size of the input in chunks. */
static uint64_t input_in_chunks_nbytes(const struct plan_request *request)
{
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN)
		return PLAN_SIZE_UNKNOWN;
	return request->input_nbytes / request->layout->record_nbytes *
	       chunk_record_nbytes(request->layout);
}

/* Chunks and slots hold a multiple of so many records: whole pages or so, if they are narrow. */
static uint64_t align_records(const struct layout *layout)
{
	return at_least(at_most(CHUNK_ALIGN_NBYTES / chunk_record_nbytes(layout),
				MOST_CHUNK_ALIGN_RECORDS),
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
	plan->slot_nbytes = at_most(SLOT_NBYTES, data_nbytes(plan) / (8 * plan->n_slots));
	slot_records = at_least(plan->slot_nbytes / plan->record_nbytes / align, 1) * align;
	slot_records = at_most(slot_records, plan->chunk_records);
	plan->chunk_records -= plan->chunk_records % slot_records;
	plan->slot_nbytes = slot_records * plan->record_nbytes;
	plan->host_tier_nbytes = data_nbytes(plan) / 2;
}

/* What each lane needs to sort a chunk. */
static uint64_t sort_scratch_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	uint64_t nbytes;

	if (layout->kind == LAYOUT_RECORDS)
		return device_records_scratch_nbytes(request->device, layout, 0,
						     plan->chunk_records);
	nbytes = device_sort_scratch_nbytes(request->device, plan->chunk_records,
					    layout->element_nbytes);
	/* Records that cannot expand where they are go by way of it (chunk_pool.c). */
	return at_least(nbytes, plan->unified ? 0 : plan->chunk_records * plan->record_nbytes);
}

/*
 * As the device likes them, but no larger than a part of the input for each lane (all lanes are to
 * work) or of the memory (several chunks are needed for overlap).
 */
static void plan_chunks(const struct plan_request *request, const struct device_info *info,
			struct plan *plan)
{
	const uint64_t record_nbytes = chunk_record_nbytes(request->layout);
	const uint64_t input_nbytes = input_in_chunks_nbytes(request);
	uint64_t nbytes = at_most(info->chunk_nbytes, plan->device_nbytes / CHUNKS_AT_LEAST);

	if (input_nbytes != PLAN_SIZE_UNKNOWN)
		nbytes = at_most(nbytes, at_least(divide_up(input_nbytes, 4 * plan->n_lanes),
						  LEAST_CHUNK_NBYTES));
	plan->chunk_records =
		round_up(at_least(nbytes / record_nbytes, 1), align_records(request->layout));
	if (!plan->unified)
		plan_slots(request, plan);
	plan->chunk_nbytes = plan->chunk_records * record_nbytes;
	plan->sort_scratch_nbytes = sort_scratch_nbytes(request, plan);
	if (request->layout->kind == LAYOUT_RECORDS)
		plan->spare_nbytes = plan->chunk_nbytes;
}

/* What the windows of a merge of resident chunks only take. */
static uint64_t resident_windows_nbytes(const struct plan *plan, const struct plan_request *request,
					uint32_t n_chunks)
{
	struct window_plan windows;

	plan_windows(plan, request, UINT64_MAX, UINT64_MAX, n_chunks, 0, &windows);
	return windows.n_windows *
	       (windows.capacity_records * (plan->resident_nbytes + plan->gathered_nbytes) +
		windows.scratch_nbytes);
}

/* What the lanes take that sort chunks. */
static uint64_t lanes_nbytes(const struct plan *plan)
{
	return plan->n_lanes * (plan->sort_scratch_nbytes + plan->spare_nbytes);
}

static bool plan_resident(const struct plan_request *request, struct plan *plan)
{
	const uint64_t input_nbytes = input_in_chunks_nbytes(request);
	const uint64_t n_chunks = divide_up(input_nbytes, plan->chunk_nbytes);
	uint64_t needed;

	if (input_nbytes > plan->device_nbytes)
		return false;
	needed = n_chunks * plan->chunk_nbytes + lanes_nbytes(plan);
	plan->merge_nbytes = resident_windows_nbytes(plan, request, (uint32_t)n_chunks);
	if (needed + plan->merge_nbytes > plan->device_nbytes)
		return false;
	plan->fits = true;
	plan->n_chunks = at_least(n_chunks, 1);
	plan->spill_chunks = plan->n_chunks;
	return true;
}

static void plan_spilling(struct plan *plan)
{
	uint64_t pool_nbytes;

	plan->merge_nbytes = plan->device_nbytes / 4;
	pool_nbytes = plan->device_nbytes - plan->merge_nbytes;
	pool_nbytes -= at_most(lanes_nbytes(plan), pool_nbytes / 2);
	plan->n_chunks = at_least(pool_nbytes / plan->chunk_nbytes, 4);
	plan->spill_chunks = plan->n_chunks / 2;
}

/* Runs that will be spilled from an input that takes input_nbytes in chunks. */
static uint64_t expected_runs(const struct plan *plan, uint64_t input_nbytes)
{
	return expect_runs(plan, divide_up(input_nbytes, plan->chunk_nbytes));
}

/* The size of the input in chunks, or something to plan with. */
static uint64_t expected_input_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       plan->memory_nbytes * UNKNOWN_INPUT_TIMES_MEMORY :
		       input_in_chunks_nbytes(request);
}

/* Of the input, what goes to spilled runs, or is in inputs of a merge. */
static uint64_t stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t input_nbytes = expected_input_nbytes(request, plan);

	if (request->n_input_runs)
		return input_nbytes;
	return expected_runs(plan, input_nbytes) * plan->spill_chunks * plan->chunk_nbytes;
}

/*
 * n windows in flight, each with room to read and to write the quota and the overhang of k runs;
 * with the quota twice the overhang:
 *
 *	n * 2 * (2 + 1) * k * block <= merge memory
 *
 * which is also enough for a third buffer, to pack in, if the quota is the overhang. Of what is
 * many times as large as the memory there would be so many blocks that their index filled it; then
 * they are longer, and fewer runs are merged at once.
 */
static void plan_blocks(const struct plan_request *request, struct plan *plan)
{
	const uint64_t per_block = 6 * plan->n_windows;
	const uint64_t n_runs = request->n_input_runs ?
					request->n_input_runs :
					expected_runs(plan, expected_input_nbytes(request, plan));
	const uint64_t least_for_index =
		divide_up(stored_nbytes(request, plan),
			  plan->memory_nbytes / INDEX_PART / sizeof(struct run_block));

	plan->block_nbytes = plan->merge_nbytes / (per_block * at_least(n_runs, 1));
	plan->block_nbytes =
		at_least(plan->block_nbytes,
			 at_most(least_for_index, plan->merge_nbytes / (per_block * LEAST_FAN_IN)));
	plan->block_nbytes =
		at_least(at_most(plan->block_nbytes, MOST_BLOCK_NBYTES), LEAST_BLOCK_NBYTES);
	plan->block_nbytes = at_least(plan->block_nbytes, plan->resident_nbytes);
	plan->block_nbytes = at_least(plan->block_nbytes, request->least_block_nbytes);
	plan->fan_in = (uint32_t)at_least(plan->merge_nbytes / (per_block * plan->block_nbytes), 2);
	if (request->batch_size)
		plan->fan_in = (uint32_t)at_most(plan->fan_in, request->batch_size);
}

/* Does the device pack what is spilled? It pays for what goes over a link. */
static bool device_packs(const struct plan_request *request, const struct plan *plan)
{
	return !plan->unified && !plan->fits && request->stores_codes &&
	       compression_takes_delta(&request->compression);
}

/* Does it store any runs? */
static bool stores_runs(const struct plan *plan)
{
	return plan->temporary_nbytes || plan->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/* Blocks of resident runs, all chunks together: each has its first key in memory. */
static uint64_t n_resident_blocks(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_chunks =
		at_most(plan->n_chunks,
			divide_up(expected_input_nbytes(request, plan), plan->chunk_nbytes));
	struct window_plan windows;

	if (n_chunks == 0)
		return 0;
	plan_windows(plan, request, plan->merge_nbytes, n_chunks * plan->chunk_records,
		     (uint32_t)n_chunks, plan->fits ? 0 : plan->fan_in, &windows);
	return n_chunks * divide_up(plan->chunk_records, windows.resident_stride);
}

/*
 * What is known of all blocks of all runs. A merge to a run needs the index of what it reads and of
 * what it writes; a checkpoint's records hold one, too, until they are written.
 */
static uint64_t index_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_blocks = divide_up(stored_nbytes(request, plan), plan->block_nbytes);
	const uint64_t of_inputs = request->n_input_runs ? n_blocks * sizeof(code_t) : 0;
	uint64_t n_copies = plan->n_passes > 1;

	if (stores_runs(plan))
		n_copies += !request->n_input_runs + request->keeps_index;
	return n_resident_blocks(request, plan) * sizeof(code_t) + of_inputs +
	       n_copies * n_blocks * sizeof(struct run_block);
}

/* All that depends on how much memory there is for data. */
static void plan_data(const struct plan_request *request, const struct device_info *info,
		      struct plan *plan)
{
	plan->device_nbytes = info->unified ?
				      data_nbytes(plan) :
				      at_least(request->device_nbytes, PLAN_LEAST_MEMORY_NBYTES);
	plan->window_nbytes =
		at_most(info->window_nbytes, data_nbytes(plan) / (4 * plan->n_windows));
	plan_chunks(request, info, plan);
	plan->fits = false;
	if (request->n_input_runs)
		plan->merge_nbytes = plan->device_nbytes;
	else if (!plan_resident(request, plan))
		plan_spilling(plan);
	plan->packs = device_packs(request, plan);
	plan_blocks(request, plan);
	plan_expect(request, plan);
}

/* For those that write and those that fetch blocks. */
static uint64_t codecs_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return (plan->n_writers + plan->n_readers) *
	       block_writer_thread_nbytes(&request->compression, request->stores_codes,
					  plan->block_nbytes);
}

static uint64_t streams_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return at_most(request->streams_nbytes, plan->memory_nbytes / STREAMS_PART);
}

/* What a sort as it is planned takes besides data. */
static void plan_side(const struct plan_request *request, struct plan *plan)
{
	plan->side_nbytes = streams_nbytes(request, plan);
	if (stores_runs(plan))
		plan->side_nbytes +=
			at_most(codecs_nbytes(request, plan), plan->memory_nbytes / CODECS_PART);
	plan->index_nbytes = at_most(index_nbytes(request, plan), plan->memory_nbytes / INDEX_PART);
}

void plan_make(const struct plan_request *request, struct plan *ret_plan)
{
	struct plan *plan = ret_plan;
	struct device_info info;

	device_describe(request->device, &info);
	*plan = (struct plan){
		.memory_nbytes = at_least(request->memory_nbytes, PLAN_LEAST_MEMORY_NBYTES),
		.input_nbytes = request->input_nbytes,
		.record_nbytes = (uint32_t)request->layout->record_nbytes,
		.element_nbytes = request->layout->element_nbytes,
		.resident_nbytes = request->layout->resident_nbytes,
		.unified = info.unified,
		.n_lanes = info.n_lanes,
		.n_readers = (uint32_t)at_most(request->n_threads, MOST_READERS),
		.n_writers = (uint32_t)at_most(request->n_threads, MOST_WRITERS),
	};
	if (request->layout->kind == LAYOUT_REFERENCES) {
		plan->mapped_nbytes = request->input_nbytes;
		plan->gathered_nbytes = plan->record_nbytes;
	}
	if (request->ordered_output)
		plan->n_writers = 1;
	memcpy(plan->device, info.name, sizeof plan->device);
	plan->n_windows = plan->n_lanes + plan->n_writers + 1;
	/*
	 * What is at the side depends on the blocks and on whether anything is stored, and these on
	 * how much is left for data: so both are computed in turn, until little changes.
	 */
	plan->side_nbytes = streams_nbytes(request, plan);
	for (int i = 0; i < ROUNDS; i++) {
		plan_data(request, &info, plan);
		plan_side(request, plan);
	}
	plan_data(request, &info, plan);
}

/* Scratch of the merge of k runs of n records in all. */
static uint64_t merge_scratch_nbytes(const struct plan_request *request, uint32_t k, uint64_t n)
{
	if (request->layout->kind == LAYOUT_RECORDS)
		return device_records_scratch_nbytes(request->device, request->layout, k, n);
	return device_merge_scratch_nbytes(request->device, k, n, request->layout->element_nbytes);
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

/* What a window with that quota takes, all in all; fills in *windows. */
static uint64_t window_nbytes(const struct plan *plan, const struct plan_request *request,
			      uint64_t quota, uint32_t n_resident, uint32_t n_stored,
			      struct window_plan *windows)
{
	const uint64_t overhang = n_stored * block_records(plan);
	const uint64_t n_buffers = n_stored ? 2 : 1;
	const uint64_t least_stride =
		at_least(at_most(LEAST_STRIDE_NBYTES / widest_nbytes(plan), 16), 1);

	windows->quota_records = quota;
	windows->resident_stride = at_least(quota / (4 * at_least(n_resident, 1)), least_stride);
	windows->capacity_records = quota + overhang + n_resident * windows->resident_stride;
	windows->scratch_nbytes = at_least(
		merge_scratch_nbytes(request, n_resident + n_stored, windows->capacity_records),
		plan->packs ? windows->capacity_records * plan->resident_nbytes : 0);
	return windows->capacity_records *
		       (n_buffers * plan->resident_nbytes + plan->gathered_nbytes) +
	       windows->scratch_nbytes;
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
	const uint64_t least = at_least(at_least(overhang, LEAST_WINDOW_NBYTES / record_nbytes), 1);
	uint64_t quota = at_least(plan->window_nbytes / record_nbytes, 4 * overhang);

	quota = at_least(at_most(quota, divide_up(n_records, 2 * plan->n_lanes)), least);
	ret_windows->n_windows = plan->n_windows;
	while (window_nbytes(plan, request, quota, n_resident, n_stored, ret_windows) >
		       nbytes / plan->n_windows &&
	       quota > least)
		quota = at_least(quota - divide_up(quota, 4), least); /* less, however small */
}
