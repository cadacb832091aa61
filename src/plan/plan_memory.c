/*
 * plan_memory - what a plan needs besides chunks and windows, and altogether (see plan.h)
 */
#include "src/plan/plan_internal.h"

#include "io/spill/block_writer.h"
#include "io/spill/run_format.h"

enum {
	STREAMS_PART = 2,    /* of the memory, at most */
	RUN_NBYTES = 1 << 10 /* what a run is, without its blocks: rather too much */
};

/*
 * What is known of a block: of inputs of -m the first keys, but pipes among them are stored. A
 * merge to a run needs the index of what it reads and of what it writes; a checkpoint's records
 * hold one, too, until they are written. One of several ranks knows its own runs, and its range of
 * those of all.
 */
uint64_t plan_entry_nbytes(const struct plan_request *request, bool merges_to_runs)
{
	const bool is_read_from_inputs = request->n_input_runs &&
					 request->input_nbytes != PLAN_SIZE_UNKNOWN;
	const uint64_t n_more = merges_to_runs + request->keeps_index + plan_has_ranks(request);

	return (is_read_from_inputs ? sizeof(code_t) : sizeof(struct run_block)) +
	       n_more * sizeof(struct run_block);
}

/* The most that the index of all runs may take. */
uint64_t plan_index_room_nbytes(const struct plan *plan)
{
	return plan->memory_nbytes / PLAN_INDEX_PART + PLAN_BESIDE_NBYTES / 2;
}

/* Blocks of resident runs, all chunks together: each has its first key in memory. */
static uint64_t n_resident_blocks(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_chunks =
		at_most(plan->n_chunks,
			divide_up(plan_expected_input_nbytes(request, plan), plan->chunk_nbytes));
	struct window_plan windows;

	if (n_chunks == 0)
		return 0;
	plan_windows(plan, request, plan->merge_nbytes, n_chunks * plan->chunk_records,
		     (uint32_t)n_chunks, plan->fits ? 0 : plan->fan_in, &windows);
	return n_chunks * divide_up(plan->chunk_records, windows.resident_stride);
}

/* What is known of all blocks of all runs. */
uint64_t plan_index_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_blocks = divide_up(plan_stored_nbytes(request, plan), plan->block_nbytes);
	const bool has_any = plan_stores_runs(plan) || request->n_input_runs;

	return n_resident_blocks(request, plan) * sizeof(code_t) +
	       (has_any ? times(n_blocks, plan_entry_nbytes(request, plan->n_passes > 1)) : 0);
}

/* For a thread. */
uint64_t plan_codec_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return block_writer_thread_nbytes(&request->compression, request->stores_codes,
					  plan->block_nbytes);
}

/* For those that write and those that fetch blocks. */
uint64_t plan_codecs_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return (plan->n_writers + plan->n_fetchers) * plan_codec_nbytes(request, plan);
}

uint64_t plan_streams_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return at_most(request->streams_nbytes, plan->memory_nbytes / STREAMS_PART);
}

/* Windows of a merge of so many runs, and what else it needs of each run and window. */
static uint64_t merge_total_nbytes(const struct plan_request *request, const struct plan *plan,
				   uint64_t nbytes, uint32_t n_resident, uint32_t n_stored)
{
	const struct layout *layout = request->layout;
	const bool has_items = !layout_has_elements(layout);
	const uint64_t n_edges = has_items ? 2 : 0;
	const uint64_t key_nbytes = has_items ? layout->item_keys.key_nbytes : 0;
	struct window_plan windows;

	plan_windows(plan, request, nbytes, plan_input_records(request), n_resident, n_stored,
		     &windows);
	return plan_windows_nbytes(plan, &windows, n_stored > 0) +
	       windows.n_windows * n_edges * layout->item_nbytes +
	       ((uint64_t)n_resident + n_stored) * key_nbytes;
}

/*
 * The last merge, and chunks that it merges, or that others merge. Of what is resident no more than
 * its windows is needed, which all had room for.
 */
static uint64_t last_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	const uint32_t n_stored =
		(uint32_t)at_most(plan->fan_in, plan_expected_stored_runs(request, plan));

	if (plan_has_ranks(request) && !plan->copies)
		return (plan->keeps_rest ? chunks_nbytes : 0) +
		       merge_total_nbytes(request, plan, plan->last_merge_nbytes, 0, n_stored);
	return plan->fits ?
		       0 :
		       chunks_nbytes + merge_total_nbytes(request, plan, plan->merge_nbytes,
							  (uint32_t)plan->n_chunks, plan->fan_in);
}

/* Chunks and windows: while runs are formed, or when they are merged. */
static uint64_t data_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	uint64_t forming;

	if (request->n_input_runs)
		return merge_total_nbytes(request, plan, plan->merge_nbytes, 0,
					  (uint32_t)at_most(request->n_input_runs, plan->fan_in));
	/* Nothing is merged while runs are formed, and all has been found to have room. */
	forming = chunks_nbytes + plan_lanes_nbytes(plan);
	if (plan->fits)
		forming += plan->merge_nbytes;
	else
		forming += merge_total_nbytes(request, plan, plan->merge_nbytes,
					      (uint32_t)plan->spill_chunks, 0);
	return at_least(forming, last_total_nbytes(request, plan));
}

/* An input of a merge has a record to compare the next with, and some that become items. */
static uint64_t runs_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t n_runs = plan_expected_stored_runs(request, plan);
	uint64_t nbytes = RUN_NBYTES;

	if (request->n_input_runs)
		nbytes += layout->record_nbytes;
	if (request->n_input_runs && layout_makes_items(layout))
		nbytes += PLAN_INPUT_BATCH_NBYTES;
	return times(n_runs, nbytes);
}

/* What encodes and decodes, and what chunks and windows take, or the slots of a device apart. */
static uint64_t working_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codecs_nbytes = plan_stores_runs(plan) ? plan_codecs_nbytes(request, plan) :
								0;

	/* Beside a device apart the host's part is a small one: of what the plan gave it, all. */
	if (plan->copies)
		return at_most(codecs_nbytes + plan->n_slots * plan->slot_nbytes +
				       plan->host_tier_nbytes,
			       plan->memory_nbytes);
	return codecs_nbytes + data_total_nbytes(request, plan);
}

/* All of the host's memory that is needed at once. */
uint64_t plan_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t streams_nbytes = at_most(request->streams_nbytes, PLAN_MOST_MEMORY_NBYTES);
	const uint64_t kept_nbytes =
		at_most(runs_nbytes(request, plan) +
				at_most(plan_index_nbytes(request, plan), PLAN_MOST_CONTENT_NBYTES),
			PLAN_MOST_CONTENT_NBYTES);

	return streams_nbytes + kept_nbytes +
	       at_most(plan->mapped_nbytes, PLAN_MOST_CONTENT_NBYTES) +
	       working_nbytes(request, plan);
}
