/*
 * forecast.c - the order in which a merge needs the blocks of its runs
 *
 * The runs are in a binary heap, sorted by the first key of each run's next block. The heap has k
 * entries and is updated once for each block.
 *
 * Only the first 16 bytes of each block's first key are in memory. If keys are longer and two
 * blocks tie on these bytes, the whole keys decide. They are loaded when they are needed, and kept
 * for the next block of each run only, because a key can be as long as a block.
 */
#include "src/merge/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

struct forecast_entry {
	encoded_key_t key; /* first key of the block, or its first 16 bytes */
	uint64_t block;
	uint32_t run;
};

/* The whole first key of a run's next block, once it has been needed. */
struct full_key {
	void *key;      /* NULL: never needed */
	uint64_t block; /* whose key it is; UINT64_MAX: none */
};

struct forecast {
	struct run *const *runs;
	struct item_loader loader;
	size_t key_nbytes;          /* of a whole key */
	void *splitter;             /* key of the last splitter; key_nbytes */
	void *item;                 /* for loading; NULL if keys are short */
	struct full_key *full_keys; /* n_runs; NULL if keys are short */
	int error;                  /* the first error of a load, or 0 */
	uint32_t n_runs, n_heap;
	struct forecast_entry heap[]; /* heap[0] sorts first */
};

/* Return whether keys are longer than the prefix that is in memory. */
static bool has_long_keys(const struct forecast *forecast)
{
	return forecast->key_nbytes > sizeof(encoded_key_t);
}

static int load_full_key(struct forecast *forecast, const struct forecast_entry *entry,
			 const void **ret_key)
{
	struct full_key *full = &forecast->full_keys[entry->run];
	const struct layout *layout = forecast->loader.layout;
	int r = 0;

	if (!full->key) {
		full->key = malloc(forecast->key_nbytes);
		full->block = UINT64_MAX;
	}
	if (!full->key)
		return fail(-ENOMEM, "no memory for a key of %zu bytes", forecast->key_nbytes);
	if (full->block != entry->block)
		r = forecast->loader.load(forecast->loader.context, forecast->runs[entry->run],
					  entry->block, forecast->item);
	if (r < 0)
		return r;
	if (full->block != entry->block)
		layout_item_key(layout, forecast->item, full->key);
	full->block = entry->block;
	*ret_key = full->key;
	return 0;
}

/* Compare the whole keys of two blocks like memcmp(). After an error, records it and returns 0. */
static int compare_full_keys(struct forecast *forecast, const struct forecast_entry *a,
			     const struct forecast_entry *b)
{
	const void *key_a, *key_b;
	int r = forecast->error;

	if (r == 0)
		r = load_full_key(forecast, a, &key_a);
	if (r == 0)
		r = load_full_key(forecast, b, &key_b);
	forecast->error = r;
	return r < 0 ? 0 : layout_compare_keys(forecast->loader.layout, key_a, key_b);
}

static bool entry_is_before(struct forecast *forecast, const struct forecast_entry *a,
			    const struct forecast_entry *b)
{
	int order = 0;

	if (a->key != b->key)
		return a->key < b->key;
	if (has_long_keys(forecast))
		order = compare_full_keys(forecast, a, b);
	return order ? order < 0 : a->run < b->run;
}

static void sift_down(struct forecast *forecast, uint32_t i)
{
	const struct forecast_entry sifted = forecast->heap[i];
	struct forecast_entry *heap = forecast->heap;

	for (uint32_t child; (child = 2 * i + 1) < forecast->n_heap; i = child) {
		if (child + 1 < forecast->n_heap &&
		    entry_is_before(forecast, &heap[child + 1], &heap[child]))
			child++;
		if (!entry_is_before(forecast, &heap[child], &sifted))
			break;
		heap[i] = heap[child];
	}
	heap[i] = sifted;
}

static int open_keys(struct forecast *forecast, const struct item_loader *loader)
{
	forecast->loader = *loader;
	forecast->key_nbytes = layout_key_nbytes(loader->layout);
	forecast->splitter = malloc(forecast->key_nbytes);
	if (!has_long_keys(forecast))
		return forecast->splitter ? 0 : -ENOMEM;
	forecast->item = malloc(loader->layout->item_nbytes);
	forecast->full_keys = calloc(forecast->n_runs, sizeof *forecast->full_keys);
	return forecast->item && forecast->full_keys && forecast->splitter ? 0 : -ENOMEM;
}

int forecast_open(struct run *const *runs, uint32_t n_runs, const struct item_loader *loader,
		  struct forecast **ret_forecast)
{
	struct forecast *forecast =
		calloc(1, sizeof *forecast + n_runs * sizeof(struct forecast_entry));
	int r = forecast ? 0 : -ENOMEM;

	if (r == 0) {
		forecast->runs = runs;
		forecast->n_runs = n_runs;
		r = open_keys(forecast, loader);
	}
	if (r < 0) {
		forecast_close(forecast);
		return fail(r, "no memory for a merge of %u runs", n_runs);
	}
	for (uint32_t i = 0; i < n_runs; i++)
		if (runs[i]->n_blocks)
			forecast->heap[forecast->n_heap++] =
				(struct forecast_entry){ .key = run_first_key(runs[i], 0),
							 .run = i };
	for (uint32_t i = forecast->n_heap / 2; i-- > 0;)
		sift_down(forecast, i);
	if (forecast->error) {
		r = forecast->error;
		forecast_close(forecast);
		return r;
	}
	*ret_forecast = forecast;
	return 0;
}

void forecast_close(struct forecast *forecast)
{
	if (!forecast)
		return;
	for (uint32_t i = 0; forecast->full_keys && i < forecast->n_runs; i++)
		free(forecast->full_keys[i].key);
	free(forecast->full_keys);
	free(forecast->item);
	free(forecast->splitter);
	free(forecast);
}

/* Replace the block at the top by the next one of its run. */
static void advance_top(struct forecast *forecast)
{
	struct forecast_entry *top = &forecast->heap[0];
	const struct run *run = forecast->runs[top->run];

	if (++top->block < run->n_blocks)
		top->key = run_first_key(run, top->block);
	else
		*top = forecast->heap[--forecast->n_heap];
	if (forecast->n_heap)
		sift_down(forecast, 0);
}

/* Make the first key of the block at the top the splitter. */
static int make_splitter(struct forecast *forecast, struct splitter *ret_splitter)
{
	const struct forecast_entry *top = &forecast->heap[0];
	const void *key = NULL;
	int r = 0;

	if (has_long_keys(forecast))
		r = load_full_key(forecast, top, &key);
	if (r < 0)
		return r;
	if (key)
		memcpy(forecast->splitter, key, forecast->key_nbytes);
	else
		layout_key_from_prefix(forecast->loader.layout, top->key, forecast->splitter);
	*ret_splitter = (struct splitter){ .key = forecast->splitter, .run = top->run };
	return 1;
}

int forecast_next_window(struct forecast *forecast, uint64_t quota_records, uint64_t *n_blocks,
			 struct splitter *ret_splitter)
{
	const struct forecast_entry *top = &forecast->heap[0];
	uint64_t n_records = 0;

	memset(n_blocks, 0, forecast->n_runs * sizeof *n_blocks);
	while (forecast->n_heap && forecast->error == 0) {
		const struct run *run = forecast->runs[top->run];
		const uint64_t n =
			run_block_start(run, top->block + 1) - run_block_start(run, top->block);

		if (n_records && n_records + n > quota_records)
			return make_splitter(forecast, ret_splitter);
		n_records += n;
		n_blocks[top->run]++;
		advance_top(forecast);
	}
	return forecast->error;
}
