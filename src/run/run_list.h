/*
 * run_list.h - the runs that are not merged yet, in the order of ties
 *
 * Runs are consecutive parts of the input, in its order, and merging neighbours gives a run that
 * takes their place. So the order of the list always says which of two equal records came first.
 * Owned by one thread.
 */
#pragma once

#include "src/run/run.h"

struct run_list {
	struct run **runs;
	size_t n, n_allocated;
};

/* Append a run. Takes it over, also on failure. Returns 0 or -ENOMEM (reported). */
int run_list_add(struct run_list *list, struct run *run);

/* Close the n runs from `first` on, and put `run` in their place; NULL: nothing. */
void run_list_replace(struct run_list *list, size_t first, size_t n, struct run *run);

/* How many runs are stored, or are inputs. */
size_t run_list_n_stored(const struct run_list *list);

static inline size_t run_list_n_resident(const struct run_list *list)
{
	return list->n - run_list_n_stored(list);
}

/*
 * Check, for an input of unknown size, that the index of all stored blocks still has room in
 * memory. Returns 0 or -E2BIG (reported).
 */
int run_list_check_index_space(const struct run_list *list, const struct plan *plan);

/* Close all runs. */
void run_list_free(struct run_list *list);
