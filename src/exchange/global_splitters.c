/*
 * global_splitters.c - cut the runs of all ranks into partitions (see global_splitters.h)
 */
#include "src/exchange/global_splitters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/merge/resident_split.h"
#include "src/record/digest.h"

/* A block as its owner sends it. Of several candidates the one with the lowest priority wins. */
struct splitter_candidate {
	uint64_t priority;
	uint64_t key_high, key_low;
	uint64_t rank, run, block;
};

enum { CANDIDATE_WORDS = sizeof(struct splitter_candidate) / sizeof(uint64_t) };

/*
 * Candidates per splitter and round. With many splitters there are fewer, because a message has
 * those of all splitters (estimate.c relies on that).
 */
enum { MAX_CANDIDATES = 16, MAX_CANDIDATE_ROWS = 1024 };

/* Greater than any priority: no block remains. */
#define NO_PRIORITY UINT64_MAX

struct splitter_search {
	struct comm *comm;
	const struct layout *layout;
	struct run *const *runs;
	struct resident_split resident_cuts;
	uint32_t n_runs, n_splitters; /* splitters */
	uint32_t n_candidates;        /* per splitter and round */
	unsigned rank;
	bool at_key_boundaries;
	uint64_t seed;
	/* Per splitter, n_runs each: the splitter is one of the blocks [lo, hi) of the run. */
	uint64_t *lo, *hi;
	uint64_t *n_target; /* n: the maximum number of items before each splitter */
	uint64_t *n_before; /* n * n_candidates: items before each candidate */
	struct splitter_candidate *candidates; /* n * n_candidates */
	struct splitter_candidate *splitters;  /* n */
	void *key;                             /* of layout_key_nbytes() */
};

static uint32_t choose_n_candidates(uint32_t n_splitters)
{
	const uint32_t n = n_splitters ? MAX_CANDIDATE_ROWS / n_splitters : 1;

	return n < 1 ? 1 : n < MAX_CANDIDATES ? n : MAX_CANDIDATES;
}

static int open_search(struct splitter_search *search)
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
		return 0;
	return fail(-ENOMEM, "no memory for %u partitions", search->n_splitters + 1);
}

static void close_search(struct splitter_search *search)
{
	resident_split_close(&search->resident_cuts);
	free(search->lo);
	free(search->hi);
	free(search->n_target);
	free(search->n_before);
	free(search->candidates);
	free(search->splitters);
	free(search->key);
}

/* Initially every block of every run is possible. */
static int begin_search(struct splitter_search *search, uint64_t max_items)
{
	uint64_t n_items = runs_n_items(search->runs, search->n_runs);
	int r = comm_allreduce_sum(search->comm, &n_items, 1);

	if (n_items > max_items)
		n_items = max_items;
	for (uint32_t s = 0; s < search->n_splitters; s++) {
		uint64_t *hi = search->hi + (size_t)s * search->n_runs;

		search->n_target[s] = (uint64_t)((uint128_t)n_items * (s + UINT64_C(1)) /
						 (search->n_splitters + UINT64_C(1)));
		for (uint32_t i = 0; i < search->n_runs; i++)
			hi[i] = run_n_blocks(search->runs[i]);
	}
	return r;
}

static uint64_t next_random(struct splitter_search *search)
{
	search->seed += DIGEST_SEED;
	return digest_mix64(search->seed);
}

/*
 * Draw a random priority such that, of the ranks' priorities, that of a rank with n of m blocks is
 * the lowest with probability n / m: it is exponentially distributed with rate n. Non-negative
 * doubles sort like their bits.
 */
static uint64_t draw_priority(struct splitter_search *search, uint64_t n)
{
	const double uniform = ((double)(next_random(search) >> 11) + 0.5) * 0x1p-53;
	const double exponential = -log(uniform) / (double)n;
	uint64_t bits;

	_Static_assert(sizeof bits == sizeof exponential, "the bits of a double are a word");
	memcpy(&bits, &exponential, sizeof bits);
	return bits;
}

/* Return block `at` of this rank's possible blocks. */
static struct splitter_candidate candidate_at(const struct splitter_search *search, uint32_t s,
					      uint64_t block)
{
	const uint64_t *lo = search->lo + (size_t)s * search->n_runs;
	const uint64_t *hi = search->hi + (size_t)s * search->n_runs;
	uint32_t i = 0;
	encoded_key_t key;

	while (block >= hi[i] - lo[i]) {
		block -= hi[i] - lo[i];
		i++;
	}
	key = run_first_key(search->runs[i], lo[i] + block);
	return (struct splitter_candidate){ .key_high = (uint64_t)(key >> 64),
					    .key_low = (uint64_t)key,
					    .rank = search->rank,
					    .run = i,
					    .block = lo[i] + block };
}

/* Return the candidates of a splitter. */
static struct splitter_candidate *candidates_of(const struct splitter_search *search, uint32_t s)
{
	return search->candidates + (size_t)s * search->n_candidates;
}

/* Propose some possible blocks of this rank, each with a random priority. */
static void draw_candidates(struct splitter_search *search, uint32_t s)
{
	struct splitter_candidate *candidates = candidates_of(search, s);
	uint64_t n_remaining = 0, priority;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n_remaining += search->hi[(size_t)s * search->n_runs + i] -
			       search->lo[(size_t)s * search->n_runs + i];
	for (uint32_t i = 0; i < search->n_candidates; i++) {
		candidates[i] = (struct splitter_candidate){ .priority = NO_PRIORITY };
		if (n_remaining == 0)
			continue;
		priority = draw_priority(search, n_remaining);
		candidates[i] = candidate_at(search, s, next_random(search) % n_remaining);
		candidates[i].priority = priority;
	}
}

/* Each round has candidates as long as any block is possible. */
static bool has_candidates(const struct splitter_search *search, uint32_t s)
{
	return candidates_of(search, s)->priority != NO_PRIORITY;
}

/* Draw candidates for each splitter that has possible blocks. *ret_any_left: whether any has. */
static int draw_round(struct splitter_search *search, bool *ret_any_left)
{
	int r;

	for (uint32_t s = 0; s < search->n_splitters; s++)
		draw_candidates(search, s);
	r = comm_allreduce_min(search->comm, (uint64_t *)search->candidates,
			       (size_t)search->n_splitters * search->n_candidates, CANDIDATE_WORDS);
	*ret_any_left = false;
	for (uint32_t s = 0; s < search->n_splitters && r == 0; s++)
		*ret_any_left = *ret_any_left || has_candidates(search, s);
	return r;
}

static encoded_key_t candidate_key(const struct splitter_candidate *candidate)
{
	return (encoded_key_t)candidate->key_high << 64 | candidate->key_low;
}

/* Compare a run with that of the candidate, in the order of ties; count the runs before it. */
static bool is_candidate_run(const struct splitter_search *search, uint32_t run,
			     const struct splitter_candidate *candidate)
{
	return candidate->rank == search->rank && candidate->run == run;
}

static bool is_before_candidate(const struct splitter_search *search, uint32_t run,
				const struct splitter_candidate *candidate)
{
	return search->rank < candidate->rank ||
	       (search->rank == candidate->rank && run < candidate->run);
}

static uint32_t n_runs_before_candidate(const struct splitter_search *search,
					const struct splitter_candidate *candidate)
{
	if (search->rank == candidate->rank)
		return (uint32_t)candidate->run;
	return search->rank < candidate->rank ? search->n_runs : 0;
}

/* Count the possible blocks of an own run before the candidate. */
static uint64_t n_blocks_before(const struct splitter_search *search, uint32_t s, uint32_t run,
				const struct splitter_candidate *candidate)
{
	const size_t index = (size_t)s * search->n_runs + run;

	return is_candidate_run(search, run, candidate) ?
		       candidate->block :
		       run_n_blocks_before(search->runs[run], search->lo[index], search->hi[index],
					   candidate_key(candidate),
					   is_before_candidate(search, run, candidate));
}

/* Count the items in blocks of the own runs before the candidate. */
static uint64_t n_items_before(const struct splitter_search *search, uint32_t s,
			       const struct splitter_candidate *candidate)
{
	uint64_t n_items = 0;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n_items +=
			run_block_start(search->runs[i], n_blocks_before(search, s, i, candidate));
	return n_items;
}

static void count_below_candidates(struct splitter_search *search, uint32_t s)
{
	const struct splitter_candidate *candidates = candidates_of(search, s);
	uint64_t *n_before = search->n_before + (size_t)s * search->n_candidates;

	for (uint32_t i = 0; i < search->n_candidates; i++)
		n_before[i] =
			has_candidates(search, s) ? n_items_before(search, s, &candidates[i]) : 0;
}

/* The splitter is the candidate or a later block. */
static void raise_lower_bound(struct splitter_search *search, uint32_t s,
			      const struct splitter_candidate *candidate)
{
	const size_t index = (size_t)s * search->n_runs;

	for (uint32_t i = 0; i < search->n_runs; i++)
		search->lo[index + i] = n_blocks_before(search, s, i, candidate);
	if (candidate->rank == search->rank)
		search->lo[index + candidate->run]++;
	search->splitters[s] = *candidate;
}

/* The splitter is before the candidate. */
static void reduce_upper_bound(struct splitter_search *search, uint32_t s,
			       const struct splitter_candidate *candidate)
{
	const size_t index = (size_t)s * search->n_runs;

	for (uint32_t i = 0; i < search->n_runs; i++)
		search->hi[index + i] = n_blocks_before(search, s, i, candidate);
}

/*
 * The splitter is the last candidate that is not too late, or a block between it and the next one.
 */
static void narrow_bounds(struct splitter_search *search, uint32_t s)
{
	const struct splitter_candidate *candidates = candidates_of(search, s);
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
		reduce_upper_bound(search, s, &candidates[upper]);
	if (lower < n)
		raise_lower_bound(search, s, &candidates[lower]);
}

static int search_splitters(struct splitter_search *search)
{
	bool any_left = true;
	int r = 0;

	while (r == 0 && (r = draw_round(search, &any_left)) == 0 && any_left) {
		for (uint32_t s = 0; s < search->n_splitters; s++)
			count_below_candidates(search, s);
		r = comm_allreduce_sum(search->comm, search->n_before,
				       (size_t)search->n_splitters * search->n_candidates);
		for (uint32_t s = 0; s < search->n_splitters && r == 0; s++)
			if (has_candidates(search, s))
				narrow_bounds(search, s);
	}
	return r;
}

/*
 * Cut the own runs at a block, as splitters.c does: equal items of earlier runs precede the block,
 * unless keys must not be divided or blocks do not contain whole keys.
 */
static int cut_runs_at(struct splitter_search *search, const struct splitter_candidate *candidate,
		       uint64_t *ret_cuts)
{
	const struct layout *layout = search->layout;
	const bool is_exact = !search->at_key_boundaries &&
			      layout_key_nbytes(layout) <= sizeof(encoded_key_t);
	int r;

	memset(search->key, 0, layout_key_nbytes(layout));
	layout_key_from_prefix(layout, candidate_key(candidate), search->key);
	r = resident_split_find(&search->resident_cuts, search->key,
				is_exact ? n_runs_before_candidate(search, candidate) : 0,
				ret_cuts);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++)
		if (is_exact && is_candidate_run(search, i, candidate))
			ret_cuts[i] = run_block_start(search->runs[i], candidate->block);
		else if (!run_is_resident(search->runs[i]))
			r = run_count_before(
				search->runs[i],
				&(struct run_bound){
					layout, search->key,
					is_exact && is_before_candidate(search, i, candidate) },
				&ret_cuts[i]);
	return r;
}

static int cut_all_runs(struct splitter_search *search, uint64_t *cuts)
{
	const uint32_t n_runs = search->n_runs;
	int r = 0;

	memset(cuts, 0, n_runs * sizeof *cuts);
	for (uint32_t s = 0; s < search->n_splitters && r == 0; s++)
		r = cut_runs_at(search, &search->splitters[s], cuts + (s + (size_t)1) * n_runs);
	for (uint32_t i = 0; i < n_runs; i++)
		cuts[(search->n_splitters + (size_t)1) * n_runs + i] = run_n_items(search->runs[i]);
	return r;
}

int global_splitters_cut(struct comm *comm, const struct job *job, struct run *const *runs,
			 uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts)
{
	struct splitter_search search = {
		.comm = comm,
		.layout = job->layout,
		.runs = runs,
		.n_runs = n_runs,
		.n_splitters = params->n_partitions - 1,
		.n_candidates = choose_n_candidates(params->n_partitions - 1),
		.rank = comm_rank(comm),
		.at_key_boundaries = params->at_key_boundaries,
		.seed = digest_mix64(comm_rank(comm)),
	};
	int r = open_search(&search);

	if (r == 0)
		r = resident_split_open(job, runs, n_runs, &search.resident_cuts);
	if (r == 0)
		r = begin_search(&search, params->max_items);
	if (r == 0)
		r = search_splitters(&search);
	if (r == 0)
		r = cut_all_runs(&search, ret_cuts);
	close_search(&search);
	return r;
}
