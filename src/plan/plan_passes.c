/*
 * plan_passes - what a plan will spill and merge, and the temporary space for that
 * (see plan_passes.h)
 *
 * The space that is taken is more than what is stored: an extent takes whole pages, and while runs
 * are merged to a longer one, what has been passed is given back late (io/spill/hole_punch.h).
 */
#include "src/plan/plan_passes.h"

#include "io/codec/zst_writer.h"
#include "io/spill/block_writer.h"
#include "io/spill/run_file.h"
#include "io/spill/spill.h"
#include "src/plan/plan_internal.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
	return at_most(a, UINT64_MAX - b) + b;
}

/* Of a value for n_runs, that for `part` of them. */
static uint64_t part_of(uint64_t value, uint64_t n_runs, uint64_t part)
{
	return n_runs ? times(divide_up(value, n_runs), part) : 0;
}

/*
 * The tree of merges has the runs as its leaves, and all of its nodes have fan_in children, but for
 * one at the bottom: so with `full` the largest power of fan_in that is not above n_runs, some
 * nodes of that level are leaves, and the others, `n_lowest`, hold the rest of the runs, one level
 * below.
 */
struct tree {
	uint64_t full, depth; /* depth: of that level; the final merge is at 0 */
	uint64_t n_lowest, n_below;
};

/* Of more than fan_in runs. */
static struct tree tree_of(uint64_t n_runs, uint32_t fan_in)
{
	struct tree tree = { .full = fan_in, .depth = 1 };

	while (n_runs / tree.full >= fan_in) {
		tree.full *= fan_in;
		tree.depth++;
	}
	tree.n_lowest = divide_up(n_runs - tree.full, fan_in - 1);
	tree.n_below = n_runs - tree.full + tree.n_lowest;
	return tree;
}

struct expected_passes expect_passes(uint64_t n_runs, uint32_t fan_in)
{
	struct expected_passes passes = { .n = 1 };
	struct tree tree;

	if (n_runs <= fan_in)
		return passes;
	tree = tree_of(n_runs, fan_in);
	passes.n_merges = divide_up(n_runs - fan_in, fan_in - 1);
	passes.n = (uint32_t)tree.depth + (tree.n_below > 0);
	passes.n_moved = times(n_runs, tree.depth - 1) + tree.n_below;
	return passes;
}

/* What n runs leave that are merged to one. */
static uint64_t left_of(uint64_t n, uint64_t length, uint64_t most)
{
	return at_most(times(n, length), most);
}

/*
 * What is left at the level that is so far above that of `full` that a node there holds n_each of
 * its nodes. Those that were merged of others come together, and so do those that were not; one has
 * some of both, or holds what the first merge was short of.
 */
static uint64_t left_at(const struct tree *tree, uint32_t fan_in, uint64_t n_each, uint64_t length,
			uint64_t most)
{
	const uint64_t n = tree->full / n_each;
	const uint64_t of_short = left_of(n_each, length, most);
	const uint64_t of_long = left_of(times(n_each, fan_in), length, most);
	uint64_t n_mixed, n_long, of_mixed;

	if (tree->n_lowest == 0)
		return times(n, of_short);
	n_mixed = (tree->n_lowest - 1) % n_each + 1;
	n_long = (tree->n_lowest - n_mixed) / n_each;
	of_mixed = left_of(n_each - n_mixed + n_mixed * fan_in -
				   (tree->n_lowest * fan_in - tree->n_below),
			   length, most);
	return plus(plus(times(n_long, of_long), of_mixed), times(n - n_long - 1, of_short));
}

/*
 * If what is left of any merge is shorter than a run was, it is the shortest, and goes into the
 * next merge, and so on: as many more runs each time as make it full.
 */
static struct expected_moves expect_chain(uint64_t n_runs, uint32_t fan_in, uint64_t length,
					  uint64_t most)
{
	const uint64_t n_merges = divide_up(n_runs - fan_in, fan_in - 1);
	const uint64_t n_first = n_runs - fan_in - (n_merges - 1) * (fan_in - 1) + 1;
	const uint64_t n_full = plus(most, times(fan_in - 1, length));

	return (struct expected_moves){
		.n_merged = plus(times(n_first, length), times(n_merges - 1, n_full)),
		.n_stored = times(n_merges, most),
		.n_last = n_full,
		.n_passes = at_most(n_merges, UINT32_MAX - 1) + 1,
	};
}

struct expected_moves expect_moves(uint64_t n_runs, uint32_t fan_in, uint64_t length, uint64_t most)
{
	struct expected_moves moves = { .n_last = times(n_runs, length), .n_passes = 1 };
	struct tree tree;
	uint64_t n_each = 1;

	if (n_runs <= fan_in)
		return moves;
	if (length > most)
		return expect_chain(n_runs, fan_in, length, most);
	tree = tree_of(n_runs, fan_in);
	moves.n_passes = expect_passes(n_runs, fan_in).n;
	moves.n_merged = times(tree.n_below, length);
	moves.n_last = left_at(&tree, fan_in, n_each, length, most);
	moves.n_stored =
		moves.n_last - at_most(times(tree.full - tree.n_lowest, length), moves.n_last);
	for (uint64_t level = tree.depth; level > 1; level--) {
		n_each *= fan_in;
		moves.n_merged = plus(moves.n_merged, moves.n_last);
		moves.n_last = left_at(&tree, fan_in, n_each, length, most);
		moves.n_stored = plus(moves.n_stored, moves.n_last);
	}
	return moves;
}

uint64_t expect_runs(const struct plan *plan, uint64_t n_chunks)
{
	if (n_chunks <= plan->n_chunks)
		return 0;
	return divide_up(n_chunks - plan->n_chunks, plan->spill_chunks);
}

/* The same of a pipe: a run is spilled whenever three quarters of the buffers are taken. */
static uint64_t expect_runs_of_pipe(const struct plan *plan, uint64_t n_chunks)
{
	const uint64_t n_taken = plan->n_chunks - plan->n_chunks / 4;

	return n_chunks < n_taken ? 0 : (n_chunks - n_taken) / plan->spill_chunks + 1;
}

static bool is_pipe(const struct plan_request *request)
{
	return request->input_nbytes == PLAN_SIZE_UNKNOWN;
}

/* They are merged where they are; pipes are stored first, and any of them may be one. */
static bool merges_files(const struct plan_request *request)
{
	return request->n_input_runs && !is_pipe(request);
}

static uint64_t count_runs(const struct plan_request *request, const struct plan *plan, uint64_t n)
{
	const uint64_t n_chunks = divide_up(n, plan->chunk_records);

	if (request->n_input_runs)
		return request->n_input_runs;
	if (plan->fits)
		return 0;
	if (request->assumes_endless)
		return divide_up(n_chunks, plan->spill_chunks);
	return is_pipe(request) ? expect_runs_of_pipe(plan, n_chunks) : expect_runs(plan, n_chunks);
}

static uint64_t run_records(const struct plan *plan)
{
	return plan->spill_chunks * plan->chunk_records;
}

/* A checkpoint with -u also keeps what stayed in memory, as one more run. */
static bool keeps_rest_of_unique(const struct plan_request *request, uint64_t n_runs)
{
	return request->keeps_index && request->unique && n_runs > 0;
}

/* Of n records, those that become n_runs which are spilled. */
static uint64_t spilled_records(const struct plan_request *request, const struct plan *plan,
				uint64_t n, uint64_t n_runs)
{
	uint64_t n_spilled = times(n_runs, run_records(plan));

	if (keeps_rest_of_unique(request, n_runs))
		n_spilled = n;
	if (plan_has_ranks(request) && !plan->keeps_rest && !request->n_input_runs)
		n_spilled = n;
	return at_most(n_spilled, n);
}

/* Of the records that become n_runs those that are left of them. */
static uint64_t within_limit(const struct plan_request *request, uint64_t n, uint64_t n_runs)
{
	return request->limit ? at_most(n, times(n_runs, request->limit)) : n;
}

/* Of n records of one of several ranks, those that are stored in the end, as one more run. */
static uint64_t kept_records(const struct plan_request *request, const struct plan *plan,
			     uint64_t n, uint64_t n_runs)
{
	const uint64_t n_left = n - at_most(times(n_runs, run_records(plan)), n);

	if (!plan_has_ranks(request) || request->n_input_runs || !plan->keeps_rest)
		return 0;
	return request->limit ? at_most(n_left, request->limit) : n_left;
}

/* Those that a rank merges: its range of the runs of all. */
static uint64_t merged_runs(const struct plan_request *request, uint64_t n_runs)
{
	return plan_has_ranks(request) ? times(n_runs + 1, request->n_ranks) : n_runs;
}

/* Of what a window stores: the least, in most cases. */
static uint64_t window_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const uint32_t n_resident = plan->n_chunks ? (uint32_t)plan->spill_chunks : 0;
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, UINT64_MAX, n_resident,
		     n_resident ? 0 : plan->fan_in, &windows);
	return windows.quota_records * request->layout->item_nbytes / 2 + 1;
}

static uint64_t pages_up(uint64_t nbytes)
{
	return times(divide_up(nbytes, SPILL_ALIGN_NBYTES), SPILL_ALIGN_NBYTES);
}

/*
 * Of n records, those that are merged to one run to be counted: none if one chunk holds all, which
 * is a run that is counted already.
 */
static uint64_t counted_records(const struct plan_request *request, const struct plan *plan,
				uint64_t n)
{
	if (!request->counts_first ||
	    (plan->fits && plan->n_chunks == 1 && !plan_has_ranks(request)))
		return 0;
	return request->limit ? at_most(n, request->limit) : n;
}

/*
 * One more pass. While runs that are stored, and what is still in memory, become one, what has been
 * merged of them is given back; but other ranks may still want it.
 */
static void expect_count(const struct plan_request *request, struct plan *plan, uint64_t n)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t stored_nbytes = plan->temporary_nbytes;

	plan->counted_nbytes = times(counted_records(request, plan, n), item_nbytes);
	if (plan->counted_nbytes == 0)
		return;
	plan->n_passes++;
	plan->passes_merged_nbytes = plus(plan->passes_merged_nbytes, plan->counted_nbytes);
	plan->passes_nbytes = plus(plan->passes_nbytes, plan->counted_nbytes);
	plan->last_stored_nbytes = plan->counted_nbytes;
	plan->temporary_nbytes = plus(stored_nbytes, plan->counted_nbytes);
	if (!plan_has_ranks(request))
		plan->temporary_nbytes = at_most(plan->temporary_nbytes,
						 at_least(times(n, item_nbytes), stored_nbytes));
}

/*
 * The space for nbytes that are stored, of which nothing shrinks. Neighbouring blocks are one
 * extent, unless one of them has been encoded and the other has not; the last of a window is short.
 */
static uint64_t taken_nbytes(const struct plan_request *request, const struct plan *plan,
			     uint64_t n_runs, uint64_t nbytes)
{
	const uint64_t window = at_most(window_nbytes(request, plan), BLOCK_GROUP_NBYTES);
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t block =
		run_file_block_n_items(plan->block_nbytes, (uint32_t)item_nbytes) * item_nbytes;
	uint64_t taken = nbytes;

	if (request->compression.mode != COMPRESS_NONE)
		taken = times(divide_up(nbytes, block), pages_up(block));
	return plus(taken, times(plus(divide_up(nbytes, window), n_runs), SPILL_ALIGN_NBYTES));
}

/* And that beside it while runs are merged to longer ones. */
static uint64_t merging_nbytes(const struct plan_request *request, const struct plan *plan,
			       uint64_t taken)
{
	const uint64_t n_runs = at_least(plan->n_spilled_runs, plan->n_merges);
	const uint64_t of_passes = taken_nbytes(request, plan, n_runs, plan->passes_nbytes);

	/* A checkpoint gives nothing back before its next record is on the disk, nor do ranks. */
	if (request->keeps_index || plan_has_ranks(request))
		return of_passes;
	/* With -u as short runs as any are written and given back, in pieces of whole pages. */
	if (request->unique)
		return plus(2 * spill_lag_nbytes(taken), plan->merge_nbytes);
	/* What waits to be given back may be of several passes, if they are short. */
	return at_most(plus(2 * spill_lag_nbytes(taken), plan->merge_nbytes), of_passes);
}

/* That for the frames of n records, none of which shrinks, beside the runs of all ranks. */
static uint64_t frames_nbytes(const struct plan_request *request, uint64_t n)
{
	const uint64_t n_own = request->limit ? at_most(n, request->limit) : n;
	const uint64_t nbytes = times(n_own, request->layout->output_nbytes);
	const uint64_t n_frames = plus(divide_up(nbytes, ZST_WRITER_FRAME_NBYTES),
				       UINT64_C(1) + request->n_part_files);

	if (!request->keeps_frames)
		return 0;
	/* What cannot be compressed grows. */
	return plus(nbytes,
		    times(n_frames, pages_up(ZST_WRITER_FRAME_NBYTES / 256) + SPILL_ALIGN_NBYTES));
}

/* The space for all that is stored at once. */
static uint64_t most_nbytes(const struct plan_request *request, const struct plan *plan)
{
	const bool counts = plan->counted_nbytes > 0;
	const uint64_t n_runs = plan->n_spilled_runs + counts + plan_has_ranks(request);
	uint64_t nbytes = taken_nbytes(request, plan, n_runs, plan->temporary_nbytes);

	if (plan->n_passes > 1)
		nbytes = plus(nbytes, merging_nbytes(request, plan, nbytes));
	/* If only what is counted is merged to a run, it is beside what it comes from at most. */
	if (counts && plan->n_passes == 2)
		nbytes = at_most(nbytes,
				 taken_nbytes(request, plan, n_runs,
					      plus(plan->spilled_nbytes, plan->counted_nbytes)));
	/* Of files nothing is there but what merges have stored of them. */
	if (merges_files(request))
		nbytes = at_most(nbytes, taken_nbytes(request, plan, plan->n_merges + counts,
						      plan->passes_nbytes));
	return nbytes;
}

/*
 * What passes merge, and what comes of it: of each merge no more is left than the limit. (Runs that
 * are formed are no longer either, inputs may be.)
 */
static void expect_passes_of(const struct plan_request *request,
			     const struct expected_passes *passes, uint64_t of_runs,
			     uint64_t n_merged, struct plan *plan)
{
	struct expected_moves moves;

	plan->passes_merged_nbytes = part_of(of_runs, n_merged, passes->n_moved);
	plan->passes_nbytes = plan->passes_merged_nbytes;
	plan->last_stored_nbytes = of_runs;
	if (!request->limit || !passes->n_merges)
		return;
	moves = expect_moves(n_merged, plan->fan_in, divide_up(of_runs, n_merged),
			     times(request->limit, request->layout->item_nbytes));
	plan->passes_merged_nbytes = moves.n_merged;
	plan->passes_nbytes = moves.n_stored;
	plan->last_stored_nbytes = moves.n_last;
	plan->n_passes = (uint32_t)moves.n_passes;
}

void plan_expect(const struct plan_request *request, struct plan *plan)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t nbytes = is_pipe(request) ? request->assumed_nbytes : request->input_nbytes;
	const uint64_t n = nbytes / request->layout->record_nbytes;
	const uint64_t n_runs = count_runs(request, plan, n);
	const bool is_of_files = merges_files(request);
	const uint64_t n_formed = is_of_files           ? 0 :
				  request->n_input_runs ? n :
							  spilled_records(request, plan, n, n_runs);
	const uint64_t n_stored_runs = n_runs + keeps_rest_of_unique(request, n_runs);
	const uint64_t n_spilled =
		request->n_input_runs ? n_formed : within_limit(request, n_formed, n_stored_runs);
	const uint64_t n_kept = kept_records(request, plan, n, n_runs);
	const uint64_t n_merged = merged_runs(request, n_stored_runs);
	struct expected_passes passes = expect_passes(n_merged, plan->fan_in);
	uint64_t of_runs;

	if (request->assumes_endless && !request->n_input_runs)
		passes = (struct expected_passes){ .n = 1 };
	plan->expected_nbytes = nbytes;
	plan->is_endless = request->assumes_endless;
	plan->n_spilled_runs = is_of_files ? 0 : n_stored_runs;
	plan->n_merges = passes.n_merges;
	plan->n_formed_records = n_formed + n_kept;
	plan->n_passes = passes.n;
	plan->spilled_nbytes = times(n_spilled, item_nbytes);
	plan->kept_nbytes = times(n_kept, item_nbytes);
	of_runs = is_of_files ? times(n, item_nbytes) :
				plus(plan->spilled_nbytes, plan->kept_nbytes);
	expect_passes_of(request, &passes, of_runs, n_merged, plan);
	plan->temporary_nbytes = is_of_files ? at_most(plan->passes_nbytes, of_runs) : of_runs;
	expect_count(request, plan, n);
	plan->most_temporary_nbytes = plus(most_nbytes(request, plan), frames_nbytes(request, n));
}
