/*
 * rank - where a merge of runs has written so many items (see rank.h)
 *
 * An item that is drawn by lot from those that can be the first behind the cut tells how many come
 * before it, and which it then still can be. It is drawn in the same way by everybody, though that
 * does not matter.
 */
#include "src/run/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"
#include "src/record/hash.h"

struct search {
	const struct layout *layout;
	struct run *const *runs;
	uint32_t n_runs;
	uint64_t *lo, *hi; /* n_runs each: the item that is wanted is one of these */
	uint64_t *before;  /* items before the one that was drawn */
	uint64_t lot;
	void *item, *key;
};

static int search_open(struct search *search)
{
	const size_t n = search->n_runs;

	search->lo = calloc(n, sizeof *search->lo);
	search->hi = calloc(n, sizeof *search->hi);
	search->before = calloc(n, sizeof *search->before);
	search->item = malloc(search->layout->item_nbytes);
	search->key = malloc(layout_key_nbytes(search->layout));
	if (!search->lo || !search->hi || !search->before || !search->item || !search->key)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	for (uint32_t i = 0; i < n; i++)
		search->hi[i] = run_n_items(search->runs[i]);
	return 0;
}

static void search_close(struct search *search)
{
	free(search->lo);
	free(search->hi);
	free(search->before);
	free(search->item);
	free(search->key);
}

static uint64_t count_left(const struct search *search)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < search->n_runs; i++)
		n += search->hi[i] - search->lo[i];
	return n;
}

/* Of n_left items, at least one. */
static uint32_t draw(struct search *search, uint64_t n_left, uint64_t *ret_item)
{
	uint32_t run = 0;
	uint64_t i;

	search->lot = digest_mix64(search->lot + 1);
	for (i = search->lot % n_left; i >= search->hi[run] - search->lo[run]; run++)
		i -= search->hi[run] - search->lo[run];
	*ret_item = search->lo[run] + i;
	return run;
}

/* Cut all runs in front of an item; what is not in order is cut where it still can be. */
static int cut_before(struct search *search, uint32_t run, uint64_t item, uint64_t *ret_n)
{
	int r = run_read_item(search->runs[run], item, search->item);

	*ret_n = 0;
	if (r < 0)
		return r;
	run_item_key(search->runs[run], search->layout, search->item, search->key);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		uint64_t *cut = &search->before[i];

		*cut = item;
		if (i != run)
			r = run_cut(search->runs[i],
				    &(struct run_cut_at){ search->layout, search->key, i < run },
				    cut);
		if (*cut < search->lo[i])
			*cut = search->lo[i];
		if (*cut > search->hi[i])
			*cut = search->hi[i];
		*ret_n += *cut;
	}
	return r;
}

/* Down to the one item that has `rank` items before it; all cuts are in lo then. */
static int find(struct search *search, uint64_t rank)
{
	const size_t nbytes = search->n_runs * sizeof *search->lo;
	uint64_t n_left, n, item;

	while ((n_left = count_left(search)) > 0) {
		const uint32_t run = draw(search, n_left, &item);
		int r = cut_before(search, run, item, &n);

		if (r < 0)
			return r;
		if (n > rank) {
			memcpy(search->hi, search->before, nbytes);
			continue;
		}
		memcpy(search->lo, search->before, nbytes);
		if (n == rank)
			break;
		search->lo[run]++;
	}
	return 0;
}

int rank_cut(const struct layout *layout, struct run *const *runs, uint32_t n_runs, uint64_t rank,
	     uint64_t *ret_cuts)
{
	struct search search = { .layout = layout, .runs = runs, .n_runs = n_runs };
	int r = search_open(&search);

	if (r == 0)
		r = find(&search, rank);
	if (r == 0)
		memcpy(ret_cuts, search.lo, n_runs * sizeof *ret_cuts);
	search_close(&search);
	return r;
}
