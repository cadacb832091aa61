/*
 * plan_memory - what a plan needs besides chunks and windows, and altogether (see plan.h)
 */
#include "src/plan/plan_internal.h"

#include "io/spill/run_file.h"

enum {
	STREAM_CODEC_DIVISOR = 2,     /* of the memory, at most */
	RUN_OVERHEAD_NBYTES = 1 << 10 /* what a run is, without its blocks: rather too much */
};

/*
 * What is known of a block: of inputs of -m the first keys, but pipes among them are stored. A
 * merge to a run needs the index of what it reads and of what it writes; a checkpoint's records
 * hold one, too, until they are written. One of several ranks knows its own runs, and its range of
 * those of all.
 */
uint64_t plan_index_entry_nbytes(const struct plan_request *request, bool merges_to_runs)
{
	const bool reads_input_files = request->n_input_runs &&
				       request->input_nbytes != PLAN_SIZE_UNKNOWN;
	const uint64_t n_extra_entries =
		merges_to_runs + request->keeps_checkpoint_index + plan_is_distributed(request);

	return (reads_input_files ? sizeof(encoded_key_t) : sizeof(struct run_block)) +
	       n_extra_entries * sizeof(struct run_block);
}

/* The most that the index of all runs may take. */
uint64_t plan_max_index_nbytes(const struct plan *plan)
{
	return plan->memory_nbytes / PLAN_INDEX_DIVISOR + PLAN_OVERHEAD_NBYTES / 2;
}

/* Blocks of resident runs, all chunks together: each has its first key in memory. */
static uint64_t n_resident_blocks(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_chunks =
		u64_min(plan->n_chunks,
			divide_up(plan_expected_input_nbytes(request, plan), plan->chunk_nbytes));
	struct window_plan windows;

	if (n_chunks == 0)
		return 0;
	plan_windows(plan, request, plan->merge_nbytes, n_chunks * plan->chunk_records,
		     (uint32_t)n_chunks, plan->fits_in_memory ? 0 : plan->fan_in, &windows);
	return n_chunks * divide_up(plan->chunk_records, windows.resident_stride);
}

/* What is known of all blocks of all runs. */
uint64_t plan_index_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t n_blocks = divide_up(plan_stored_nbytes(request, plan), plan->block_nbytes);
	const bool has_stored_runs = plan_stores_runs(plan) || request->n_input_runs;

	return n_resident_blocks(request, plan) * sizeof(encoded_key_t) +
	       (has_stored_runs ?
			saturating_mul(n_blocks,
				       plan_index_entry_nbytes(request, plan->n_passes > 1)) :
			0);
}

/* For a thread. */
uint64_t plan_thread_codec_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return run_file_thread_nbytes(&request->compression, request->stores_encoded_keys,
				      plan->block_nbytes);
}

/* For those that write and those that fetch blocks. */
uint64_t plan_block_codecs_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return (plan->n_writers + plan->n_fetchers) * plan_thread_codec_nbytes(request, plan);
}

uint64_t plan_stream_codecs_nbytes(const struct plan_request *request, const struct plan *plan)
{
	return u64_min(request->stream_codec_nbytes, plan->memory_nbytes / STREAM_CODEC_DIVISOR);
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
static uint64_t final_merge_total_nbytes(const struct plan_request *request,
					 const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	const uint32_t n_stored =
		(uint32_t)u64_min(plan->fan_in, plan_expected_stored_runs(request, plan));

	if (plan_is_distributed(request) && !plan->copies_to_device)
		return (plan->keep_last_run_in_memory ? chunks_nbytes : 0) +
		       merge_total_nbytes(request, plan, plan->final_merge_nbytes, 0, n_stored);
	return plan->fits_in_memory ?
		       0 :
		       chunks_nbytes + merge_total_nbytes(request, plan, plan->merge_nbytes,
							  (uint32_t)plan->n_chunks, plan->fan_in);
}

/* Chunks and windows: while runs are formed, or when they are merged. */
static uint64_t chunks_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t chunks_nbytes = plan->n_chunks * plan->chunk_nbytes;
	uint64_t generation_nbytes;

	if (request->n_input_runs)
		return merge_total_nbytes(request, plan, plan->merge_nbytes, 0,
					  (uint32_t)u64_min(request->n_input_runs, plan->fan_in));
	/* Nothing is merged while runs are formed, and all has been found to have room. */
	generation_nbytes = chunks_nbytes + plan_queues_nbytes(plan);
	if (plan->fits_in_memory)
		generation_nbytes += plan->merge_nbytes;
	else
		generation_nbytes += merge_total_nbytes(request, plan, plan->merge_nbytes,
							(uint32_t)plan->chunks_per_run, 0);
	return u64_max(generation_nbytes, final_merge_total_nbytes(request, plan));
}

/* An input of a merge has a record to compare the next with, and some that become items. */
static uint64_t run_overhead_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const struct layout *layout = request->layout;
	const uint64_t n_runs = plan_expected_stored_runs(request, plan);
	uint64_t nbytes = RUN_OVERHEAD_NBYTES;

	if (request->n_input_runs)
		nbytes += layout->record_nbytes;
	if (request->n_input_runs && layout_has_projection(layout))
		nbytes += PLAN_INPUT_BATCH_NBYTES;
	return saturating_mul(n_runs, nbytes);
}

/* What encodes and decodes, and what chunks and windows take, or the slots of a device apart. */
static uint64_t working_set_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t codecs_nbytes =
		plan_stores_runs(plan) ? plan_block_codecs_nbytes(request, plan) : 0;

	/* Beside a device apart the host's part is a small one: of what the plan gave it, all. */
	if (plan->copies_to_device)
		return u64_min(codecs_nbytes + plan->n_slots * plan->slot_nbytes +
				       plan->host_spill_nbytes,
			       plan->memory_nbytes);
	return codecs_nbytes + chunks_total_nbytes(request, plan);
}

/* All of the host's memory that is needed at once. */
uint64_t plan_total_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint64_t streams_nbytes =
		u64_min(request->stream_codec_nbytes, PLAN_MAX_MEMORY_NBYTES);
	const uint64_t run_state_nbytes =
		u64_min(run_overhead_nbytes(request, plan) +
				u64_min(plan_index_nbytes(request, plan), PLAN_MAX_DATA_NBYTES),
			PLAN_MAX_DATA_NBYTES);

	return streams_nbytes + run_state_nbytes +
	       u64_min(plan->mapped_nbytes, PLAN_MAX_DATA_NBYTES) +
	       working_set_nbytes(request, plan);
}
