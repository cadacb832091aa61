/*
 * input_runs.h - the inputs of -m as runs
 */
#pragma once

#include "src/plan/sort_spec.h"
#include "src/run/run.h"

struct input_runs;

/*
 * Append a run for each input of the spec that is not empty. Records that had to be read are added
 * to *ret_read. *ret_inputs, set in any case, owns what the runs read from: close it after them.
 * Returns 0 or a negative errno (reported).
 */
int input_runs_open(const struct job *job, const struct sort_spec *spec, struct run_list *runs,
		    struct digest *ret_read, struct input_runs **ret_inputs);

void input_runs_close(struct input_runs *inputs);

/* Count the inputs that were pipes, and are spilled runs now. NULL: 0. */
size_t input_runs_n_spilled(const struct input_runs *inputs);

/* Count the inputs that were opened here, and get that of input i of the spec. */
size_t input_runs_count(const struct input_runs *inputs);
const struct input *input_runs_get(const struct input_runs *inputs, size_t i);
