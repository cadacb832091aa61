/*
 * checkpoint_hooks - who wants runs to outlive the process
 *
 * Merging need not know why: it asks what an earlier process has written already, and says when a
 * stored run is complete. Whoever keeps runs (src/checkpoint/) plugs this in; without one, runs go
 * with the process.
 */
#pragma once

#include "src/merge/sink.h"
#include "src/run/run_list.h"

struct checkpoint_hooks {
	void *context; /* of all functions */
	/*
	 * The *ret_n ranges that an earlier process has merged the output in, with what it has
	 * written of each: every merge of runs must leave that out, as it may be gone from them.
	 * NULL: nothing is written.
	 */
	const struct partition_desc *(*get_partitions)(void *context, uint32_t *ret_n);
	/*
	 * There are n_items in the runs where such a range had n_noted, the first of them number
	 * `position` of the output: says why that cannot be gone on with. Returns a negative errno.
	 */
	int (*report_mismatch)(void *context, uint64_t position, uint64_t n_recorded,
			       uint64_t n_items);
	/*
	 * The stored run is complete and about to take the place of the n runs from `first` on.
	 * Takes those of them that are stored out of the store, leaving NULL: they are removed when
	 * they are not needed any more. 0, or a negative errno after a message.
	 */
	int (*on_run_stored)(void *context, struct run_list *list, size_t first, size_t n,
			     const struct run *run);
};
