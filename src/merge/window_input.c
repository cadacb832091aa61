/*
 * window_input - the slices of one window after the other (see window_input.h)
 *
 * The exact cut. The splitter (key, run) is the first element of a block that was not taken. A
 * run's elements below key come before it; equal ones do if their run is earlier (its upper bound
 * of key), and not if it is later (its lower bound); of the splitter's own run exactly the taken
 * blocks do. In each case less than one block is left over: a later run has taken no block that
 * starts at key.
 *
 * With -u equal elements of different runs must meet in one window: then all runs, the splitter's
 * too, are cut at their lower bound. Less than a block is left over only because runs hold no key
 * twice. Input runs (-m) may; what is read of them is made unique (run_buffers.c). (If a run's next
 * block starts with the key of its last element, the splitter is not above that key, so the element
 * is still in the rest: duplicates always meet in the buffer.)
 */
#include "src/merge/window_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

struct window_input {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	struct run_buffers *buffers;
	struct forecast *forecast;
	uint64_t quota_records;
	uint64_t number;    /* of the window */
	uint64_t *n_blocks; /* n_runs: taken for the window */
	uint64_t *cuts;     /* n_runs */
};

static int open_forecast(struct window_input *input)
{
	const struct layout *layout = input->job->layout;
	const struct item_loader loader = {
		.layout = layout,
		.load = run_buffers_load_item,
		.context = input->buffers,
	};

	return forecast_open(input->runs, input->n_runs, &loader, &input->forecast);
}

static int window_input_start(struct window_input *input, const struct window_plan *windows)
{
	const size_t n = input->n_runs;
	int r;

	input->n_blocks = calloc(n, sizeof *input->n_blocks);
	input->cuts = calloc(n, sizeof *input->cuts);
	if (!input->n_blocks || !input->cuts)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = run_buffers_open(input->job, input->runs, input->n_runs, windows, &input->buffers);
	return r < 0 ? r : open_forecast(input);
}

int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *windows, struct window_input **ret_input)
{
	struct window_input *input = calloc(1, sizeof *input);
	int r;

	if (!input)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	input->job = job;
	input->runs = runs;
	input->n_runs = n_runs;
	input->quota_records = windows->quota_records;
	r = window_input_start(input, windows);
	if (r < 0) {
		window_input_close(input);
		return r;
	}
	*ret_input = input;
	return 0;
}

void window_input_close(struct window_input *input)
{
	if (!input)
		return;
	run_buffers_close(input->buffers);
	forecast_close(input->forecast);
	free(input->n_blocks);
	free(input->cuts);
	free(input);
}

static int cut_window(struct window_input *input, const struct splitter *splitter)
{
	const bool unique = input->job->unique;
	struct span span = stats_begin(STAGE_CUT, input->number);
	int r = run_buffers_cut(input->buffers, splitter, unique ? 0 : splitter->run, input->cuts);

	/* After a failure the queue may still be writing cuts. */
	if (r == 0 && !unique)
		input->cuts[splitter->run] = run_buffers_n_available(input->buffers, splitter->run);
	stats_end_wait(input->job->stats, span);
	return r;
}

int window_input_next(struct window_input *input, const struct run_buffers_memory *memory,
		      struct slice *slices, uint64_t *ret_n, bool *ret_last)
{
	struct splitter splitter;
	const int has_more = forecast_next_window(input->forecast, input->quota_records,
						  input->n_blocks, &splitter);
	int r = has_more < 0 ?
			has_more :
			run_buffers_fill(input->buffers, memory, input->n_blocks, input->number);

	if (r < 0)
		return r;
	if (has_more)
		r = cut_window(input, &splitter);
	if (r < 0)
		return r;
	*ret_n = run_buffers_take(input->buffers, has_more ? input->cuts : NULL, slices);
	*ret_last = !has_more;
	input->number++;
	return 0;
}

struct record_totals window_input_totals(const struct window_input *input)
{
	return run_buffers_totals(input->buffers);
}
