/*
 * window - the windows of a merge that are in flight: their memory, and what the device does in it
 *
 * A window's buffers go round:	free -> (fetched, merging) -> queue -> (being written) -> free
 *
 * Its input buffer is needed twice: by its own merge, and by the fetch of the next window, which
 * copies the rest of it. So a window has two holds, its writer's and the fetcher's, and is free
 * when both let go. With three windows in flight or more that never blocks: the fetcher holds one
 * and waits for another, and the writers need nothing but what they hold.
 */
#pragma once

#include <stdatomic.h>

#include "src/merge/sink.h"
#include "src/merge/window_buffer_cache.h"

struct bounded_queue;

struct window_pool {
	/* Given */
	const struct job *job;
	const struct sink *sink;
	uint32_t n_runs;
	bool has_input; /* some runs are not resident: windows have an input buffer */
	struct window_plan plan;

	struct window *windows; /* plan.n_windows */
	struct bounded_queue *free_windows;
	atomic_bool has_failed;
};

/* Whoever has taken it from the pool may write to it, and then whoever it is handed to. */
struct window {
	struct window_pool *pool;
	atomic_int n_refs;
	struct window_buffers buffers; /* in: only if windows are read */
	void *out, *host;              /* where in them the items lie; host may be out itself */

	uint64_t number;      /* 0, 1, ... in the order of the output */
	struct slice *slices; /* n_runs */
	uint64_t n_items;     /* in them */
	uint64_t limit;       /* of the items that it keeps */
	void *boundary_key;   /* key at the end if is_key_boundary; NULL: not requested */
	bool is_key_boundary;

	/* Results, complete after window_finish() */
	struct sort_op_result result; /* of codes that are stored only n and dropped */
	void *first, *last; /* kept, if any is: items, or codes; NULL: codes that are stored */
	encoded_key_t *first_keys; /* of the sink's blocks; NULL if it wants none */
	uint32_t *packed_nbytes;   /* the same; NULL if it does not take them packed */
	struct decode_result decoded;
};

/*
 * With what is given set, and the rest zeroed: make the windows. 0, or a negative errno after a
 * message; window_pool_close() is due in both cases.
 */
int window_pool_open(struct window_pool *pool);

/* When all windows are finished, or the pool has failed. */
void window_pool_close(struct window_pool *pool);

/* Wait for a free window, with two holds. 0, or the error that the pool has failed with. */
int window_pool_acquire(struct window_pool *pool, struct window **ret_window);

/* Whoever waits for a window, or will, gets r. */
void window_pool_fail(struct window_pool *pool, int r);

/* Give one of the holds back; any thread. */
void window_release(struct window *window);

/* Before it is fetched: it will be written at `position`, in items (sink.align_nbytes). */
void window_align(struct window *window, uint64_t position);

/* Queue the merge of the slices. 0, or a negative errno after a message. */
int window_merge(struct window *window);

/* Wait until it is merged, and found.n known. The same. */
int window_wait_merged(struct window *window);

/* Have what the sink takes of it in host memory, and all results. The same. */
int window_finish(struct window *window);
