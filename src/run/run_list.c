/*
 * run_list.c - the runs that are not merged yet, in the order of ties
 */
#include "src/run/run_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"

int run_list_add(struct run_list *list, struct run *run)
{
	if (list->n == list->n_allocated) {
		const size_t n = list->n_allocated ? 2 * list->n_allocated : 64;
		struct run **runs = realloc(list->runs, n * sizeof *runs);

		if (!runs) {
			run_close(run);
			return fail(-ENOMEM, "no memory for a list of %zu runs", n);
		}
		list->runs = runs;
		list->n_allocated = n;
	}
	list->runs[list->n++] = run;
	return 0;
}

void run_list_replace(struct run_list *list, size_t first, size_t n, struct run *run)
{
	struct run **slot = list->runs + first;
	const size_t n_new = run ? 1 : 0;

	for (size_t i = 0; i < n; i++)
		run_close(slot[i]);
	memmove(slot + n_new, slot + n, (list->n - first - n) * sizeof *slot);
	if (run)
		*slot = run;
	list->n -= n - n_new;
}

size_t run_list_n_stored(const struct run_list *list)
{
	return list->n - runs_n_resident(list->runs, list->n);
}

int run_list_check_index_space(const struct run_list *list, const struct plan *plan)
{
	uint64_t n_blocks = 0;
	char memory_text[32];

	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (!run_is_resident(list->runs[i]))
			n_blocks += run_n_blocks(list->runs[i]);
	if (n_blocks <= plan->max_stored_blocks)
		return 0;
	size_format(plan->memory_nbytes, memory_text);
	return fail(
		-E2BIG,
		"%s of memory are too little for so long a pipe: %" PRIu64
		" blocks of runs are stored, and what is known of each has no room any more; use "
		"an -S that is twice as large, or a file",
		memory_text, n_blocks);
}

void run_list_free(struct run_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		run_close(list->runs[i]);
	free(list->runs);
	*list = (struct run_list){ 0 };
}
