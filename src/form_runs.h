/*
 * form_runs - the input as sorted runs
 *
 *	read -> encode, sort -> collect -> (spill)
 *
 * Readers fill chunk buffers; lanes sort them; the caller's thread collects them in input order as
 * resident runs, and, when the plan says that they do not all fit, merges the oldest into one
 * spilled run, whose chunk buffers then go back to the readers. All of it at the same time.
 */
#pragma once

#include "src/run_store.h"

struct form_runs;

/*
 * Make runs of all of engine->input, appended to `store`. *ret_read: the records read;
 * *ret_dropped: those dropped by -u. *ret_forming owns the chunk buffers that resident runs live
 * in: close it after them. Returns 0, or a negative errno after a message; *ret_forming is set in
 * both cases.
 */
int form_runs(const struct engine *engine, struct run_store *store, struct digest *ret_read,
	      struct digest *ret_dropped, struct form_runs **ret_forming);

/* Bytes of device memory that resident runs and unused buffers still take; frees the unused. */
uint64_t form_runs_trim(struct form_runs *forming);

/* NULL is fine. */
void form_runs_close(struct form_runs *forming);
