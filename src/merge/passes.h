/*
 * passes - fewer and longer runs
 *
 * merge_to_run() makes one spilled run of neighbouring runs; sorted chunks are spilled with it.
 * When more runs are stored than can be merged at once, merge_passes() merges neighbours until the
 * rest can: always the neighbours with the fewest bytes, and first as many as make all later merges
 * full (Knuth, vol. 3, 5.4.9: of k-way merges, the one that is not full belongs at the beginning,
 * where runs are short).
 */
#pragma once

#include "src/run/run_list.h"

/*
 * Merge the n runs from `first` on into one spilled run that takes their place, with windows in
 * memory_nbytes. Records read from inputs and records dropped by -u are added to *ledger.
 * Returns 0, or a negative errno after a message.
 */
int merge_to_run(const struct job *job, struct run_list *list, size_t first, size_t n,
		 uint64_t memory_nbytes, struct record_totals *totals);

/*
 * Until at most plan.fan_in runs are stored. *ret_n_passes: the most of these merges that any
 * record went through, one after the other; 0 if there was none. As above.
 */
int merge_passes(const struct job *job, struct run_list *list, uint64_t memory_nbytes,
		 struct record_totals *totals, uint32_t *ret_n_passes);
