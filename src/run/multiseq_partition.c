/*
 * multiseq_partition - where a merge of runs has written so many items (see multiseq_partition.h)
 *
 * The first item behind the cut is selected (multiseq_selection.h). Its lots are the same for everybody,
 * though that does not matter.
 */
#include "src/run/multiseq_partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/run/multiseq_selection.h"

struct search {
	const struct layout *layout;
	struct run *const *runs;
	uint32_t n_runs;
	struct selection items; /* the first behind the cut */
	void *item, *key;
};

static int search_open(struct search *search)
{
	const int r = selection_open(search->n_runs, &search->items);

	if (r < 0)
		return r;
	search->item = malloc(search->layout->item_nbytes);
	search->key = malloc(layout_key_nbytes(search->layout));
	if (!search->item || !search->key)
		return fail(-ENOMEM, "no memory for a merge of %u runs", search->n_runs);
	for (uint32_t i = 0; i < search->n_runs; i++)
		search->items.hi[i] = run_n_items(search->runs[i]);
	return 0;
}

static void search_close(struct search *search)
{
	selection_close(&search->items);
	free(search->item);
	free(search->key);
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
		uint64_t *cut = &search->items.before[i];

		*cut = item;
		if (i != run)
			r = run_cut(search->runs[i],
				    &(struct run_cut_at){ search->layout, search->key, i < run },
				    cut);
		if (*cut < search->items.lo[i])
			*cut = search->items.lo[i];
		if (*cut > search->items.hi[i])
			*cut = search->items.hi[i];
		*ret_n += *cut;
	}
	return r;
}

/* Down to the one item that has `rank` items before it; all cuts are in lo then. */
static int find(struct search *search, uint64_t rank)
{
	uint64_t n, item;
	uint32_t run;

	while (selection_draw(&search->items, &run, &item)) {
		const int r = cut_before(search, run, item, &n);

		if (r < 0)
			return r;
		if (n > rank) {
			selection_go_before(&search->items);
			continue;
		}
		selection_go_to(&search->items);
		if (n == rank)
			break;
		search->items.lo[run]++;
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
		memcpy(ret_cuts, search.items.lo, n_runs * sizeof *ret_cuts);
	search_close(&search);
	return r;
}

/* The least key of what comes first behind the cuts, in search->key; *ret_any: there is one. */
static int find_key_behind(struct search *search, const uint64_t *cuts, void *key, bool *ret_any)
{
	int r = 0;

	*ret_any = false;
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		struct run *run = search->runs[i];

		if (cuts[i] == run_n_items(run))
			continue;
		r = run_read_item(run, cuts[i], search->item);
		if (r < 0)
			break;
		run_item_key(run, search->layout, search->item, key);
		if (!*ret_any || layout_compare_keys(search->layout, key, search->key) < 0)
			memcpy(search->key, key, layout_key_nbytes(search->layout));
		*ret_any = true;
	}
	return r;
}

/* The cuts go back to in front of that key. */
static int go_before_key(struct search *search, void *key, uint64_t *cuts)
{
	bool any;
	int r = find_key_behind(search, cuts, key, &any);

	for (uint32_t i = 0; i < search->n_runs && r == 0 && any; i++)
		r = run_cut(search->runs[i],
			    &(struct run_cut_at){ search->layout, search->key, false }, &cuts[i]);
	return r;
}

int rank_cut_at_key(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
		    uint64_t rank, uint64_t *ret_cuts)
{
	struct search search = { .layout = layout, .runs = runs, .n_runs = n_runs };
	void *key = malloc(layout_key_nbytes(layout));
	int r = search_open(&search);

	if (r == 0 && !key)
		r = fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	if (r == 0)
		r = find(&search, rank);
	if (r == 0)
		memcpy(ret_cuts, search.items.lo, n_runs * sizeof *ret_cuts);
	if (r == 0)
		r = go_before_key(&search, key, ret_cuts);
	search_close(&search);
	free(key);
	return r;
}
