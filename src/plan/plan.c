/*
 * plan - how much of what, before anything starts (see plan.h)
 */
#include "src/plan/plan_inside.h"

#include <stdio.h>
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
	RANGE_BLOCKS = 100, /* of a run, at least, in the range of a rank */
	SMALL_REST_PART = 8,
	LONG_BLOCK_NBYTES = 64 << 10, /* for a message of its own */
	SLOT_NBYTES = 4 << 20, /* all of them stay in the last cache until they are uploaded */
	MOST_WRITERS = 2,      /* a file has one lock for writes: more only wait for it */
	LEAST_RANGE_NBYTES = 256 << 20,
	FEW_CHUNKS = 64,
	COPIED_RANGE_NBYTES = 1 << 30, /* of memory, for a range of what is copied to a device */
	CHUNKS_AT_LEAST = 32,          /* so that reading, sorting and spilling can overlap */
	UNKNOWN_INPUT_TIMES_MEMORY = 32,
	FETCHERS_OF_RANKS = 8,
	CODECS_PART = 16, /* of the memory, at most, as the next */
	USUAL_INDEX_PART = 8,
	USUAL_FAN_IN = 32, /* that an index of its usual part must leave */
	LEAST_FAN_IN = 2,
	MOST_FAN_IN = 1 << 20,
	RUN_NBYTES = 1 << 10, /* what a run is, without its blocks: rather too much */
	LEAST_LANES = 2,
	LEAST_CHUNKS = 4, /* of each device */
	ROUNDS = 3,
};

/* Numbers of 32 bits hold sums of them. */
static const uint64_t MOST_CHUNKS = UINT64_C(1) << 31;

/* Of the host's memory, what is there for data; nothing is left by a mapping that is too large. */
static uint64_t data_nbytes(const struct plan *plan)
{
	const uint64_t others_nbytes = plan->side_nbytes + plan->index_nbytes +
				       at_most(plan->mapped_nbytes, plan->memory_nbytes);

	return plan->memory_nbytes - at_most(others_nbytes, plan->memory_nbytes);
}

/* The room of a record in a chunk: it comes as a record, and stays as an element or an item. */
static uint64_t chunk_record_nbytes(const struct layout *layout)
{
	return at_least(layout->resident_nbytes,
			layout_has_elements(layout) ? 0 : layout->record_nbytes);
}

/* The size of the input in chunks. */
static uint64_t input_in_chunks_nbytes(const struct plan_request *request)
{
	if (request->input_nbytes == PLAN_SIZE_UNKNOWN)
		return PLAN_SIZE_UNKNOWN;
	return at_most(times(request->input_nbytes / request->layout->record_nbytes,
			     chunk_record_nbytes(request->layout)),
		       PLAN_MOST_CONTENT_NBYTES);
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
	const uint64_t nbytes =
		device_sort_scratch_nbytes(request->device, layout, plan->chunk_records);

	if (!layout_has_elements(layout))
		return nbytes;
	/* Records that cannot expand where they are go by way of it (chunk_pool.c). */
	return at_least(nbytes, plan->copies ? plan->chunk_records * plan->record_nbytes : 0);
}

/*
 * Do the fewest lanes that there are leave half of its room to the chunks (plan_spilling())? Where
 * elements are many times as wide as records, a chunk's scratch is many times as long as a chunk.
 */
static bool lanes_have_room(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t spare_nbytes = plan->chunk_records * chunk_record_nbytes(layout);
	const uint64_t nbytes = sort_scratch_nbytes(request, plan) +
				(layout_has_elements(layout) ? 0 : spare_nbytes);

	return LEAST_LANES * nbytes <= plan->device_nbytes / 8 * 3;
}

/*
 * As the device likes them, but no larger than a part of the input for each lane (all lanes are to
 * work) or of the memory (several chunks are needed for overlap). Rounded up: of wide records there
 * would be twice as many chunks, each with room for a record in every window of a merge.
 */
static void plan_chunks(const struct plan_request *request, uint64_t liked_nbytes,
			struct plan *plan)
{
	const uint64_t record_nbytes = chunk_record_nbytes(request->layout);
	const uint64_t input_nbytes = input_in_chunks_nbytes(request);
	const uint64_t align = align_records(request->layout);
	const uint64_t n_lanes = plan->n_devices * plan->n_lanes;
	uint64_t nbytes = at_most(liked_nbytes, plan->device_nbytes / CHUNKS_AT_LEAST);

	if (input_nbytes != PLAN_SIZE_UNKNOWN)
		nbytes = at_most(nbytes, at_least(divide_up(input_nbytes, 4 * n_lanes),
						  LEAST_CHUNK_NBYTES));
	plan->chunk_records = round_up(at_least(divide_up(nbytes, record_nbytes), 1), align);
	while (!lanes_have_room(request, plan) && plan->chunk_records > align)
		plan->chunk_records = round_up(plan->chunk_records / 2, align);
	if (plan->copies)
		plan_slots(request, plan);
	plan->chunk_nbytes = plan->chunk_records * record_nbytes;
	plan->sort_scratch_nbytes = sort_scratch_nbytes(request, plan);
	if (!layout_has_elements(request->layout))
		plan->spare_nbytes = plan->chunk_nbytes;
}

/* What the windows of a merge of resident chunks only take. */
static uint64_t resident_windows_nbytes(const struct plan *plan, const struct plan_request *request,
					uint32_t n_chunks)
{
	struct window_plan windows;

	plan_windows(plan, request, UINT64_MAX, plan_input_records(request), n_chunks, 0, &windows);
	return plan_windows_nbytes(plan, &windows, false);
}

/* What the lanes of a device take that sort chunks. */
uint64_t plan_lanes_nbytes(const struct plan *plan)
{
	return plan->n_lanes * (plan->sort_scratch_nbytes + plan->spare_nbytes);
}

static bool plan_resident(const struct plan_request *request, struct plan *plan)
{
	const uint64_t input_nbytes = input_in_chunks_nbytes(request);
	const uint64_t n_each =
		divide_up(divide_up(input_nbytes, plan->chunk_nbytes), plan->n_devices);
	const uint64_t n_chunks = n_each * plan->n_devices;
	uint64_t needed;

	if (input_nbytes / plan->n_devices > plan->device_nbytes || n_chunks > MOST_CHUNKS)
		return false;
	needed = n_each * plan->chunk_nbytes + plan_lanes_nbytes(plan);
	plan->merge_nbytes = resident_windows_nbytes(plan, request, (uint32_t)n_chunks);
	if (needed + plan->merge_nbytes > plan->device_nbytes)
		return false;
	plan->fits = true;
	plan->n_chunks = at_least(n_chunks, plan->n_devices);
	plan->spill_chunks = plan->n_chunks;
	return true;
}

static void plan_spilling(struct plan *plan)
{
	uint64_t pool_nbytes, n_each;

	plan->merge_nbytes = plan->device_nbytes / 4;
	pool_nbytes = plan->device_nbytes - plan->merge_nbytes;
	pool_nbytes -= at_most(plan_lanes_nbytes(plan), pool_nbytes / 2);
	n_each = at_most(at_least(pool_nbytes / plan->chunk_nbytes, LEAST_CHUNKS),
			 MOST_CHUNKS / plan->n_devices);
	plan->n_chunks = n_each * plan->n_devices;
	plan->spill_chunks = plan->n_chunks / 2;
}

/* Runs that will be spilled from an input that takes input_nbytes in chunks. */
static uint64_t expected_runs(const struct plan *plan, uint64_t input_nbytes)
{
	return expect_runs(plan, divide_up(input_nbytes, plan->chunk_nbytes));
}

/* The size of the input in chunks, or something to plan with. */
uint64_t plan_expected_input_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN ?
		       plan->memory_nbytes * UNKNOWN_INPUT_TIMES_MEMORY :
		       input_in_chunks_nbytes(request);
}

/* Of the input, what goes to spilled runs, or is in inputs of a merge. */
uint64_t plan_stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t input_nbytes = plan_expected_input_nbytes(request, plan);
	const uint64_t most_nbytes = request->limit ? times(request->limit, plan->resident_nbytes) :
						      UINT64_MAX;
	const uint64_t run_nbytes = at_most(plan->spill_chunks * plan->chunk_nbytes, most_nbytes);
	uint64_t nbytes;

	if (request->n_input_runs)
		return input_nbytes;
	nbytes = times(expected_runs(plan, input_nbytes), run_nbytes);
	return request->counts_first || plan_has_ranks(request) ?
		       at_least(nbytes, at_most(input_nbytes, most_nbytes)) :
		       nbytes;
}

uint64_t plan_expected_stored_runs(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_own =
		request->n_input_runs ?
			request->n_input_runs :
			expected_runs(plan, plan_expected_input_nbytes(request, plan));

	/* And what is resident in the end is one more. */
	return plan_has_ranks(request) ? times(n_own + 1, request->n_ranks) : n_own;
}

/*
 * n windows in flight, each with room to read and to write the quota and the overhang of k runs;
 * with the quota twice the overhang:
 *
 *	n * 2 * (2 + 1) * k * block <= merge memory
 *
 * A window may also be as short as its overhang, and a quarter of that longer if resident runs take
 * part. Where records have much scratch beside them, that is more:
 *
 *	n * (1 + 1 + 1/4) * k * block * (what a record takes / a record) <= merge memory
 *
 * Of what is many times as large as the memory there would be so many blocks that their index
 * filled it; then they are longer, and fewer runs are merged at once: 32 at least as long as the
 * index has room, then 2. An index that has none then is too large for this memory (is_enough).
 */
static uint64_t nbytes_per_block(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t shortest =
		divide_up(9 * plan_merged_record_nbytes(request, plan), 4 * plan->resident_nbytes);

	return plan_most_windows(plan) * at_least(shortest, 6);
}

/*
 * Where a rank's range begins and ends, others read the same block, of each run, and ranges differ
 * by as much: a percent of the range at most.
 */
static uint64_t most_block_nbytes(const struct plan_request *request, uint64_t nbytes,
				  uint64_t n_runs)
{
	return plan_has_ranks(request) ?
		       at_most(nbytes / (RANGE_BLOCKS * n_runs), MOST_BLOCK_NBYTES) :
		       MOST_BLOCK_NBYTES;
}

static void plan_blocks_with(const struct plan_request *request, struct plan *plan,
			     uint64_t nbytes_of_each)
{
	const uint64_t per_block = nbytes_per_block(request, plan);
	const uint64_t n_runs = at_least(plan_expected_stored_runs(request, plan), 1);
	const uint64_t nbytes = plan_stored_nbytes(request, plan);
	const uint64_t usual =
		divide_up(nbytes, plan->memory_nbytes / USUAL_INDEX_PART / nbytes_of_each);
	const uint64_t least = divide_up(nbytes, plan_index_room_nbytes(plan) / nbytes_of_each);
	const uint64_t merge_nbytes = plan->last_merge_nbytes;
	uint64_t block_nbytes = merge_nbytes / per_block / n_runs;

	block_nbytes =
		at_least(block_nbytes, at_most(usual, merge_nbytes / (per_block * USUAL_FAN_IN)));
	block_nbytes =
		at_least(block_nbytes, at_most(least, merge_nbytes / (per_block * LEAST_FAN_IN)));
	block_nbytes = at_most(block_nbytes, most_block_nbytes(request, nbytes, n_runs));
	block_nbytes = at_least(block_nbytes, LEAST_BLOCK_NBYTES);
	block_nbytes = at_least(block_nbytes, plan->resident_nbytes);
	plan->block_nbytes = at_least(block_nbytes, request->least_block_nbytes);
	plan->fan_in = (uint32_t)at_most(at_least(merge_nbytes / (per_block * plan->block_nbytes),
						  LEAST_FAN_IN),
					 request->batch_size ? request->batch_size : MOST_FAN_IN);
}

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
static uint32_t n_ranges(const struct plan_request *request, const struct plan *plan,
			 uint64_t nbytes)
{
	const uint32_t n_files = request->n_part_files;

	if (request->ordered_input || request->ordered_output || (request->unique && !n_files))
		return 1;
	if (request->n_ranges)
		return request->n_ranges;
	return plan_meet_files(usual_ranges(request, plan, nbytes), n_files);
}

static bool merges_at_once(const struct plan_request *request, const struct plan *plan)
{
	return plan_expected_stored_runs(request, plan) <= plan->fan_in;
}

/* Long enough for a message each; or longer ones would cost a large part of the input. */
static bool has_long_blocks(const struct plan_request *request, const struct plan *plan)
{
	return plan->block_nbytes >= LONG_BLOCK_NBYTES ||
	       plan->n_chunks * plan->chunk_nbytes >
		       plan_expected_input_nbytes(request, plan) / SMALL_REST_PART;
}

/*
 * What is left in chunks is stored in memory, or to be written, and then the merge has all of the
 * memory. It is worth that if it takes a pass away, or blocks were so short that messages are.
 */
static void plan_rest(const struct plan_request *request, struct plan *plan)
{
	const uint64_t entry_nbytes = plan_entry_nbytes(request, request->counts_first);

	/* A checkpoint keeps what it keeps on a disk. */
	plan->keeps_rest = !plan->copies && !request->keeps_index;
	plan->last_merge_nbytes = plan->merge_nbytes;
	if (plan_has_ranks(request) && plan->fits && !plan->copies)
		plan->last_merge_nbytes =
			at_least(plan->merge_nbytes,
				 plan->device_nbytes - at_most(plan->n_chunks * plan->chunk_nbytes +
								       plan_lanes_nbytes(plan),
							       plan->device_nbytes));
	plan_blocks_with(request, plan, entry_nbytes);
	if (!plan_has_ranks(request) || plan->fits || plan->copies || request->n_input_runs ||
	    (merges_at_once(request, plan) && has_long_blocks(request, plan)))
		return;
	plan->keeps_rest = false;
	plan->last_merge_nbytes = plan->device_nbytes;
	plan_blocks_with(request, plan, entry_nbytes);
}

/*
 * Ranges, which take shorter blocks, must not cost a pass. Nor must they shorten those of an input
 * of unknown size, as the index of more blocks is full sooner: there may be no end of it.
 */
static void plan_blocks(const struct plan_request *request, struct plan *plan)
{
	const bool is_known = request->input_nbytes != PLAN_SIZE_UNKNOWN;

	plan->n_ranges = n_ranges(request, plan, is_known ? request->input_nbytes : 0);
	plan_rest(request, plan);
	if (merges_at_once(request, plan))
		return;
	plan->n_ranges = 1;
	plan_rest(request, plan);
	if (!merges_at_once(request, plan))
		plan_blocks_with(request, plan, plan_entry_nbytes(request, true));
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

/* Chunks and windows, so many times as long as the device likes them with little memory. */
static void plan_sizes(const struct plan_request *request, const struct device_info *info,
		       uint64_t times, struct plan *plan)
{
	plan->window_nbytes =
		at_most(times * info->window_nbytes, data_nbytes(plan) / (4 * plan->n_windows));
	plan_chunks(request, times * info->chunk_nbytes, plan);
	plan->fits = false;
}

/*
 * Of many chunks each gives a window so little that it is merged slowly. (Ranks have a use for the
 * memory: last_merge_nbytes.)
 */
static bool are_better_longer(const struct plan_request *request, const struct device_info *info)
{
	const uint64_t n_chunks = input_in_chunks_nbytes(request) / info->chunk_nbytes;

	return info->fitting_times > 1 && n_chunks > FEW_CHUNKS && !plan_has_ranks(request);
}

/* Longer chunks and windows take memory, which is there if all fits with them. */
static bool plan_fitting(const struct plan_request *request, const struct device_info *info,
			 struct plan *plan)
{
	if (are_better_longer(request, info)) {
		plan_sizes(request, info, info->fitting_times, plan);
		if (plan_resident(request, plan))
			return true;
	}
	plan_sizes(request, info, 1, plan);
	return plan_resident(request, plan);
}

/* All that depends on how much memory there is for data. */
static void plan_data(const struct plan_request *request, const struct device_info *info,
		      struct plan *plan)
{
	plan->device_nbytes =
		info->unified ? data_nbytes(plan) :
				at_most(at_least(request->device_nbytes, PLAN_LEAST_MEMORY_NBYTES),
					PLAN_MOST_MEMORY_NBYTES);
	if (request->n_input_runs) {
		plan_sizes(request, info, 1, plan);
		plan->merge_nbytes = plan->device_nbytes;
	} else if (!plan_fitting(request, info, plan)) {
		plan_spilling(plan);
	}
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
	plan->index_nbytes = at_most(index_nbytes, plan->memory_nbytes / USUAL_INDEX_PART);
	index_nbytes -= at_most(index_nbytes, PLAN_BESIDE_NBYTES / 2);
	plan->index_nbytes = at_least(plan->index_nbytes,
				      at_most(index_nbytes, plan->memory_nbytes / PLAN_INDEX_PART));
	plan->most_stored_blocks = plan_index_room_nbytes(plan) / plan_entry_nbytes(request, true);
}

uint64_t plan_most_threads(uint64_t memory_nbytes)
{
	return at_least(memory_nbytes / PLAN_THREAD_NBYTES, LEAST_LANES);
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

/* With that much of the memory. */
/* All that is planned with may be more than was asked for: the least that can be. */
static uint64_t exchange_nbytes(const struct plan_request *request, uint64_t memory_nbytes)
{
	const uint64_t all_nbytes = request->memory_nbytes + request->exchange_nbytes;

	return at_most(request->exchange_nbytes, all_nbytes - at_most(memory_nbytes, all_nbytes));
}

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
	while (!plan->is_enough && info.unified && plan->n_lanes > LEAST_LANES) {
		plan->n_lanes = (uint32_t)at_least(plan->n_lanes / 2, LEAST_LANES);
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
		ret_plan->n_ranges = n_ranges(request, ret_plan, UINT64_MAX);
}

uint32_t plan_most_ranges(const struct plan *plan, const struct plan_request *request,
			  uint64_t n_records)
{
	const uint64_t nbytes = times(n_records, plan->record_nbytes);

	if (request->input_nbytes != PLAN_SIZE_UNKNOWN || request->n_ranges)
		return plan->n_ranges;
	return (uint32_t)at_most(plan->n_ranges, n_ranges(request, plan, nbytes));
}
