/*
 * window_input - the slices of one window after the other
 *
 * Takes the blocks that forecast.h says, has those of stored runs read into the window's buffer
 * (run_buffers.h), and cuts all runs at the splitter.
 *
 * Used by one thread.
 */
#pragma once

#include "src/merge/run_buffers.h"

struct window_input;

/* The runs must outlive it. 0 or a negative errno after a message. */
int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *windows, struct window_input **ret_input);
/* NULL is fine. */
void window_input_close(struct window_input *input);

/*
 * The next window: slices[i], i < n_runs, of run i, *ret_n records in all (which may be none).
 * memory->in must stay untouched until the next call has returned. *ret_last: there are no more.
 */
int window_input_next(struct window_input *input, const struct run_buffers_memory *memory,
		      struct slice *slices, uint64_t *ret_n, bool *ret_last);

/* Of all records that were read from input runs, and those dropped among them by -u. */
struct record_totals window_input_totals(const struct window_input *input);
