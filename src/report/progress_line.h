/*
 * progress_line - how far a sort is, as a line for a person
 */
#pragma once

#include <stdint.h>

/* Bytes and times of the phase, and of all phases together; totals: 0 where they are not known. */
struct progress_state {
	const char *phase; /* "run generation"; NULL or "": none has begun */
	uint64_t done_nbytes, total_nbytes, elapsed_ns;
	uint64_t overall_done_nbytes, overall_total_nbytes, overall_elapsed_ns;
};

/*
 * The line, without its end: "run generation: 43 %, 1.2 GiB/s, 0:12 left; total 20 %, 0:40 left".
 * The whole is left out where there is only one phase, or one is of unknown size. Empty if no phase
 * has begun.
 */
enum { PROGRESS_LINE_NBYTES = 128 };
void progress_line(const struct progress_state *state, char line[static PROGRESS_LINE_NBYTES]);
