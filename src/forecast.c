/*
 * forecast - in which order the blocks of k sorted runs will be needed (see forecast.h)
 *
 * A binary heap of runs by the first key of each one's next block. It is small (k entries) and
 * touched once a block.
 */
#include "src/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/status.h"

struct entry {
	code_t key; /* first key of the block */
	uint64_t block;
	uint32_t run;
};

struct forecast {
	struct run *const *runs;
	uint32_t n_runs, n_heap;
	struct entry heap[]; /* heap[0] sorts first */
};

static bool before(const struct entry *a, const struct entry *b)
{
	return a->key != b->key ? a->key < b->key : a->run < b->run;
}

static void sift_down(struct forecast *forecast, uint32_t i)
{
	const struct entry moved = forecast->heap[i];
	struct entry *heap = forecast->heap;

	for (uint32_t child; (child = 2 * i + 1) < forecast->n_heap; i = child) {
		if (child + 1 < forecast->n_heap && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &moved))
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

int forecast_open(struct run *const *runs, uint32_t n_runs, struct forecast **ret_forecast)
{
	struct forecast *forecast = malloc(sizeof *forecast + n_runs * sizeof forecast->heap[0]);

	if (!forecast)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	forecast->runs = runs;
	forecast->n_runs = n_runs;
	forecast->n_heap = 0;
	for (uint32_t i = 0; i < n_runs; i++)
		if (run_n_blocks(runs[i]))
			forecast->heap[forecast->n_heap++] =
				(struct entry){ .key = run_first_key(runs[i], 0), .run = i };
	for (uint32_t i = forecast->n_heap / 2; i-- > 0;)
		sift_down(forecast, i);
	*ret_forecast = forecast;
	return 0;
}

void forecast_close(struct forecast *forecast)
{
	free(forecast);
}

/* The run's next block takes the place of the one at the top. */
static void advance_top(struct forecast *forecast)
{
	struct entry *top = &forecast->heap[0];
	const struct run *run = forecast->runs[top->run];

	if (++top->block < run_n_blocks(run))
		top->key = run_first_key(run, top->block);
	else
		*top = forecast->heap[--forecast->n_heap];
	if (forecast->n_heap)
		sift_down(forecast, 0);
}

bool forecast_take(struct forecast *forecast, uint64_t quota_records, uint64_t *n_taken,
		   struct splitter *ret_splitter)
{
	const struct entry *top = &forecast->heap[0];
	uint64_t n_records = 0;

	memset(n_taken, 0, forecast->n_runs * sizeof *n_taken);
	while (forecast->n_heap) {
		const struct run *run = forecast->runs[top->run];
		const uint64_t n =
			run_block_start(run, top->block + 1) - run_block_start(run, top->block);

		if (n_records && n_records + n > quota_records) {
			*ret_splitter = (struct splitter){ .key = top->key, .run = top->run };
			return true;
		}
		n_records += n;
		n_taken[top->run]++;
		advance_top(forecast);
	}
	return false;
}
