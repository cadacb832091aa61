/*
 * run_list - the runs that are not merged yet, in the order of ties (see run_list.h)
 */
#include "src/run/run_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"

int run_store_add(struct run_store *store, struct run *run)
{
	if (store->n == store->n_allocated) {
		const size_t n = store->n_allocated ? 2 * store->n_allocated : 64;
		struct run **runs = realloc(store->runs, n * sizeof *runs);

		if (!runs) {
			run_close(run);
			return fail(-ENOMEM, "no memory for a list of %zu runs", n);
		}
		store->runs = runs;
		store->n_allocated = n;
	}
	store->runs[store->n++] = run;
	return 0;
}

void run_store_replace(struct run_store *store, size_t first, size_t n, struct run *run)
{
	struct run **from = store->runs + first;
	const size_t n_new = run ? 1 : 0;

	for (size_t i = 0; i < n; i++)
		run_close(from[i]);
	memmove(from + n_new, from + n, (store->n - first - n) * sizeof *from);
	if (run)
		*from = run;
	store->n -= n - n_new;
}

size_t run_store_n_stored(const struct run_store *store)
{
	return store->n - runs_n_resident(store->runs, store->n);
}

int run_store_check_room(const struct run_store *store, const struct plan *plan)
{
	uint64_t n_blocks = 0;
	char memory[32];

	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		return 0;
	for (size_t i = 0; i < store->n; i++)
		if (!run_is_resident(store->runs[i]))
			n_blocks += run_n_blocks(store->runs[i]);
	if (n_blocks <= plan->most_stored_blocks)
		return 0;
	size_format(plan->memory_nbytes, memory);
	return fail_hint(
		-E2BIG, HINT_TWICE_THE_MEMORY, 0,
		"%s of memory are too little for so long a pipe: %" PRIu64
		" blocks of runs are stored, and what is known of each has no room any more",
		memory, n_blocks);
}

void run_store_free(struct run_store *store)
{
	for (size_t i = 0; i < store->n; i++)
		run_close(store->runs[i]);
	free(store->runs);
	*store = (struct run_store){ 0 };
}
