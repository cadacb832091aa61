/*
 * forecast - in which order the blocks of k sorted runs will be needed (see forecast.h)
 *
 * A binary heap of runs by the first key of each one's next block. It is small (k entries) and
 * touched once a block.
 */
#include "src/merge/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

struct entry {
	code_t key; /* first key of the block, or its first 16 bytes */
	uint64_t block;
	uint32_t run;
};

/* The whole key of a run's next block, when it has been needed. */
struct whole_key {
	void *key;      /* NULL: never needed */
	uint64_t block; /* that it is of; UINT64_MAX: of none */
};

struct forecast {
	struct run *const *runs;
	struct item_loader loader;
	size_t key_nbytes;        /* of a whole key */
	void *splitter;           /* key_nbytes: of the last window */
	void *item;               /* one, just loaded; NULL if keys are short */
	struct whole_key *wholes; /* n_runs; the same */
	int error;                /* the first, of a load */
	uint32_t n_runs, n_heap;
	struct entry heap[]; /* heap[0] sorts first */
};

/* Do the keys of blocks say all? */
static bool keys_are_long(const struct forecast *forecast)
{
	return forecast->key_nbytes > sizeof(code_t);
}

static int load_whole(struct forecast *forecast, const struct entry *entry, const void **ret_key)
{
	struct whole_key *whole = &forecast->wholes[entry->run];
	const struct layout *layout = forecast->loader.layout;
	int r = 0;

	if (!whole->key) {
		whole->key = malloc(forecast->key_nbytes);
		whole->block = UINT64_MAX;
	}
	if (!whole->key)
		return fail(-ENOMEM, "no memory for a key of %zu bytes", forecast->key_nbytes);
	if (whole->block != entry->block)
		r = forecast->loader.load(forecast->loader.context, forecast->runs[entry->run],
					  entry->block, forecast->item);
	if (r < 0)
		return r;
	if (whole->block != entry->block)
		layout_item_key(layout, forecast->item, whole->key);
	whole->block = entry->block;
	*ret_key = whole->key;
	return 0;
}

/* Of two blocks that tie on what is in memory: as memcmp. 0 after an error, which is noted. */
static int compare_wholes(struct forecast *forecast, const struct entry *a, const struct entry *b)
{
	const void *key_a, *key_b;
	int r = forecast->error;

	if (r == 0)
		r = load_whole(forecast, a, &key_a);
	if (r == 0)
		r = load_whole(forecast, b, &key_b);
	forecast->error = r;
	return r < 0 ? 0 : layout_compare_keys(forecast->loader.layout, key_a, key_b);
}

static bool before(struct forecast *forecast, const struct entry *a, const struct entry *b)
{
	int order = 0;

	if (a->key != b->key)
		return a->key < b->key;
	if (keys_are_long(forecast))
		order = compare_wholes(forecast, a, b);
	return order ? order < 0 : a->run < b->run;
}

static void sift_down(struct forecast *forecast, uint32_t i)
{
	const struct entry moved = forecast->heap[i];
	struct entry *heap = forecast->heap;

	for (uint32_t child; (child = 2 * i + 1) < forecast->n_heap; i = child) {
		if (child + 1 < forecast->n_heap &&
		    before(forecast, &heap[child + 1], &heap[child]))
			child++;
		if (!before(forecast, &heap[child], &moved))
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static int open_keys(struct forecast *forecast, const struct item_loader *loader)
{
	forecast->loader = *loader;
	forecast->key_nbytes = layout_key_nbytes(loader->layout);
	forecast->splitter = malloc(forecast->key_nbytes);
	if (!keys_are_long(forecast))
		return forecast->splitter ? 0 : -ENOMEM;
	forecast->item = malloc(loader->layout->item_nbytes);
	forecast->wholes = calloc(forecast->n_runs, sizeof *forecast->wholes);
	return forecast->item && forecast->wholes && forecast->splitter ? 0 : -ENOMEM;
}

static struct entry first_entry(const struct run *run, uint32_t number)
{
	return (struct entry){ .key = run_first_key(run, 0), .run = number };
}

int forecast_open(struct run *const *runs, uint32_t n_runs, const struct item_loader *loader,
		  struct forecast **ret_forecast)
{
	struct forecast *forecast = calloc(1, sizeof *forecast + n_runs * sizeof(struct entry));
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
		if (run_n_blocks(runs[i]))
			forecast->heap[forecast->n_heap++] = first_entry(runs[i], i);
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
	for (uint32_t i = 0; forecast->wholes && i < forecast->n_runs; i++)
		free(forecast->wholes[i].key);
	free(forecast->wholes);
	free(forecast->item);
	free(forecast->splitter);
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

/* The first key of the block at the top. */
static int make_splitter(struct forecast *forecast, struct splitter *ret_splitter)
{
	const struct entry *top = &forecast->heap[0];
	const void *key = NULL;
	int r = 0;

	if (keys_are_long(forecast))
		r = load_whole(forecast, top, &key);
	if (r < 0)
		return r;
	if (key)
		memcpy(forecast->splitter, key, forecast->key_nbytes);
	else
		layout_begin_key(forecast->loader.layout, top->key, forecast->splitter);
	*ret_splitter = (struct splitter){ .key = forecast->splitter, .run = top->run };
	return 1;
}

int forecast_take(struct forecast *forecast, uint64_t quota_records, uint64_t *n_taken,
		  struct splitter *ret_splitter)
{
	const struct entry *top = &forecast->heap[0];
	uint64_t n_records = 0;

	memset(n_taken, 0, forecast->n_runs * sizeof *n_taken);
	while (forecast->n_heap && forecast->error == 0) {
		const struct run *run = forecast->runs[top->run];
		const uint64_t n =
			run_block_start(run, top->block + 1) - run_block_start(run, top->block);

		if (n_records && n_records + n > quota_records)
			return make_splitter(forecast, ret_splitter);
		n_records += n;
		n_taken[top->run]++;
		advance_top(forecast);
	}
	return forecast->error;
}
