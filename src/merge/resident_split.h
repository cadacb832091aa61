/*
 * resident_split - where a place cuts resident runs
 *
 * Blocks of resident runs are a view, which sampling makes; and where a key is among their items
 * the device finds that they live in, each for its own (run_devices.h).
 *
 * Used by one thread.
 */
#pragma once

#include "src/merge/run_devices.h"

struct resident_cuts {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	/* For each worker n_runs: the runs that are resident with it, and of others nothing. */
	struct slice *slices;
	uint64_t *cuts; /* where it cuts them */
	struct homes homes;
};

/*
 * Of n runs those that are resident, which get blocks. *ret_cuts must be zeroed before. 0, or a
 * negative errno after a message; to be closed in both cases.
 */
int resident_cuts_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		       struct resident_cuts *ret_cuts);
void resident_cuts_close(struct resident_cuts *cuts);

/*
 * Of each resident run, how many items come before the key: those that equal it do in runs before
 * number `run`, and only there. ret_cuts: of all n runs; those of others stay as they are. Returns
 * as above.
 */
int resident_cuts_find(struct resident_cuts *cuts, const void *key, uint32_t run,
		       uint64_t *ret_cuts);
