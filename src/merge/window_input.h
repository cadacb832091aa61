/*
 * window_input.h - from runs to the slices of one window after the other
 *
 * Used by one thread.
 */
#pragma once

#include "src/merge/window.h"

struct window_input;

/* Open for a merge of the runs, which must outlive it. Returns 0 or a negative errno (reported). */
int window_input_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      const struct window_plan *plan, struct window_input **ret_windows);
void window_input_close(struct window_input *windows);

/*
 * Set the slices and n_items (which may be 0) of the next window. Resident runs are merged from
 * where they are; what is read goes into window->buffers.in, which must stay untouched until the
 * next call has returned. window->out and the scratch are used during the call. *ret_last: there
 * are no more windows.
 */
int window_input_next(struct window_input *windows, struct window *window, bool *ret_last);

/* Records read from input runs so far, and those dropped among them by -u. */
struct record_totals window_input_totals(const struct window_input *windows);
