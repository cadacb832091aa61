/*
 * setup_internal - what the files of its implementation share
 *
 *	setup.c		opening and closing
 *	setup_plan.c	memory and threads: what is planned with, and whether it is enough
 */
#pragma once

#include "src/sort/setup.h"

/* Of all ranks; INPUT_SIZE_UNKNOWN: not known, nor assumed of several. */
uint64_t setup_input_nbytes(const struct job *job, const struct setup *setup);

/* And what is sorted here: of several ranks as much as by the one that has the most. */
uint64_t setup_local_input_nbytes(const struct job *job, const struct setup *setup);

/* Into the job: what is asked of the plan (job->request), and the plan. The device is open. */
void setup_plan(struct job *job, const struct setup *setup);

/*
 * What cannot be kept to is refused, and not passed over: 0, or -E2BIG after a message if the plan
 * takes more memory than there is for it.
 */
int setup_check_memory(const struct job *job, const struct sort_spec *spec);
