/*
 * plan_passes.c - estimate how much a plan spills and merges, and its temporary space
 *
 * Except for the index of blocks, nothing in memory is sized by these estimates. --explain prints
 * them, and the sort checks the temporary directories for this space before it starts.
 *
 * Files take more space than the items in them: an extent takes whole pages, and merged parts of
 * runs are freed late (io/spill/).
 */
#include "src/plan/plan_internal.h"

#include "io/codec/zst.h"
#include "io/spill/run_file.h"
#include "io/spill/spill.h"

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	return u64_min(a, UINT64_MAX - b) + b;
}

/*
 * The tree of merges. Its leaves are the runs, and every node has fan_in children, except for one
 * at the bottom. With n_level_nodes, the largest power of fan_in that is not above n_runs, some
 * nodes of that level are leaves, and the others, n_inner_nodes, hold the rest of the runs one
 * level below.
 */
struct merge_tree {
	uint64_t n_level_nodes, depth; /* depth of that level; the final merge is at 0 */
	uint64_t n_inner_nodes, n_bottom_runs;
};

/* Make the tree of more than fan_in runs. */
static struct merge_tree make_merge_tree(uint64_t n_runs, uint32_t fan_in)
{
	struct merge_tree tree = { .n_level_nodes = fan_in, .depth = 1 };

	while (n_runs / tree.n_level_nodes >= fan_in) {
		tree.n_level_nodes *= fan_in;
		tree.depth++;
	}
	tree.n_inner_nodes = divide_up(n_runs - tree.n_level_nodes, fan_in - 1);
	tree.n_bottom_runs = n_runs - tree.n_level_nodes + tree.n_inner_nodes;
	return tree;
}

/* Return the length of a merge of n runs. */
static uint64_t merged_length(uint64_t n, uint64_t run_length, uint64_t max_length)
{
	return u64_min(saturating_mul(n, run_length), max_length);
}

/*
 * Return the sum of the lengths at the level where a node holds n_subtree_nodes of n_level_nodes.
 * Nodes that were merged are neighbours, and so are those that were not. One holds some of both, or
 * the shortage of the first merge.
 */
static uint64_t level_length(const struct merge_tree *tree, uint32_t fan_in,
			     uint64_t n_subtree_nodes, uint64_t run_length, uint64_t max_length)
{
	const uint64_t n = tree->n_level_nodes / n_subtree_nodes;
	const uint64_t short_length = merged_length(n_subtree_nodes, run_length, max_length);
	const uint64_t long_length =
		merged_length(saturating_mul(n_subtree_nodes, fan_in), run_length, max_length);
	uint64_t n_mixed, n_long, mixed_length;

	if (tree->n_inner_nodes == 0)
		return saturating_mul(n, short_length);
	n_mixed = (tree->n_inner_nodes - 1) % n_subtree_nodes + 1;
	n_long = (tree->n_inner_nodes - n_mixed) / n_subtree_nodes;
	mixed_length = merged_length(n_subtree_nodes - n_mixed + n_mixed * fan_in -
					     (tree->n_inner_nodes * fan_in - tree->n_bottom_runs),
				     run_length, max_length);
	return saturating_add(saturating_add(saturating_mul(n_long, long_length), mixed_length),
			      saturating_mul(n - n_long - 1, short_length));
}

/*
 * The merges of runs of run_length until at most fan_in are left, as merge_passes() does them. Each
 * leaves at most max_length; UINT64_MAX: all. Volumes are in the unit of these lengths.
 */
struct pass_volumes {
	uint64_t n_merges;           /* before the final one */
	uint64_t n_merged, n_stored; /* read and stored by these */
	uint64_t n_final;            /* read by the final merge */
	uint64_t n_passes; /* merges that a record goes through at most, the final one included */
};

/*
 * Compute the volumes if a merge leaves less than a run. Its result is then the shortest run and
 * goes into the next merge, together with as many runs as fit in one merge.
 */
static struct pass_volumes chained_volumes(uint64_t n_runs, uint32_t fan_in, uint64_t run_length,
					   uint64_t max_length)
{
	const uint64_t n_merges = divide_up(n_runs - fan_in, fan_in - 1);
	const uint64_t first_fan_in = n_runs - fan_in - (n_merges - 1) * (fan_in - 1) + 1;
	const uint64_t full_length =
		saturating_add(max_length, saturating_mul(fan_in - 1, run_length));

	return (struct pass_volumes){
		.n_merges = n_merges,
		.n_merged = saturating_add(saturating_mul(first_fan_in, run_length),
					   saturating_mul(n_merges - 1, full_length)),
		.n_stored = saturating_mul(n_merges, max_length),
		.n_final = full_length,
		.n_passes = u64_min(n_merges, UINT32_MAX - 1) + 1,
	};
}

static struct pass_volumes compute_pass_volumes(uint64_t n_runs, uint32_t fan_in,
						uint64_t run_length, uint64_t max_length)
{
	struct pass_volumes volumes = { .n_final = saturating_mul(n_runs, run_length),
					.n_passes = 1 };
	struct merge_tree tree;
	uint64_t n_subtree_nodes = 1;

	if (n_runs <= fan_in)
		return volumes;
	if (run_length > max_length)
		return chained_volumes(n_runs, fan_in, run_length, max_length);
	tree = make_merge_tree(n_runs, fan_in);
	volumes.n_merges = divide_up(n_runs - fan_in, fan_in - 1);
	volumes.n_passes = tree.depth + (tree.n_bottom_runs > 0);
	volumes.n_merged = saturating_mul(tree.n_bottom_runs, run_length);
	volumes.n_final = level_length(&tree, fan_in, n_subtree_nodes, run_length, max_length);
	volumes.n_stored =
		volumes.n_final -
		u64_min(saturating_mul(tree.n_level_nodes - tree.n_inner_nodes, run_length),
			volumes.n_final);
	for (uint64_t level = tree.depth; level > 1; level--) {
		n_subtree_nodes *= fan_in;
		volumes.n_merged = saturating_add(volumes.n_merged, volumes.n_final);
		volumes.n_final =
			level_length(&tree, fan_in, n_subtree_nodes, run_length, max_length);
		volumes.n_stored = saturating_add(volumes.n_stored, volumes.n_final);
	}
	return volumes;
}

uint64_t plan_spilled_runs(const struct plan *plan, uint64_t n_chunks)
{
	if (n_chunks <= plan->n_chunks)
		return 0;
	return divide_up(n_chunks - plan->n_chunks, plan->chunks_per_run);
}

/*
 * Return the number of spilled runs of a pipe: a run is spilled whenever three quarters of the
 * chunks are used.
 */
static uint64_t estimate_pipe_runs(const struct plan *plan, uint64_t n_chunks)
{
	const uint64_t spill_threshold = plan->n_chunks - plan->n_chunks / 4;

	return n_chunks < spill_threshold ? 0 :
					    (n_chunks - spill_threshold) / plan->chunks_per_run + 1;
}

static bool has_unknown_size(const struct plan_request *request)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/*
 * Return whether inputs are merged in place: regular files only. Pipes are spilled first, and any
 * input of unknown size may be one.
 */
static bool merges_regular_files(const struct plan_request *request)
{
	return request->n_input_runs && !has_unknown_size(request);
}

static uint64_t estimate_runs(const struct plan_request *request, const struct plan *plan,
			      uint64_t n)
{
	const uint64_t n_chunks = divide_up(n, plan->chunk_records);

	if (request->n_input_runs)
		return request->n_input_runs;
	if (plan->fits_in_memory)
		return 0;
	if (request->assumes_unbounded)
		return divide_up(n_chunks, plan->chunks_per_run);
	return has_unknown_size(request) ? estimate_pipe_runs(plan, n_chunks) :
					   plan_spilled_runs(plan, n_chunks);
}

static uint64_t records_per_run(const struct plan *plan)
{
	return plan->chunks_per_run * plan->chunk_records;
}

/* Return whether a checkpoint keeps the resident chunks as one more run, as it does with -u. */
static bool checkpoints_last_run(const struct plan_request *request, uint64_t n_runs)
{
	return request->keeps_checkpoint_index && request->unique && n_runs > 0;
}

/* Return how many of n records are in the n_runs spilled runs. */
static uint64_t spilled_records(const struct plan_request *request, const struct plan *plan,
				uint64_t n, uint64_t n_runs)
{
	uint64_t n_spilled = saturating_mul(n_runs, records_per_run(plan));

	if (checkpoints_last_run(request, n_runs))
		n_spilled = n;
	if (plan_is_distributed(request) && !plan->keep_last_run_in_memory &&
	    !request->n_input_runs)
		n_spilled = n;
	return u64_min(n_spilled, n);
}

/* Return how many records in n_runs runs a limit leaves. */
static uint64_t apply_limit(const struct plan_request *request, uint64_t n, uint64_t n_runs)
{
	return request->limit ? u64_min(n, saturating_mul(n_runs, request->limit)) : n;
}

/* Return how many of n records a rank stores at the end as one more run. */
static uint64_t records_spilled_to_memory(const struct plan_request *request,
					  const struct plan *plan, uint64_t n, uint64_t n_runs)
{
	const uint64_t n_resident = n - u64_min(saturating_mul(n_runs, records_per_run(plan)), n);

	if (!plan_is_distributed(request) || request->n_input_runs ||
	    !plan->keep_last_run_in_memory)
		return 0;
	return request->limit ? u64_min(n_resident, request->limit) : n_resident;
}

/* Return how much a window stores at least, in most cases. */
static uint64_t window_stored_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint32_t n_resident = plan->n_chunks ? (uint32_t)plan->chunks_per_run : 0;
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, UINT64_MAX, n_resident,
		     n_resident ? 0 : plan->fan_in, &windows);
	return windows.quota_records * request->layout->item_nbytes / 2 + 1;
}

static uint64_t round_up_to_page(uint64_t nbytes)
{
	return saturating_mul(divide_up(nbytes, SPILL_ALIGN_NBYTES), SPILL_ALIGN_NBYTES);
}

/*
 * Return how many of n records are merged to one run to count them. None, if one chunk holds them
 * all: it is counted as a run.
 */
static uint64_t count_pass_records(const struct plan_request *request, const struct plan *plan,
				   uint64_t n)
{
	if (!request->needs_count_pass ||
	    (plan->fits_in_memory && plan->n_chunks == 1 && !plan_is_distributed(request)))
		return 0;
	return request->limit ? u64_min(n, request->limit) : n;
}

/*
 * Plan the pass that counts. While it merges all runs into one, merged parts are freed, unless
 * other ranks may still need them.
 */
static void plan_count_pass(const struct plan_request *request, struct plan *plan, uint64_t n)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t stored_nbytes = plan->temp_nbytes;

	plan->count_pass_nbytes = saturating_mul(count_pass_records(request, plan, n), item_nbytes);
	if (plan->count_pass_nbytes == 0)
		return;
	plan->n_passes++;
	plan->merge_pass_input_nbytes =
		saturating_add(plan->merge_pass_input_nbytes, plan->count_pass_nbytes);
	plan->merge_pass_nbytes = saturating_add(plan->merge_pass_nbytes, plan->count_pass_nbytes);
	plan->final_merge_stored_nbytes = plan->count_pass_nbytes;
	plan->temp_nbytes = saturating_add(stored_nbytes, plan->count_pass_nbytes);
	if (!plan_is_distributed(request))
		plan->temp_nbytes = u64_min(plan->temp_nbytes,
					    u64_max(saturating_mul(n, item_nbytes), stored_nbytes));
}

/*
 * Return the space for nbytes of uncompressed items. Neighbouring blocks share an extent, unless
 * only one of them is encoded. The last block of a window is short.
 */
static uint64_t temp_space_nbytes(const struct plan_request *request, const struct plan *plan,
				  uint64_t n_runs, uint64_t nbytes)
{
	const uint64_t window_nbytes =
		u64_min(window_stored_nbytes(request, plan), BLOCK_GROUP_NBYTES);
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t block_nbytes =
		run_file_block_n_items(plan->block_nbytes, (uint32_t)item_nbytes) * item_nbytes;
	uint64_t space_nbytes = nbytes;

	if (request->compression.mode != COMPRESS_NONE)
		space_nbytes = saturating_mul(divide_up(nbytes, block_nbytes),
					      round_up_to_page(block_nbytes));
	return saturating_add(
		space_nbytes,
		saturating_mul(saturating_add(divide_up(nbytes, window_nbytes), n_runs),
			       SPILL_ALIGN_NBYTES));
}

/* Return the additional space while runs are merged into longer ones. */
static uint64_t pass_temp_nbytes(const struct plan_request *request, const struct plan *plan,
				 uint64_t space_nbytes)
{
	const uint64_t n_runs = u64_max(plan->n_spilled_runs, plan->n_merges);
	const uint64_t pass_nbytes =
		temp_space_nbytes(request, plan, n_runs, plan->merge_pass_nbytes);

	/* A checkpoint frees nothing before its next record is on disk, and ranks free nothing. */
	if (request->keeps_checkpoint_index || plan_is_distributed(request))
		return pass_nbytes;
	/* With -u even the shortest runs are written and freed, in pieces of whole pages. */
	if (request->unique)
		return saturating_add(2 * spill_backlog_nbytes(space_nbytes), plan->merge_nbytes);
	/* If passes are short, several may wait to be freed. */
	return u64_min(saturating_add(2 * spill_backlog_nbytes(space_nbytes), plan->merge_nbytes),
		       pass_nbytes);
}

/*
 * Return the space for the frames of n records, incompressible, in addition to the runs of all
 * ranks.
 */
static uint64_t frame_temp_nbytes(const struct plan_request *request, uint64_t n)
{
	const uint64_t n_output_records = request->limit ? u64_min(n, request->limit) : n;
	const uint64_t nbytes = saturating_mul(n_output_records, request->layout->output_nbytes);
	const uint64_t n_frames = saturating_add(divide_up(nbytes, ZST_WRITER_FRAME_NBYTES),
						 UINT64_C(1) + request->n_part_files);

	if (!request->stores_frames)
		return 0;
	/* Data that cannot be compressed grows. */
	return saturating_add(
		nbytes, saturating_mul(n_frames, round_up_to_page(ZST_WRITER_FRAME_NBYTES / 256) +
							 SPILL_ALIGN_NBYTES));
}

/* Return the maximum space that is used at the same time. */
static uint64_t peak_temp_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const bool has_count_pass = plan->count_pass_nbytes > 0;
	const uint64_t n_runs =
		plan->n_spilled_runs + has_count_pass + plan_is_distributed(request);
	uint64_t nbytes = temp_space_nbytes(request, plan, n_runs, plan->temp_nbytes);

	if (plan->n_passes > 1)
		nbytes = saturating_add(nbytes, pass_temp_nbytes(request, plan, nbytes));
	/*
	 * If the only pass is the one that counts, its inputs and its result are all that is
	 * stored.
	 */
	if (has_count_pass && plan->n_passes == 2)
		nbytes =
			u64_min(nbytes, temp_space_nbytes(request, plan, n_runs,
							  saturating_add(plan->spilled_nbytes,
									 plan->count_pass_nbytes)));
	/* With files as inputs, only merged runs take space. */
	if (merges_regular_files(request))
		nbytes = u64_min(nbytes,
				 temp_space_nbytes(request, plan, plan->n_merges + has_count_pass,
						   plan->merge_pass_nbytes));
	return nbytes;
}

/*
 * Set the volumes of the merges of n_runs, which all together store stored_nbytes. No merge leaves
 * more records than the limit; run generation does not either, but inputs of -m may be longer.
 */
static void set_pass_volumes(const struct plan_request *request, uint64_t stored_nbytes,
			     uint64_t n_runs, struct plan *plan)
{
	const uint64_t max_nbytes =
		request->limit ? saturating_mul(request->limit, request->layout->item_nbytes) :
				 UINT64_MAX;
	const struct pass_volumes volumes = compute_pass_volumes(
		n_runs, plan->fan_in, n_runs ? divide_up(stored_nbytes, n_runs) : 0, max_nbytes);

	plan->n_merges = volumes.n_merges;
	plan->n_passes = (uint32_t)volumes.n_passes;
	plan->merge_pass_input_nbytes = volumes.n_merged;
	plan->merge_pass_nbytes = volumes.n_stored;
	plan->final_merge_stored_nbytes =
		volumes.n_merges ? u64_min(volumes.n_final, stored_nbytes) : stored_nbytes;
}

void plan_merge_passes(const struct plan_request *request, struct plan *plan)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t nbytes = has_unknown_size(request) ? request->assumed_nbytes :
							    request->input_nbytes;
	const uint64_t n = nbytes / request->layout->record_nbytes;
	const uint64_t n_runs = estimate_runs(request, plan, n);
	const bool merges_in_place = merges_regular_files(request);
	const uint64_t n_stored = merges_in_place       ? 0 :
				  request->n_input_runs ? n :
							  spilled_records(request, plan, n, n_runs);
	const uint64_t n_stored_runs = n_runs + checkpoints_last_run(request, n_runs);
	const uint64_t n_spilled =
		request->n_input_runs ? n_stored : apply_limit(request, n_stored, n_stored_runs);
	const uint64_t n_in_memory = records_spilled_to_memory(request, plan, n, n_runs);
	/* A part of an endless input has no number of passes. A rank merges a part of all runs. */
	const uint64_t n_merged =
		request->assumes_unbounded && !request->n_input_runs ? 0 :
		plan_is_distributed(request) ? saturating_mul(n_stored_runs + 1, request->n_ranks) :
					       n_stored_runs;
	uint64_t stored_nbytes;

	plan->expected_nbytes = nbytes;
	plan->is_unbounded = request->assumes_unbounded;
	plan->n_spilled_runs = merges_in_place ? 0 : n_stored_runs;
	plan->n_stored_records = n_stored + n_in_memory;
	plan->spilled_nbytes = saturating_mul(n_spilled, item_nbytes);
	plan->spilled_to_memory_nbytes = saturating_mul(n_in_memory, item_nbytes);
	stored_nbytes = merges_in_place ? saturating_mul(n, item_nbytes) :
					  saturating_add(plan->spilled_nbytes,
							 plan->spilled_to_memory_nbytes);
	set_pass_volumes(request, stored_nbytes, n_merged, plan);
	plan->temp_nbytes = merges_in_place ? u64_min(plan->merge_pass_nbytes, stored_nbytes) :
					      stored_nbytes;
	plan_count_pass(request, plan, n);
	plan->max_temp_nbytes =
		saturating_add(peak_temp_nbytes(request, plan), frame_temp_nbytes(request, n));
}
