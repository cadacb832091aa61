/*
 * global_splitters - where the ranges of the ranks begin (see global_splitters.h)
 */
#include "src/exchange/global_splitters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/merge/resident_split.h"
#include "src/record/digest.h"

/* A block, as its owner tells it. Of those that are drawn for a splitter the least lot counts. */
struct place {
	uint64_t lot;
	uint64_t key_high, key_low;
	uint64_t rank, run, block;
};

enum { PLACE_WORDS = sizeof(struct place) / sizeof(uint64_t) };

/*
 * Places drawn for each splitter in a round: with many splitters fewer, as a message has those of
 * all (cluster_estimate.c counts with that).
 */
enum { MOST_DRAWS = 16, MOST_ROWS = 1024 };

/* Above those of all blocks: none is left. */
#define NO_LOT UINT64_MAX

struct range_cut {
	struct ranks *ranks;
	const struct layout *layout;
	struct run *const *runs;
	struct resident_cuts residents;
	uint32_t n_runs, n; /* splitters */
	uint32_t n_draws;   /* places drawn for each in a round */
	unsigned rank;
	bool at_keys;
	uint64_t seed;
	/* For each splitter n_runs: it is one of these blocks of the run. */
	uint64_t *lo, *hi;
	uint64_t *n_wanted;   /* n: items before a splitter, at most */
	uint64_t *n_before;   /* n * n_draws: items before those that were drawn */
	struct place *places; /* as many: that were drawn */
	struct place *found;  /* n */
	void *key;            /* layout_key_nbytes() */
};

static uint32_t find_n_draws(uint32_t n_splitters)
{
	const uint32_t n = n_splitters ? MOST_ROWS / n_splitters : 1;

	return n < 1 ? 1 : n < MOST_DRAWS ? n : MOST_DRAWS;
}

static int open_search(struct range_cut *search)
{
	const size_t n = search->n + UINT64_C(1), n_blocks = n * (search->n_runs + UINT64_C(1));
	const size_t n_rows = n * search->n_draws;

	search->lo = calloc(n_blocks, sizeof *search->lo);
	search->hi = calloc(n_blocks, sizeof *search->hi);
	search->n_wanted = calloc(n, sizeof *search->n_wanted);
	search->n_before = calloc(n_rows, sizeof *search->n_before);
	search->places = calloc(n_rows, sizeof *search->places);
	search->found = calloc(n, sizeof *search->found);
	search->key = malloc(layout_key_nbytes(search->layout));
	if (search->lo && search->hi && search->n_wanted && search->n_before && search->places &&
	    search->found && search->key)
		return 0;
	return fail(-ENOMEM, "no memory for %u ranges", search->n + 1);
}

static void close_search(struct range_cut *search)
{
	resident_cuts_close(&search->residents);
	free(search->lo);
	free(search->hi);
	free(search->n_wanted);
	free(search->n_before);
	free(search->places);
	free(search->found);
	free(search->key);
}

/* All blocks of all runs are left; so many items are wanted before each splitter. */
static int begin_search(struct range_cut *search, uint64_t n_most)
{
	uint64_t n_items = runs_n_items(search->runs, search->n_runs);
	int r = ranks_sum(search->ranks, &n_items, 1);

	if (n_items > n_most)
		n_items = n_most;
	for (uint32_t s = 0; s < search->n; s++) {
		uint64_t *hi = search->hi + (size_t)s * search->n_runs;

		search->n_wanted[s] = (uint64_t)((uint128_t)n_items * (s + UINT64_C(1)) /
						 (search->n + UINT64_C(1)));
		for (uint32_t i = 0; i < search->n_runs; i++)
			hi[i] = run_n_blocks(search->runs[i]);
	}
	return r;
}

static uint64_t next_random(struct range_cut *search)
{
	search->seed += DIGEST_SEED;
	return digest_mix64(search->seed);
}

/*
 * A number above 0 by chance: that of the rank with n blocks of m is the least of all with
 * probability n / m (they are exponentially distributed, with the rate n). Of numbers that are not
 * negative bits are in the order of the values.
 */
static uint64_t draw_lot(struct range_cut *search, uint64_t n)
{
	const double even = ((double)(next_random(search) >> 11) + 0.5) * 0x1p-53;
	const double lot = -log(even) / (double)n;
	uint64_t bits;

	_Static_assert(sizeof bits == sizeof lot, "the bits of a double are a word");
	memcpy(&bits, &lot, sizeof bits);
	return bits;
}

/* Of a splitter, block number `at` of those that this rank has left. */
static struct place find_place(const struct range_cut *search, uint32_t s, uint64_t at)
{
	const uint64_t *lo = search->lo + (size_t)s * search->n_runs;
	const uint64_t *hi = search->hi + (size_t)s * search->n_runs;
	uint32_t i = 0;
	code_t key;

	while (at >= hi[i] - lo[i]) {
		at -= hi[i] - lo[i];
		i++;
	}
	key = run_first_key(search->runs[i], lo[i] + at);
	return (struct place){ .key_high = (uint64_t)(key >> 64),
			       .key_low = (uint64_t)key,
			       .rank = search->rank,
			       .run = i,
			       .block = lo[i] + at };
}

/* Those that are drawn for a splitter. */
static struct place *places_of(const struct range_cut *search, uint32_t s)
{
	return search->places + (size_t)s * search->n_draws;
}

/* Of the blocks that this rank has left for a splitter, some, each with a lot of its own. */
static void draw_some(struct range_cut *search, uint32_t s)
{
	struct place *places = places_of(search, s);
	uint64_t n_left = 0, lot;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n_left += search->hi[(size_t)s * search->n_runs + i] -
			  search->lo[(size_t)s * search->n_runs + i];
	for (uint32_t i = 0; i < search->n_draws; i++) {
		places[i] = (struct place){ .lot = NO_LOT };
		if (n_left == 0)
			continue;
		lot = draw_lot(search, n_left);
		places[i] = find_place(search, s, next_random(search) % n_left);
		places[i].lot = lot;
	}
}

/* While any block is left each draw has one. */
static bool is_drawn(const struct range_cut *search, uint32_t s)
{
	return places_of(search, s)->lot != NO_LOT;
}

/* For each splitter places are drawn, any that are left; *ret_any: if any are. */
static int draw(struct range_cut *search, bool *ret_any)
{
	int r;

	for (uint32_t s = 0; s < search->n; s++)
		draw_some(search, s);
	r = ranks_least(search->ranks, (uint64_t *)search->places,
			(size_t)search->n * search->n_draws, PLACE_WORDS);
	*ret_any = false;
	for (uint32_t s = 0; s < search->n && r == 0; s++)
		*ret_any = *ret_any || is_drawn(search, s);
	return r;
}

static code_t key_of(const struct place *place)
{
	return (code_t)place->key_high << 64 | place->key_low;
}

/* Is it the run that the place is in; is it one before that; and how many of them are? */
static bool is_its_run(const struct range_cut *search, uint32_t run, const struct place *place)
{
	return place->rank == search->rank && place->run == run;
}

static bool is_earlier(const struct range_cut *search, uint32_t run, const struct place *place)
{
	return search->rank < place->rank || (search->rank == place->rank && run < place->run);
}

static uint32_t n_earlier(const struct range_cut *search, const struct place *place)
{
	if (search->rank == place->rank)
		return (uint32_t)place->run;
	return search->rank < place->rank ? search->n_runs : 0;
}

/* Of those of the own run that the splitter can still be, how many blocks are before the place. */
static uint64_t blocks_before(const struct range_cut *search, uint32_t s, uint32_t run,
			      const struct place *place)
{
	const size_t at = (size_t)s * search->n_runs + run;

	return is_its_run(search, run, place) ?
		       place->block :
		       run_n_blocks_before(search->runs[run], search->lo[at], search->hi[at],
					   key_of(place), is_earlier(search, run, place));
}

/* Of the own runs: how many items are in blocks before the place. */
static uint64_t items_before(const struct range_cut *search, uint32_t s, const struct place *place)
{
	uint64_t n_items = 0;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n_items += run_block_start(search->runs[i], blocks_before(search, s, i, place));
	return n_items;
}

static void count(struct range_cut *search, uint32_t s)
{
	const struct place *places = places_of(search, s);
	uint64_t *n_before = search->n_before + (size_t)s * search->n_draws;

	for (uint32_t i = 0; i < search->n_draws; i++)
		n_before[i] = is_drawn(search, s) ? items_before(search, s, &places[i]) : 0;
}

/* It is one of the blocks from the place on, as far as is known; */
static void take_from(struct range_cut *search, uint32_t s, const struct place *place)
{
	const size_t at = (size_t)s * search->n_runs;

	for (uint32_t i = 0; i < search->n_runs; i++)
		search->lo[at + i] = blocks_before(search, s, i, place);
	if (place->rank == search->rank)
		search->lo[at + place->run]++;
	search->found[s] = *place;
}

/* or one before it. */
static void take_up_to(struct range_cut *search, uint32_t s, const struct place *place)
{
	const size_t at = (size_t)s * search->n_runs;

	for (uint32_t i = 0; i < search->n_runs; i++)
		search->hi[at + i] = blocks_before(search, s, i, place);
}

/* The splitter is the last of the places that are not behind it, or between that and the next. */
static void narrow(struct range_cut *search, uint32_t s)
{
	const struct place *places = places_of(search, s);
	const uint64_t *n_before = search->n_before + (size_t)s * search->n_draws;
	const uint32_t n = search->n_draws;
	uint32_t first = n, next = n;

	for (uint32_t i = 0; i < n; i++) {
		const bool is_behind = n_before[i] > search->n_wanted[s];

		if (is_behind && (next == n || n_before[i] < n_before[next]))
			next = i;
		if (!is_behind && (first == n || n_before[i] > n_before[first]))
			first = i;
	}
	if (next < n)
		take_up_to(search, s, &places[next]);
	if (first < n)
		take_from(search, s, &places[first]);
}

static int find_places(struct range_cut *search)
{
	bool any = true;
	int r = 0;

	while (r == 0 && (r = draw(search, &any)) == 0 && any) {
		for (uint32_t s = 0; s < search->n; s++)
			count(search, s);
		r = ranks_sum(search->ranks, search->n_before,
			      (size_t)search->n * search->n_draws);
		for (uint32_t s = 0; s < search->n && r == 0; s++)
			if (is_drawn(search, s))
				narrow(search, s);
	}
	return r;
}

/*
 * Cut the own runs at a block: as splitters.c does, equal items of earlier runs come before it, if
 * keys may be divided, and blocks say all of them.
 */
static int cut_at(struct range_cut *search, const struct place *place, uint64_t *ret_cuts)
{
	const struct layout *layout = search->layout;
	const bool is_exact = !search->at_keys && layout_key_nbytes(layout) <= sizeof(code_t);
	int r;

	memset(search->key, 0, layout_key_nbytes(layout));
	layout_begin_key(layout, key_of(place), search->key);
	r = resident_cuts_find(&search->residents, search->key,
			       is_exact ? n_earlier(search, place) : 0, ret_cuts);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++)
		if (is_exact && is_its_run(search, i, place))
			ret_cuts[i] = run_block_start(search->runs[i], place->block);
		else if (!run_is_resident(search->runs[i]))
			r = run_cut(search->runs[i],
				    &(struct run_cut_at){ layout, search->key,
							  is_exact &&
								  is_earlier(search, i, place) },
				    &ret_cuts[i]);
	return r;
}

static int cut_all(struct range_cut *search, uint64_t *cuts)
{
	const uint32_t n_runs = search->n_runs;
	int r = 0;

	memset(cuts, 0, n_runs * sizeof *cuts);
	for (uint32_t s = 0; s < search->n && r == 0; s++)
		r = cut_at(search, &search->found[s], cuts + (s + (size_t)1) * n_runs);
	for (uint32_t i = 0; i < n_runs; i++)
		cuts[(search->n + (size_t)1) * n_runs + i] = run_n_items(search->runs[i]);
	return r;
}

int range_cut(struct ranks *ranks, const struct job *job, struct run *const *runs, uint32_t n_runs,
	      const struct range_wish *wish, uint64_t *ret_cuts)
{
	struct range_cut search = {
		.ranks = ranks,
		.layout = job->layout,
		.runs = runs,
		.n_runs = n_runs,
		.n = wish->n - 1,
		.n_draws = find_n_draws(wish->n - 1),
		.rank = ranks_rank(ranks),
		.at_keys = wish->at_keys,
		.seed = digest_mix64(ranks_rank(ranks)),
	};
	int r = open_search(&search);

	if (r == 0)
		r = resident_cuts_open(job, runs, n_runs, &search.residents);
	if (r == 0)
		r = begin_search(&search, wish->n_most);
	if (r == 0)
		r = find_places(&search);
	if (r == 0)
		r = cut_all(&search, ret_cuts);
	close_search(&search);
	return r;
}
