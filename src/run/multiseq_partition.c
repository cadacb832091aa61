/*
 * multiseq_partition - where a merge of runs has written so many items (see multiseq_partition.h)
 *
 * The first item behind the cut is selected (multiseq_selection.h). Its lots are the same for
 * everybody, though that does not matter.
 */
#include "src/run/multiseq_partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/run/multiseq_selection.h"

struct rank_search {
	const struct layout *layout;
	struct run *const *runs;
	uint32_t n_runs;
	struct selection selection; /* the first behind the cut */
	void *item, *key;
};

static int rank_search_open(struct rank_search *search)
{
	const int r = selection_open(search->n_runs, &search->selection);

	if (r < 0)
		return r;
	search->item = malloc(search->layout->item_nbytes);
	search->key = malloc(layout_key_nbytes(search->layout));
	if (!search->item || !search->key)
		return fail(-ENOMEM, "no memory for a merge of %u runs", search->n_runs);
	for (uint32_t i = 0; i < search->n_runs; i++)
		search->selection.hi[i] = run_n_items(search->runs[i]);
	return 0;
}

static void rank_search_close(struct rank_search *search)
{
	selection_close(&search->selection);
	free(search->item);
	free(search->key);
}

/* Cut all runs in front of an item; what is not in order is cut where it still can be. */
static int count_before_item(struct rank_search *search, uint32_t run, uint64_t item,
			     uint64_t *ret_n)
{
	int r = run_read_item(search->runs[run], item, search->item);

	*ret_n = 0;
	if (r < 0)
		return r;
	run_item_key(search->runs[run], search->layout, search->item, search->key);
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		uint64_t *n_before = &search->selection.n_before[i];

		*n_before = item;
		if (i != run)
			r = run_count_before(search->runs[i],
					     &(struct run_bound){ search->layout, search->key,
								  i < run },
					     n_before);
		if (*n_before < search->selection.lo[i])
			*n_before = search->selection.lo[i];
		if (*n_before > search->selection.hi[i])
			*n_before = search->selection.hi[i];
		*ret_n += *n_before;
	}
	return r;
}

/* Down to the one item that has `rank` items before it; all cuts are in lo then. */
static int select_rank_position(struct rank_search *search, uint64_t rank)
{
	uint64_t n, item;
	uint32_t run;

	while (selection_draw(&search->selection, &run, &item)) {
		const int r = count_before_item(search, run, item, &n);

		if (r < 0)
			return r;
		if (n > rank) {
			selection_set_upper(&search->selection);
			continue;
		}
		selection_set_lower(&search->selection);
		if (n == rank)
			break;
		search->selection.lo[run]++;
	}
	return 0;
}

int multiseq_partition(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
		       uint64_t rank, uint64_t *ret_cuts)
{
	struct rank_search search = { .layout = layout, .runs = runs, .n_runs = n_runs };
	int r = rank_search_open(&search);

	if (r == 0)
		r = select_rank_position(&search, rank);
	if (r == 0)
		memcpy(ret_cuts, search.selection.lo, n_runs * sizeof *ret_cuts);
	rank_search_close(&search);
	return r;
}

/* The least key of what comes first behind the cuts, in search->key; *ret_any: there is one. */
static int min_key_after(struct rank_search *search, const uint64_t *cuts, void *key,
			 bool *ret_has_key)
{
	int r = 0;

	*ret_has_key = false;
	for (uint32_t i = 0; i < search->n_runs && r == 0; i++) {
		struct run *run = search->runs[i];

		if (cuts[i] == run_n_items(run))
			continue;
		r = run_read_item(run, cuts[i], search->item);
		if (r < 0)
			break;
		run_item_key(run, search->layout, search->item, key);
		if (!*ret_has_key || layout_compare_keys(search->layout, key, search->key) < 0)
			memcpy(search->key, key, layout_key_nbytes(search->layout));
		*ret_has_key = true;
	}
	return r;
}

/* The cuts go back to in front of that key. */
static int move_cuts_before_key(struct rank_search *search, void *key, uint64_t *cuts)
{
	bool has_key;
	int r = min_key_after(search, cuts, key, &has_key);

	for (uint32_t i = 0; i < search->n_runs && r == 0 && has_key; i++)
		r = run_count_before(search->runs[i],
				     &(struct run_bound){ search->layout, search->key, false },
				     &cuts[i]);
	return r;
}

int multiseq_partition_at_key(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
			      uint64_t rank, uint64_t *ret_cuts)
{
	struct rank_search search = { .layout = layout, .runs = runs, .n_runs = n_runs };
	void *key = malloc(layout_key_nbytes(layout));
	int r = rank_search_open(&search);

	if (r == 0 && !key)
		r = fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	if (r == 0)
		r = select_rank_position(&search, rank);
	if (r == 0)
		memcpy(ret_cuts, search.selection.lo, n_runs * sizeof *ret_cuts);
	if (r == 0)
		r = move_cuts_before_key(&search, key, ret_cuts);
	rank_search_close(&search);
	free(key);
	return r;
}
