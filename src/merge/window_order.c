/*
 * window_order - where each window begins in the output (see window_order.h)
 */
#include "src/merge/window_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/run/run.h"

int placement_open(struct placement *placement)
{
	const size_t edge_nbytes = layout_edge_nbytes(placement->job->layout);
	const struct restore_point *start = placement->sink->restore_point;

	pthread_mutex_init(&placement->lock, NULL);
	pthread_cond_init(&placement->turn_changed, NULL);
	placement->last = calloc(1, edge_nbytes);
	if (!placement->last)
		return fail(-ENOMEM, "no memory for a merge");
	if (!start)
		return 0;
	placement->result = start->result;
	placement->has_last = start->last;
	if (start->last)
		memcpy(placement->last, start->last, edge_nbytes);
	return 0;
}

void placement_close(struct placement *placement)
{
	free(placement->last);
	pthread_cond_destroy(&placement->turn_changed);
	pthread_mutex_destroy(&placement->lock);
}

static bool edge_is_disorder(const struct placement *placement, const struct window *window)
{
	int order;

	if (!placement->has_last)
		return false;
	order = layout_compare_edges(placement->job->layout, placement->last, window->first);
	return order > 0 || (order == 0 && placement->job->unique);
}

/* Under the lock */
static void record_edges(struct placement *placement, const struct window *window)
{
	const size_t edge_nbytes = layout_edge_nbytes(placement->job->layout);
	struct merge_edges *edges = placement->sink->edges;

	memcpy(placement->last, window->last, edge_nbytes);
	placement->has_last = true;
	if (!edges)
		return;
	if (!edges->has_items)
		memcpy(edges->first, window->first, edge_nbytes);
	memcpy(edges->last, window->last, edge_nbytes);
	edges->has_items = true;
}

/* Under the lock */
static void add_window_result(struct placement *placement, const struct window *window)
{
	struct merge_result *result = &placement->result;
	const struct sort_op_result *window_result = &window->result;

	result->n_items += window_result->n;
	result->n_windows++;
	digest_add(&result->totals.dropped, window_result->dropped);
	if (window_result->n == 0 || !window->last)
		return;
	result->n_disorders += edge_is_disorder(placement, window) + window_result->n_disorders;
	result->n_counted += window_result->n_counted;
	digest_add(&result->totals.written, window_result->digest);
	record_edges(placement, window);
}

/*
 * Under the lock: tell the sink that the merge can be taken up behind the window. Behind the limit
 * there is nothing to take up.
 */
static int save_window_point(struct placement *placement, const struct window *window)
{
	const struct merge_edges *edges = placement->sink->edges;
	const struct restore_point restore_point = {
		.key = window->boundary_key,
		.first = edges ? edges->first : NULL,
		.last = placement->last,
		.result = placement->result,
	};

	if (!window->is_key_boundary || placement->result.n_items == placement->job->limit)
		return 0;
	return placement->sink->save_restore_point(placement->sink->context, 0, &restore_point);
}

/* Under the lock */
static void discard_slices(struct placement *placement, const struct window *window)
{
	for (uint32_t i = 0; i < placement->n_runs; i++)
		run_discard_slice(placement->runs[i], &window->slices[i]);
}

int placement_assign(struct placement *placement, const struct window *window,
		     uint64_t *ret_position)
{
	int r;

	pthread_mutex_lock(&placement->lock);
	while (placement->turn != window->number && !placement->error)
		pthread_cond_wait(&placement->turn_changed, &placement->lock);
	r = placement->error;
	if (r == 0) {
		*ret_position = placement->result.n_items;
		add_window_result(placement, window);
		discard_slices(placement, window);
		r = save_window_point(placement, window);
		placement->turn++;
		pthread_cond_broadcast(&placement->turn_changed);
	}
	pthread_mutex_unlock(&placement->lock);
	return r;
}

void placement_fail(struct placement *placement, int r)
{
	pthread_mutex_lock(&placement->lock);
	if (!placement->error)
		placement->error = r;
	pthread_cond_broadcast(&placement->turn_changed);
	pthread_mutex_unlock(&placement->lock);
}
