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

struct resident_split {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	/* For each worker n_runs: the runs that are resident with it, and of others nothing. */
	struct slice *slices;
	uint64_t *cuts; /* where it cuts them */
	struct run_devices run_devices;
};

/*
 * Of n runs those that are resident, which get blocks. *ret_cuts must be zeroed before. 0, or a
 * negative errno after a message; to be closed in both cases.
 */
int resident_split_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
			struct resident_split *ret_split);
void resident_split_close(struct resident_split *split);

/*
 * Of each resident run, how many items come before the key: those that equal it do in runs before
 * number `run`, and only there. ret_cuts: of all n runs; those of others stay as they are. Returns
 * as above.
 */
int resident_split_find(struct resident_split *split, const void *key, uint32_t run,
			uint64_t *ret_cuts);
