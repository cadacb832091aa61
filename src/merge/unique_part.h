/*
 * unique_part - what was read of an input run, without its duplicates
 *
 * Runs that gsort makes hold no key twice with -u, but inputs of -m may: their parts of a window's
 * buffer lose the duplicates there.
 */
#pragma once

#include "src/merge/supply.h"

/*
 * Queue that of equal items in the slice the first is kept, and the others are not. edges: of
 * records, room for an item each. *ret_found: n, and what is dropped, after a mark. 0, or a
 * negative errno after a message.
 */
int unique_part(const struct engine *engine, struct lane *lane, const struct slice *slice,
		const struct supply_memory *memory, void *const edges[2],
		struct arranged *ret_found);
