/*
 * run_generation - the input as sorted runs
 *
 *	read -> encode, sort -> collect -> (spill)
 *
 * Readers fill chunk buffers; queues sort them; the caller's thread collects them in input order as
 * resident runs, and, when the plan says that they do not all fit, merges the oldest into one
 * spilled run, whose chunk buffers then go back to the readers. All of it at the same time.
 */
#pragma once

#include "src/rungen/chunk_pool.h"
#include "src/run/run_list.h"

/*
 * Make runs of all of job->input, appended to `store`. Resident ones live in chunks of the pool,
 * which must outlive them. What was read and dropped is added to *ledger. Returns 0, or a negative
 * errno after a message.
 */
int generate_runs(const struct job *job, struct chunk_pool *pool, struct run_list *list,
		  struct record_totals *totals);
