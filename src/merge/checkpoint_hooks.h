/*
 * checkpoint_hooks - keeps stored runs for another process
 *
 * A merge says when a stored run is complete. A checkpoint (src/checkpoint/) implements the hook;
 * without one, runs go with the process.
 */
#pragma once

#include "src/run/run_list.h"

struct checkpoint_hooks {
	void *context;
	/*
	 * The stored run is complete and about to take the place of the n runs from `first` on.
	 * Takes those of them that are stored out of the store, leaving NULL: they are removed when
	 * they are not needed any more. 0, or a negative errno after a message.
	 */
	int (*on_run_stored)(void *context, struct run_list *list, size_t first, size_t n,
			     const struct run *run);
};
