/*
 * merge_inputs - the inputs of -m as runs
 *
 * Regular files are merged where they are. A pipe cannot be read in the order that a merge asks
 * for, so it is first stored as a spilled run.
 */
#pragma once

#include "src/run/run_store.h"

struct merge_inputs;

/*
 * Append a run for each of the n paths (empty inputs: none) to `runs`. Records that had to be read
 * are added to *ret_read. *ret_inputs owns what the runs read from: close it after them; it is set
 * in both cases. Returns 0 or a negative errno after a message.
 */
int merge_inputs_open(const struct engine *engine, const char *const *paths, size_t n,
		      struct run_store *runs, struct digest *ret_read,
		      struct merge_inputs **ret_inputs);

/* NULL is fine. */
void merge_inputs_close(struct merge_inputs *inputs);

/* The i-th of the inputs that were opened here: of path i. */
const struct input *merge_inputs_get(const struct merge_inputs *inputs, size_t i);
