/*
 * phase_progress - how far each phase of a sort is, with one process or several
 *
 * What a process has done of each phase is numbers, which are added up for several: they are in
 * the phase in which the slowest of them is, and of that, too, the others have done all that they
 * had to do. What a person is told is made of the sum as of one process.
 */
#pragma once

#include "src/base/stats.h"

struct phase_progress {
	uint64_t done_nbytes;
	uint64_t total_nbytes; /* when it is over: what it has come to; 0: nothing, or unknown */
	uint64_t total_is_unknown; /* how much there is, of the current one */
	uint64_t elapsed_ns;       /* to its end, or now */
};

/* Nothing but 64-bit numbers: it goes from rank to rank as it is. */
struct progress_counters {
	uint64_t phase; /* the current one; N_PHASES: none has begun */
	struct phase_progress phases[N_PHASES];
};

/* stats: NULL: nothing has begun. Thread-safe. */
void stats_get_progress_counters(struct stats *stats, struct progress_counters *ret_counters);

/* A sum begins as one that has not begun; those who have not begun are not waited for. */
static const struct progress_counters progress_counters_none = { .phase = N_PHASES };
void progress_counters_add(struct progress_counters *sum, const struct progress_counters *addend);

/* Of one, or of a sum. */
void progress_counters_summarize(const struct progress_counters *counters,
				 struct stats_progress *ret_progress);
