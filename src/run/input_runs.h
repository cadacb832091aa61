/*
 * input_runs - the inputs of -m as runs
 *
 * Regular files are merged where they are. A pipe cannot be read in the order that a merge asks
 * for, so it is first stored as a spilled run.
 */
#pragma once

#include "src/plan/sort_spec.h"
#include "src/run/run_list.h"

struct input_runs;

/*
 * Append a run for each input of the spec (empty inputs: none) to `runs`. Records that had to be
 * read are added to *ret_read. *ret_inputs owns what the runs read from: close it after them; it is
 * set in both cases. Returns 0 or a negative errno after a message.
 */
int input_runs_open(const struct job *job, const struct sort_spec *spec, struct run_list *runs,
		    struct digest *ret_read, struct input_runs **ret_inputs);

/* NULL is fine. */
void input_runs_close(struct input_runs *inputs);

/* How many of them were pipes, and are stored; NULL: none. */
size_t input_runs_n_stored(const struct input_runs *inputs);

/* How many inputs were opened here; and the i-th of them: of input i of the spec. */
size_t input_runs_count(const struct input_runs *inputs);
const struct input *input_runs_get(const struct input_runs *inputs, size_t i);
