/*
 * window.h - the windows of a merge that are in flight (see window.c)
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/merge/sink.h"
#include "src/run/run.h"

struct bounded_queue;

/* --- Buffers --- */

struct window_buffers {
	void *in, *out, *scratch, *host; /* NULL if there is none */
	struct device_queue *queue;
	struct device_event *event;
};

/* The buffers and queues of windows, kept from one merge to the next. */
struct window_buffer_cache;

/* Open an empty cache. Returns 0 or -ENOMEM (reported). */
int window_buffer_cache_open(struct window_buffer_cache **ret_cache);
void window_buffer_cache_close(struct window_buffer_cache *cache);

/* Free all buffers of all devices of the job, after waiting for their queues. */
void window_buffer_cache_clear_all(const struct job *job);

/* --- Windows --- */

struct window_pool {
	/* Set by the caller */
	const struct job *job;
	const struct sink *sink;
	uint32_t n_runs;
	bool has_input;   /* some runs are copied to buffers of the windows */
	bool has_buckets; /* the runs are not sorted but have buckets; a window is a bucket */
	struct window_plan plan;

	struct window *windows; /* plan.n_windows */
	struct bounded_queue *free_windows;
	atomic_bool has_failed;
};

/* Used by the thread that acquired it, then by the writer that gets it. */
struct window {
	struct window_pool *pool;
	atomic_int n_refs; /* references of the writer and the next fetch */
	struct window_buffers buffers;
	void *out, *host; /* where the items begin in these buffers; host may be equal to `out` */

	uint64_t number;      /* 0, 1, ... in output order */
	struct slice *slices; /* n_runs: the input */
	uint64_t n_items;     /* items of all slices */
	uint64_t limit;       /* maximum items that the window keeps */

	/* Results, complete after window_finish() */
	struct sort_op_result result; /* key-only elements for a stored run: only n and dropped */
	void *first, *last; /* items, or encoded keys, if n > 0; NULL: elements for a stored run */
	encoded_key_t *first_keys; /* of the sink's blocks; NULL: not wanted */
	uint32_t *packed_nbytes;   /* of the sink's blocks; NULL: not packed */
	struct decode_result decoded;
};

/*
 * Make the windows of a pool whose first members are set and whose others are zeroed. Returns 0 or
 * a negative errno (reported). Call window_pool_close() in both cases.
 */
int window_pool_open(struct window_pool *pool);
/* Call it when all windows are finished, or the pool has failed. */
void window_pool_close(struct window_pool *pool);

/* Wait for a free window, with two references. Returns 0 or the error of window_pool_fail(). */
int window_pool_acquire(struct window_pool *pool, struct window **ret_window);

/* Make all present and future calls of window_pool_acquire() return r. */
void window_pool_fail(struct window_pool *pool, int r);

/* Drop one of the references. Any thread. */
void window_release(struct window *window);

/* Align the window for its position in the merge, in items, before its input is fetched. */
void window_align(struct window *window, uint64_t position);

/* Queue the merge of the slices. Returns 0 or a negative errno (reported). */
int window_merge(struct window *window);

/* Wait for the merge: result.n is known then. Returns 0 or a negative errno (reported). */
int window_wait_merged(struct window *window);

/* Wait until the items are in host memory. Returns 0 or a negative errno (reported). */
int window_finish(struct window *window);

/* --- The order of windows in the output --- */

struct window_order {
	const struct job *job;
	struct run *const *runs; /* n_runs */
	uint32_t n_runs;
	bool discards_runs; /* free the memory of runs as soon as it is merged */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t turn_changed;
	uint64_t turn; /* number of the window whose turn it is */
	int error;
	struct merge_edges edges;   /* first and last key of the windows so far */
	struct merge_result result; /* totals of the windows so far */
};

/*
 * Open an order whose members above the lock are set. Returns 0 or -ENOMEM (reported). Call
 * window_order_close() in both cases.
 */
int window_order_open(struct window_order *order);
void window_order_close(struct window_order *order);

/*
 * Wait for the turn of a finished window. Then set its position in the merge, in items, check its
 * first item against the window before it, add its results, and discard its slices if discards_runs
 * is set. Any thread. Returns 0 or the error of window_order_fail().
 */
int window_order_assign(struct window_order *order, const struct window *window,
			uint64_t *ret_position);

/* Record an error, unless there is one already, and wake all threads that wait. */
void window_order_fail(struct window_order *order, int r);

/*
 * --- The slices of windows (window_input.c) ---
 *
 * Used by one thread.
 */

struct window_input;

/* Open for a merge of the runs, which must outlive it. Returns 0 or a negative errno (reported). */
int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *plan, struct window_input **ret_input);
void window_input_close(struct window_input *input);

/*
 * Set the slices and n_items (which may be 0) of the next window. Slices of resident runs are in
 * the runs themselves. Items that are read are in window->buffers.in, which must not change until
 * the next call has returned. The call uses window->out and the scratch. *ret_last: there are no
 * more windows. Returns 0 or a negative errno (reported).
 */
int window_input_next(struct window_input *input, struct window *window, bool *ret_last);

/* Return the totals of the records read from input runs so far, and of those dropped by -u. */
struct record_totals window_input_totals(const struct window_input *input);

/*
 * --- the order in which a merge needs the blocks of its runs (forecast.c) ---
 *
 * merge.c explains forecasting, windows and splitters.
 */

struct forecast;

/* A point of the merged order: before items with this key in runs from number `run` on. */
struct splitter {
	const void *key; /* layout_key_nbytes(); valid until the next window */
	uint32_t run;
};

/* Loads items whose keys are longer than the part that is in memory. */
struct item_loader {
	const struct layout *layout;
	/* Load the first item of a block of a run. Returns 0 or a negative errno (reported). */
	int (*load)(void *context, struct run *run, uint64_t block, void *item);
	void *context;
};

/*
 * Open a forecast of runs, which must outlive it and whose first keys must be known. The loader is
 * copied. Returns 0 or a negative errno (reported).
 */
int forecast_open(struct run *const *runs, uint32_t n_runs, const struct item_loader *loader,
		  struct forecast **ret_forecast);
void forecast_close(struct forecast *forecast);

/*
 * Take the blocks of the next window: at least one, and then as many as have no more than
 * quota_records items together. n_blocks[i] is set to the number of blocks taken of run i. Returns
 * 1, 0 if the window reaches the end of all runs, so that there is no splitter, or a negative errno
 * (reported).
 */
int forecast_next_window(struct forecast *forecast, uint64_t quota_records, uint64_t *n_blocks,
			 struct splitter *ret_splitter);
