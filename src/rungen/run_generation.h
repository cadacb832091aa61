/*
 * run_generation.h - the input as sorted runs
 */
#pragma once

#include "src/run/run.h"
#include "src/rungen/chunk_pool.h"

/*
 * Read the rest of job->input and append sorted runs of it to the list. Resident ones live in
 * chunks of the pool, which must outlive them. Adds what was read and dropped to *totals. Returns 0
 * or a negative errno (reported).
 */
int generate_runs(const struct job *job, struct chunk_pool *pool, struct run_list *list,
		  struct record_totals *totals);
