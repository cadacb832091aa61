/*
 * cuts.c - cut k sorted runs at the same point of their merged order
 *
 * A merge is divided into partitions that are merged independently, by several threads, devices or
 * ranks. The border between two partitions is a point of the merged order, the splitter, at which
 * every run is cut. So each partition is a complete merge of its own.
 *
 * Example: two runs, in blocks of two or three items, are to be cut into three partitions.
 *
 *	run 0   [ 1 1 | 2 5 | 6 8 | 8 9 ]
 *	run 1   [ 1 4 | 5 7 | 8 8 9 ]		15 items: 5 in each partition, if possible
 *
 * Only the first key of each block is in memory, so a splitter is one of those. Here are the blocks
 * in the order of (first key, run), with the number of items in blocks before each:
 *
 *	first key       1    1    2    5    6    8    8
 *	run             0    1    0    1    0    0    1
 *	items before    0    2    4    6    8   10   12
 *
 * A splitter is the last block with at most as many items before it as are wanted: the block that
 * begins with 2 for the 5 items of the first partition, and the first that begins with 8 for the 10
 * items of two. Then every run is cut exactly there, by looking into one block of each:
 *
 *	run 0   [ 1 1 / 2 5 6 8 / 8 9 ]
 *	run 1   [ 1 / 4 5 7 / 8 8 9 ]		partitions of 3, 7 and 5 items
 *
 * Partitions are even to within one block of each run, and runs have thousands of blocks.
 *
 * Ties. The order of all items is (key, rank, run, position in the run), and that of all blocks is
 * (first key, rank, run, block). So a splitter that is block b of run i cuts run i before the
 * block. Runs before run i are cut after their items that equal the block's first key, and runs
 * after run i before those. Equal items then leave the merge in the order of the runs, whatever
 * partition they are in, and the bytes of the output do not depend on the number of partitions. It
 * also means that a single key can be divided. Two exceptions: with at_key_boundaries all runs are
 * cut before the key; so they are if keys are longer than the 16 bytes that are known of each
 * block, because it is not known which of two blocks with equal prefixes comes first.
 *
 * The search. The sequence of all blocks need not exist. It is the merge of the runs' own sequences
 * of blocks, in each of which a binary search counts the blocks before any given one. So the
 * splitter is found by quickselect (Hoare, "Algorithm 65: Find", CACM 1961): of the blocks that it
 * can still be, [lo, hi) of each run, draw one at random; count the items before it; drop the
 * blocks before or after it. Some three dozen draws find one of a million blocks.
 *
 * With a communicator each rank knows its own runs only, and a draw costs a round of messages. A
 * rank draws among its own blocks and adds a random priority; the lowest one wins, and priorities
 * are distributed such that all blocks of all ranks are equally likely. Then each rank counts the
 * items before the winner in its own runs, and the sum over all ranks decides. To save rounds, up
 * to 16 candidates are drawn for each splitter at once, which leaves about a ninth of the blocks,
 * and all splitters are searched at the same time: half a dozen rounds, each of two collectives
 * with some hundred bytes for each splitter. Without a communicator it is the same search with one
 * candidate, of one rank whose count is the sum.
 *
 *	Varman, Scheufler, Iyer, Ricard, "Merging multiple lists on hierarchical-memory
 *	multiprocessors", JPDC 1991 (exact splitting)
 */
#include "src/merge/cuts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/run/run.h"
#include "src/record/digest.h"

/* --- Candidates: the blocks, or items, that can still be the splitter --- */

/*
 * Return the number of candidates: the blocks, or items, [lo[i], hi[i]) of each run i. One of them
 * is drawn, which divides the others into those before it and those after it.
 */
static uint64_t count_candidates(const uint64_t *lo, const uint64_t *hi, uint32_t n_runs)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_runs; i++)
		n += hi[i] - lo[i];
	return n;
}

/* Find candidate number `index` of all, in the order of runs. Returns its number in its run. */
static uint64_t locate_candidate(const uint64_t *lo, const uint64_t *hi, uint64_t index,
				 uint32_t *ret_run)
{
	uint32_t i = 0;

	for (; index >= hi[i] - lo[i]; i++)
		index -= hi[i] - lo[i];
	*ret_run = i;
	return lo[i] + index;
}

static uint64_t next_random(uint64_t *state)
{
	*state += DIGEST_SEED;
	return digest_mix64(*state);
}

/* --- Resident runs --- */

/*
 * Resident runs have no blocks of their own: sampling makes some. Each device finds where a key
 * cuts the runs in its memory.
 */
struct resident_cuts {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	/* For each device n_runs: the runs in its memory; the other elements are empty. */
	struct slice *slices;
	uint64_t *cuts; /* of these slices */
	struct merge_queues queues;
};

enum {
	/* Samples of resident runs: of all runs together, and at least of each. */
	TOTAL_RUN_SAMPLES = 1 << 14,
	MIN_RUN_SAMPLES = 32,
};

static int sample_resident_runs(struct resident_cuts *resident)
{
	uint64_t n_samples = TOTAL_RUN_SAMPLES / (resident->n_runs ? resident->n_runs : 1);
	int r = 0;

	if (n_samples < MIN_RUN_SAMPLES)
		n_samples = MIN_RUN_SAMPLES;
	for (uint32_t i = 0; i < resident->n_runs && r == 0; i++) {
		struct run *run = resident->runs[i];

		if (!run_is_resident(run))
			continue;
		resident->slices[(size_t)run->device_index * resident->n_runs + i] =
			(struct slice){ .elements = run->memory, .n = run->n_items };
		r = merge_queues_sample(&resident->queues, run, run->n_items / n_samples + 1);
	}
	return r < 0 ? r : merge_queues_wait(&resident->queues);
}

static int open_resident_cuts(struct resident_cuts *resident)
{
	const size_t n = (size_t)resident->job->n_devices * resident->n_runs + 1;
	int r;

	resident->slices = calloc(n, sizeof *resident->slices);
	resident->cuts = calloc(n, sizeof *resident->cuts);
	if (!resident->slices || !resident->cuts)
		return fail(-ENOMEM, "no memory for a merge of %u runs", resident->n_runs);
	r = merge_queues_open(resident->job, resident->runs, resident->n_runs, &resident->queues);
	return r < 0 ? r : sample_resident_runs(resident);
}

/*
 * Set ret_cuts[i] to the number of items of resident run i before the bound: before `key`, and, in
 * runs before `run`, equal to it.
 */
static int cut_resident_runs(struct resident_cuts *resident, const void *key, uint32_t run,
			     uint64_t *ret_cuts)
{
	const struct merge_queues *queues = &resident->queues;
	const uint32_t n_runs = resident->n_runs;
	int r = 0;

	for (uint32_t i = 0; i < queues->n && r == 0; i++)
		if (queues->by_device[i].queue)
			r = device_queue_cut(
				queues->by_device[i].queue,
				&(struct cut_op){ .layout = resident->job->layout,
						  .slices = resident->slices + (size_t)i * n_runs,
						  .k = n_runs,
						  .key = key,
						  .slice = run,
						  .ret_cuts =
							  resident->cuts + (size_t)i * n_runs });
	if (r == 0)
		r = merge_queues_wait(queues);
	for (uint32_t i = 0; i < n_runs && r == 0; i++) {
		const struct run *cut_run = resident->runs[i];

		if (run_is_resident(cut_run))
			ret_cuts[i] = resident->cuts[(size_t)cut_run->device_index * n_runs + i];
	}
	return r;
}

/* --- The search for splitters --- */

/* A block, as its rank describes it to other ranks: an array of words for comm_allreduce_min(). */
struct candidate {
	uint64_t priority; /* the lowest wins */
	uint64_t key_high, key_low;
	uint64_t rank, run, block;
};

enum { CANDIDATE_WORDS = sizeof(struct candidate) / sizeof(uint64_t) };

/*
 * Candidates drawn for each splitter in a round. With many splitters there are fewer, because a
 * message carries those of all (src/cost/estimate.c relies on these numbers).
 */
enum { MAX_CANDIDATES = 16, MAX_CANDIDATE_ROWS = 1024 };

/* The priority of no candidate: the rank has none left. All candidates have lower priorities. */
#define NO_PRIORITY UINT64_MAX

struct search {
	struct comm *comm;
	unsigned rank;
	const struct layout *layout;
	struct run *const *runs;
	uint32_t n_runs, n_splitters;
	uint32_t n_candidates; /* drawn for each splitter in a round */
	bool at_key_boundaries;
	uint64_t random_state;
	uint64_t *lo, *hi;            /* n_splitters rows of n_runs: the candidates */
	uint64_t *n_target;           /* for each splitter: items before it, at most */
	uint64_t *n_before;           /* n_splitters rows of n_candidates: items before each */
	struct candidate *candidates; /* the same rows: those that were drawn */
	struct candidate *splitters;  /* the last one found that is not above the target */
	struct resident_cuts resident;
	void *key; /* layout_key_nbytes() */
};

static uint32_t choose_n_candidates(const struct comm *comm, uint32_t n_splitters)
{
	const uint32_t n = n_splitters ? MAX_CANDIDATE_ROWS / n_splitters : 1;

	if (!comm || n < 1)
		return 1;
	return n < MAX_CANDIDATES ? n : MAX_CANDIDATES;
}

static int open_search(struct search *search)
{
	const size_t n = search->n_splitters + UINT64_C(1),
		     n_blocks = n * (search->n_runs + UINT64_C(1));
	const size_t n_rows = n * search->n_candidates;

	search->lo = calloc(n_blocks, sizeof *search->lo);
	search->hi = calloc(n_blocks, sizeof *search->hi);
	search->n_target = calloc(n, sizeof *search->n_target);
	search->n_before = calloc(n_rows, sizeof *search->n_before);
	search->candidates = calloc(n_rows, sizeof *search->candidates);
	search->splitters = calloc(n, sizeof *search->splitters);
	search->key = malloc(layout_key_nbytes(search->layout));
	if (search->lo && search->hi && search->n_target && search->n_before &&
	    search->candidates && search->splitters && search->key)
		return open_resident_cuts(&search->resident);
	return fail(-ENOMEM, "no memory for %u partitions", search->n_splitters + 1);
}

static void close_search(struct search *search)
{
	merge_queues_close(&search->resident.queues);
	free(search->resident.slices);
	free(search->resident.cuts);
	free(search->lo);
	free(search->hi);
	free(search->n_target);
	free(search->n_before);
	free(search->candidates);
	free(search->splitters);
	free(search->key);
}

static int sum_over_ranks(const struct search *search, uint64_t *values, size_t n)
{
	return search->comm ? comm_allreduce_sum(search->comm, values, n) : 0;
}

/* Make all blocks candidates of each splitter, and set the targets. */
static int begin_search(struct search *search, uint64_t max_items)
{
	uint64_t n_items = runs_n_items(search->runs, search->n_runs);
	int r = sum_over_ranks(search, &n_items, 1);

	if (n_items > max_items)
		n_items = max_items;
	for (uint32_t s = 0; s < search->n_splitters; s++) {
		uint64_t *hi = search->hi + (size_t)s * search->n_runs;

		search->n_target[s] = equal_share_begin(n_items, s + UINT64_C(1),
							search->n_splitters + UINT64_C(1));
		for (uint32_t i = 0; i < search->n_runs; i++)
			hi[i] = search->runs[i]->n_blocks;
	}
	return r;
}

/*
 * Return a positive random number, exponentially distributed with rate n: the number of a rank with
 * n of m blocks is the lowest of all ranks with probability n / m. The bits of non-negative doubles
 * sort like their values.
 */
static uint64_t draw_priority(struct search *search, uint64_t n)
{
	const double uniform = ((double)(next_random(&search->random_state) >> 11) + 0.5) * 0x1p-53;
	const double exponential = -log(uniform) / (double)n;
	uint64_t bits;

	_Static_assert(sizeof bits == sizeof exponential, "the bits of a double are a word");
	memcpy(&bits, &exponential, sizeof bits);
	return bits;
}

static struct candidate *candidates_of(const struct search *search, uint32_t s)
{
	return search->candidates + (size_t)s * search->n_candidates;
}

/* Draw candidates for splitter s among this rank's blocks. */
static void draw_candidates(struct search *search, uint32_t s)
{
	const uint64_t *lo = search->lo + (size_t)s * search->n_runs;
	const uint64_t *hi = search->hi + (size_t)s * search->n_runs;
	const uint64_t n = count_candidates(lo, hi, search->n_runs);
	struct candidate *candidates = candidates_of(search, s);

	for (uint32_t i = 0; i < search->n_candidates; i++) {
		uint64_t priority, block;
		encoded_key_t key;
		uint32_t run;

		candidates[i] = (struct candidate){ .priority = NO_PRIORITY };
		if (n == 0)
			continue;
		priority = draw_priority(search, n);
		block = locate_candidate(lo, hi, next_random(&search->random_state) % n, &run);
		key = run_first_key(search->runs[run], block);
		candidates[i] = (struct candidate){ .priority = priority,
						    .key_high = (uint64_t)(key >> 64),
						    .key_low = (uint64_t)key,
						    .rank = search->rank,
						    .run = run,
						    .block = block };
	}
}

/* Return whether any rank has blocks left for splitter s. Then each draw finds one. */
static bool has_candidates(const struct search *search, uint32_t s)
{
	return candidates_of(search, s)->priority != NO_PRIORITY;
}

/* Draw candidates for all splitters. *ret_any_left: some splitter is not found yet. */
static int draw_round(struct search *search, bool *ret_any_left)
{
	int r = 0;

	for (uint32_t s = 0; s < search->n_splitters; s++)
		draw_candidates(search, s);
	if (search->comm)
		r = comm_allreduce_min(search->comm, (uint64_t *)search->candidates,
				       (size_t)search->n_splitters * search->n_candidates,
				       CANDIDATE_WORDS);
	*ret_any_left = false;
	for (uint32_t s = 0; s < search->n_splitters && r == 0; s++)
		*ret_any_left = *ret_any_left || has_candidates(search, s);
	return r;
}

static encoded_key_t candidate_key(const struct candidate *candidate)
{
	return (encoded_key_t)candidate->key_high << 64 | candidate->key_low;
}

static bool is_candidate_run(const struct search *search, uint32_t run,
			     const struct candidate *candidate)
{
	return candidate->rank == search->rank && candidate->run == run;
}

/* Return whether this run precedes the candidate's run in the order of ties. */
static bool run_is_before_candidate(const struct search *search, uint32_t run,
				    const struct candidate *candidate)
{
	return search->rank < candidate->rank ||
	       (search->rank == candidate->rank && run < candidate->run);
}

/* Return the number of this rank's runs that precede the candidate's run in the order of ties. */
static uint32_t n_runs_before_candidate(const struct search *search,
					const struct candidate *candidate)
{
	if (search->rank == candidate->rank)
		return (uint32_t)candidate->run;
	return search->rank < candidate->rank ? search->n_runs : 0;
}

/* Return the number of blocks of a run before the candidate; it must be in [lo, hi]. */
static uint64_t n_blocks_before(const struct search *search, uint32_t s, uint32_t run,
				const struct candidate *candidate)
{
	const size_t index = (size_t)s * search->n_runs + run;

	return is_candidate_run(search, run, candidate) ?
		       candidate->block :
		       run_n_blocks_before(search->runs[run], search->lo[index], search->hi[index],
					   candidate_key(candidate),
					   run_is_before_candidate(search, run, candidate));
}

/* Return the number of items of this rank in blocks before the candidate. */
static uint64_t n_items_before(const struct search *search, uint32_t s,
			       const struct candidate *candidate)
{
	uint64_t n_items = 0;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n_items +=
			run_block_start(search->runs[i], n_blocks_before(search, s, i, candidate));
	return n_items;
}

static void count_before_candidates(struct search *search, uint32_t s)
{
	const struct candidate *candidates = candidates_of(search, s);
	uint64_t *n_before = search->n_before + (size_t)s * search->n_candidates;

	for (uint32_t i = 0; i < search->n_candidates; i++)
		n_before[i] =
			has_candidates(search, s) ? n_items_before(search, s, &candidates[i]) : 0;
}

/* Set the bounds of all runs, search->lo or search->hi, to the candidate. */
static void set_bounds(struct search *search, uint64_t *bounds, uint32_t s,
		       const struct candidate *candidate)
{
	for (uint32_t i = 0; i < search->n_runs; i++)
		bounds[(size_t)s * search->n_runs + i] = n_blocks_before(search, s, i, candidate);
}

/* Keep the blocks between the last candidate that is not above the target and the next one. */
static void narrow_bounds(struct search *search, uint32_t s)
{
	const struct candidate *candidates = candidates_of(search, s);
	const uint64_t *n_before = search->n_before + (size_t)s * search->n_candidates;
	const uint32_t n = search->n_candidates;
	uint32_t lower = n, upper = n;

	for (uint32_t i = 0; i < n; i++) {
		const bool is_above = n_before[i] > search->n_target[s];

		if (is_above && (upper == n || n_before[i] < n_before[upper]))
			upper = i;
		if (!is_above && (lower == n || n_before[i] > n_before[lower]))
			lower = i;
	}
	if (upper < n)
		set_bounds(search, search->hi, s, &candidates[upper]);
	if (lower == n)
		return;
	/* The splitter is the candidate or a block after it. */
	set_bounds(search, search->lo, s, &candidates[lower]);
	if (candidates[lower].rank == search->rank)
		search->lo[(size_t)s * search->n_runs + candidates[lower].run]++;
	search->splitters[s] = candidates[lower];
}

static int find_splitters(struct search *search)
{
	bool any_left = true;
	int r = 0;

	while (r == 0 && (r = draw_round(search, &any_left)) == 0 && any_left) {
		for (uint32_t s = 0; s < search->n_splitters; s++)
			count_before_candidates(search, s);
		r = sum_over_ranks(search, search->n_before,
				   (size_t)search->n_splitters * search->n_candidates);
		for (uint32_t s = 0; s < search->n_splitters && r == 0; s++)
			if (has_candidates(search, s))
				narrow_bounds(search, s);
	}
	return r;
}

/* --- Cutting the runs at a splitter --- */

/* Cut this rank's runs at the splitter (see "Ties" above). */
static int cut_runs_at(struct search *search, const struct candidate *splitter, uint64_t *ret_cuts)
{
	const struct layout *layout = search->layout;
	const bool is_exact = !search->at_key_boundaries &&
			      layout_key_nbytes(layout) <= sizeof(encoded_key_t);
	const encoded_key_t prefix = search->at_key_boundaries ?
					     layout_first_equal(layout, candidate_key(splitter)) :
					     candidate_key(splitter);
	int r;

	memset(search->key, 0, layout_key_nbytes(layout));
	layout_key_from_prefix(layout, prefix, search->key);
	r = cut_resident_runs(&search->resident, search->key,
			      is_exact ? n_runs_before_candidate(search, splitter) : 0, ret_cuts);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++)
		if (is_exact && is_candidate_run(search, i, splitter))
			ret_cuts[i] = run_block_start(search->runs[i], splitter->block);
		else if (!run_is_resident(search->runs[i]))
			r = run_count_before(
				search->runs[i],
				&(struct run_bound){
					layout, search->key,
					is_exact && run_is_before_candidate(search, i, splitter) },
				&ret_cuts[i]);
	return r;
}

static int cut_all_runs(struct search *search, uint64_t *cuts)
{
	const uint32_t n_runs = search->n_runs;
	uint64_t *end = cuts + (search->n_splitters + (size_t)1) * n_runs;
	int r = 0;

	memset(cuts, 0, n_runs * sizeof *cuts);
	for (uint32_t s = 0; s < search->n_splitters && r == 0; s++) {
		uint64_t *previous = cuts + (size_t)s * n_runs, *next = previous + n_runs;

		r = cut_runs_at(search, &search->splitters[s], next);
		/* An input of -m may turn out to be unsorted when it is read. No cut goes back. */
		for (uint32_t i = 0; i < n_runs; i++)
			next[i] = u64_max(next[i], previous[i]);
	}
	for (uint32_t i = 0; i < n_runs; i++)
		end[i] = search->runs[i]->n_items;
	return r;
}

/* Cut runs before a bucket. Returns the number of items before it. */
static uint64_t cut_before_bucket(struct run *const *runs, uint32_t n_runs, uint32_t bucket,
				  uint64_t *ret_cuts)
{
	uint64_t n_before = 0;

	for (uint32_t i = 0; i < n_runs; i++) {
		ret_cuts[i] = run_bucket_start(runs[i], bucket);
		n_before += ret_cuts[i];
	}
	return n_before;
}

/* Cut runs that have buckets before the first one with enough items before it. */
static void cut_at_buckets(struct run *const *runs, uint32_t n_runs, uint32_t n_partitions,
			   uint64_t *ret_cuts)
{
	const uint64_t n_items = runs_n_items(runs, n_runs);
	uint32_t bucket = 0;

	for (uint32_t i = 1; i <= n_partitions; i++)
		while (cut_before_bucket(runs, n_runs, bucket, ret_cuts + (size_t)i * n_runs) <
		       equal_share_begin(n_items, i, n_partitions))
			bucket++;
}

int cuts_make(struct comm *comm, const struct job *job, struct run *const *runs, uint32_t n_runs,
	      const struct splitter_params *params, uint64_t *ret_cuts)
{
	const unsigned rank = comm ? comm_rank(comm) : 0;
	struct search search = {
		.comm = comm,
		.rank = rank,
		.layout = job->layout,
		.runs = runs,
		.n_runs = n_runs,
		.n_splitters = params->n_partitions - 1,
		.n_candidates = choose_n_candidates(comm, params->n_partitions - 1),
		.at_key_boundaries = params->at_key_boundaries,
		.random_state = digest_mix64(rank),
		.resident = { .job = job, .runs = runs, .n_runs = n_runs },
	};
	int r;

	if (n_runs > 0 && runs[0]->bucket_starts) {
		cut_at_buckets(runs, n_runs, params->n_partitions, ret_cuts);
		return 0;
	}
	r = open_search(&search);
	if (r == 0)
		r = begin_search(&search, params->max_items);
	if (r == 0)
		r = find_splitters(&search);
	if (r == 0)
		r = cut_all_runs(&search, ret_cuts);
	close_search(&search);
	return r;
}

/* --- Exact cuts --- */

/*
 * Quickselect among items instead of blocks, for the item with the wanted number of items before
 * it. Each count searches every run, and reads the items that it compares.
 */
struct item_search {
	const struct layout *layout;
	struct run *const *runs;
	uint32_t n_runs;
	uint64_t *lo, *hi; /* candidates; in the end lo has the cuts */
	uint64_t *n_before;
	uint64_t random_state;
	void *item;
	unsigned char *key, *other_key;
};

static int open_item_search(struct item_search *search)
{
	const size_t n = search->n_runs + (size_t)1;

	search->lo = calloc(n, 3 * sizeof *search->lo);
	search->item = malloc(search->layout->item_nbytes);
	search->key = malloc(2 * layout_key_nbytes(search->layout));
	if (!search->lo || !search->item || !search->key)
		return fail(-ENOMEM, "no memory for a merge of %u runs", search->n_runs);
	search->hi = search->lo + n;
	search->n_before = search->hi + n;
	search->other_key = search->key + layout_key_nbytes(search->layout);
	for (uint32_t i = 0; i < search->n_runs; i++)
		search->hi[i] = search->runs[i]->n_items;
	return 0;
}

/*
 * Set n_before of each run to its items before item `position` of a run, and *ret_n to their sum.
 * Clamped to [lo, hi]: a run that is not sorted is cut where it still can be.
 */
static int count_before_item(struct item_search *search, uint32_t run, uint64_t position,
			     uint64_t *ret_n)
{
	int r = run_read_item(search->runs[run], position, search->item);

	*ret_n = 0;
	if (r < 0)
		return r;
	run_item_key(search->runs[run], search->layout, search->item, search->key);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		uint64_t *n_before = &search->n_before[i];

		*n_before = position;
		if (i != run)
			r = run_count_before(search->runs[i],
					     &(struct run_bound){ search->layout, search->key,
								  i < run },
					     n_before);
		if (*n_before < search->lo[i])
			*n_before = search->lo[i];
		if (*n_before > search->hi[i])
			*n_before = search->hi[i];
		*ret_n += *n_before;
	}
	return r;
}

static int select_item(struct item_search *search, uint64_t n_items)
{
	const size_t nbytes = search->n_runs * sizeof *search->lo;
	uint64_t n_candidates;

	while ((n_candidates = count_candidates(search->lo, search->hi, search->n_runs)) > 0) {
		uint64_t position, n;
		uint32_t run;
		int r;

		position = locate_candidate(search->lo, search->hi,
					    next_random(&search->random_state) % n_candidates,
					    &run);
		r = count_before_item(search, run, position, &n);
		if (r < 0)
			return r;
		if (n > n_items) {
			memcpy(search->hi, search->n_before, nbytes);
			continue;
		}
		memcpy(search->lo, search->n_before, nbytes);
		if (n == n_items)
			break;
		search->lo[run]++;
	}
	return 0;
}

/* Set search->key to the lowest key after the cuts. */
static int find_min_key_after(struct item_search *search, const uint64_t *cuts, bool *ret_has_key)
{
	int r = 0;

	*ret_has_key = false;
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		struct run *run = search->runs[i];

		if (cuts[i] == run->n_items)
			continue;
		r = run_read_item(run, cuts[i], search->item);
		if (r < 0)
			break;
		run_item_key(run, search->layout, search->item, search->other_key);
		if (!*ret_has_key ||
		    layout_compare_keys(search->layout, search->other_key, search->key) < 0)
			memcpy(search->key, search->other_key, layout_key_nbytes(search->layout));
		*ret_has_key = true;
	}
	return r;
}

/* Move the cuts back to the beginning of the key after them. */
static int move_cuts_before_key(struct item_search *search, uint64_t *cuts)
{
	bool has_key;
	int r = find_min_key_after(search, cuts, &has_key);

	for (uint32_t i = 0; i < search->n_runs && r == 0 && has_key; i++)
		r = run_count_before(search->runs[i],
				     &(struct run_bound){ search->layout, search->key, false },
				     &cuts[i]);
	return r;
}

int cuts_after_items(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
		     uint64_t n_items, bool at_key_boundary, uint64_t *ret_cuts)
{
	struct item_search search = { .layout = layout, .runs = runs, .n_runs = n_runs };
	int r = open_item_search(&search);

	if (r == 0)
		r = select_item(&search, n_items);
	if (r == 0)
		memcpy(ret_cuts, search.lo, n_runs * sizeof *ret_cuts);
	if (r == 0 && at_key_boundary)
		r = move_cuts_before_key(&search, ret_cuts);
	free(search.lo);
	free(search.item);
	free(search.key);
	return r;
}
