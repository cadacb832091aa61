/*
 * run_list - the runs that are not merged yet, in the order of ties
 *
 * Runs are consecutive parts of the input in input order; merging neighbours gives a run that takes
 * their place, so the order says, at any time, which of two equal records came first. Owned by one
 * thread.
 */
#pragma once

#include "src/run/run.h"

struct run_list {
	struct run **runs;
	size_t n, n_allocated;
};

/* Takes over `run`, also on failure. Appended at the end. -ENOMEM after a message. */
int run_list_add(struct run_list *list, struct run *run);

/* Close the n runs from `first`, and put `run` in their place (NULL: nothing). */
void run_list_replace(struct run_list *list, size_t first, size_t n, struct run *run);

/* How many are stored, and not resident. */
size_t run_list_n_stored(const struct run_list *list);

/* The same, of resident ones. */
static inline size_t run_list_n_resident(const struct run_list *list)
{
	return list->n - run_list_n_stored(list);
}

/*
 * Of an input of unknown size: is there room for what is known of the blocks of all stored runs? 0,
 * or -E2BIG after a message.
 */
int run_list_check_index_space(const struct run_list *list, const struct plan *plan);

/* Closes all runs. */
void run_list_free(struct run_list *list);
