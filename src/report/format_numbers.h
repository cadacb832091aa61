/*
 * format_numbers - what reports have in common: numbers as people read them, and those that matter
 */
#pragma once

#include "io/spill/compression_policy.h"
#include "src/base/stats.h"

static inline double ns_to_seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

/* "1.5 GiB/s", or "-" where nothing was moved. */
void format_rate(uint64_t nbytes, double s, char text[static 40]);

/* "134,217,728" */
void format_count(uint64_t n, char text[static 32]);

/* "0.125 s", "2.3 s", "1:05 min", "3:10:00 h" */
void format_time(double s, char text[static 32]);

/* Has the stage neither worked nor waited? */
bool stage_is_idle(const struct stage_totals *totals);

/* The stage that ran for longer than any other; N_STAGES if none ran. */
enum stage phase_longest_stage(const struct phase_totals *phase);

/* It, if it ran for half of the phase at least, and so has held the others up; else N_STAGES. */
enum stage phase_bottleneck(const struct phase_totals *phase);

/* What was stored, in percent of what it was before. */
double spill_ratio_percent(const struct compression_totals *spilled);

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
