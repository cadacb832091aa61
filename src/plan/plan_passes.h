/*
 * plan_passes - what a plan will spill and merge, and the temporary space for that
 *
 * Part of the plan (plan.h), which holds what is found out here. Nothing in memory is sized by it
 * but the index of blocks; it is what --explain says, and what is looked for in the temporary
 * directories before anything starts.
 */
#pragma once

#include "src/plan/plan.h"

/* Merges until at most fan_in runs are left, as merge_passes() does them, of runs of one size. */
struct pass_counts {
	uint32_t n_passes; /* merges that a record goes through at most, the final one included */
	uint64_t n_moved_runs; /* runs' worth that are moved before the final one */
	uint64_t n_merges;     /* before the final one */
};

struct pass_counts plan_count_passes(uint64_t n_runs, uint32_t fan_in);

/*
 * The same if none of them leaves more than `most`, of runs of `length`, in any unit: what is
 * merged before the final merge, what comes of that, what the final one has, and how many merges a
 * record goes through at most.
 */
struct pass_volumes {
	uint64_t n_merged, n_stored, n_final, n_passes;
};

struct pass_volumes plan_pass_volumes(uint64_t n_runs, uint32_t fan_in, uint64_t run_length,
				      uint64_t max_length);

/* Runs that will be spilled of so many chunks of an input of known size. */
uint64_t plan_spilled_runs(const struct plan *plan, uint64_t n_chunks);

/* Fill in what is to be expected; the rest of the plan must be there. */
void plan_merge_passes(const struct plan_request *request, struct plan *plan);
