/*
 * stats.h - bytes and times of each stage and phase, and which stage is the bottleneck
 *
 * A stage reports each piece of work as a span: begin, end, bytes. Spans are added up per phase and
 * stage, and become events of the timeline if there is one:
 *
 *	struct span span = stats_begin(STAGE_READ, chunk);
 *	r = file_read(...);
 *	stats_end(stats, span, nbytes);
 *
 * Time spent waiting for a slot, for memory or for another stage is a span too, ended with
 * stats_end_wait(). A span is about a slot in size (hundreds of KiB and more), so that its lock
 * costs nothing measurable; do not report single records.
 *
 * Each stage has two times. `busy` is the sum of its spans over all threads. `active` is the time
 * in which at least one of its spans ran. A stage that is active for nearly all of a phase is the
 * bottleneck: it ran without a pause, while the others had time to wait.
 *
 * All functions that take `stats` ignore NULL unless stated: tests and tools need none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/trace.h"

struct stats;

/* A piece of work that has begun. */
struct span {
	enum stage stage;
	uint32_t queue;    /* of a device with its own memory, from 1; 0: the calling thread */
	uint32_t device;   /* from 1 if there are several; 0: the only one */
	uint64_t item;     /* number of the chunk, block or window, for the trace */
	uint64_t begin_ns; /* clock_now_ns() */
};

/* The sum of the spans of a stage. */
struct stage_totals {
	uint64_t n_spans, nbytes;
	uint64_t busy_ns, blocked_ns, active_ns;
};

/* Bytes that stages do not count. */
struct stats_volumes {
	uint64_t temporary_written_nbytes,
		temporary_read_nbytes;         /* of files only, not of spilled runs in memory */
	uint64_t sent_nbytes, received_nbytes; /* messages between ranks */
	uint64_t temporary_used_nbytes;        /* temporary space in use now; not of a phase */
};

struct phase_totals {
	bool has_begun;
	uint64_t elapsed_ns;          /* to the end of the phase, or to now */
	struct stats_volumes volumes; /* up to its end */
	struct stage_totals stages[N_STAGES];
};

/* Of the process, from its start to stats_finish() or now. */
struct stats_usage {
	uint64_t user_ns, system_ns;
	uint64_t peak_rss_nbytes;
};

/* The work of one of several devices. */
struct device_totals {
	uint64_t n_chunks, sorted_nbytes;     /* in input bytes */
	uint64_t n_partitions, merged_nbytes; /* in bytes of memory; includes merges to runs */
	uint64_t peer_read_nbytes,
		staged_read_nbytes; /* of other devices' memory: directly; via the host */
	/* The sum of all operations, and the time in which at least one was running. */
	uint64_t busy_ns, active_ns;
};

enum { STATS_MAX_DEVICES = 64 };

struct stats_totals {
	uint64_t elapsed_ns; /* since stats_open(), to stats_finish() or now */
	struct stats_usage usage;
	struct phase_totals phases[N_PHASES];
	struct device_totals devices[STATS_MAX_DEVICES]; /* span.device - 1 is the index */
};

/* The progress of the current phase. */
struct stats_progress {
	enum phase phase;
	uint64_t done_nbytes, total_nbytes; /* total: 0 if unknown */
	uint64_t elapsed_ns;                /* since the phase began */
	bool started;                       /* a phase has begun */
	/* Of all phases together; total: 0 if that of any phase is unknown. */
	uint64_t overall_done_nbytes, overall_total_nbytes;
	uint64_t overall_elapsed_ns; /* since the first phase began */
};

/*
 * Open statistics. Spans are added to the trace and to the time series as well, which may be NULL
 * and must outlive the statistics. Returns 0, or -ENOMEM after a message.
 */
int stats_open(struct trace *trace, struct time_series *series, struct stats **ret_stats);
void stats_close(struct stats *stats);

/*
 * Begin a phase, which ends the previous one; each phase at most once. total_nbytes: what its
 * measuring stage will have moved at the end; 0 if unknown.
 */
void stats_begin_phase(struct stats *stats, enum phase phase, uint64_t total_nbytes);

/* Mark the current phase as complete, even if it moved less than expected. */
void stats_complete_phase(struct stats *stats);

/*
 * Announce a later phase and what its measuring stage will move; 0: the phase is not expected.
 * stats_begin_phase() replaces this value.
 */
void stats_set_phase_total(struct stats *stats, enum phase phase, uint64_t total_nbytes);

static inline struct span stats_begin(enum stage stage, uint64_t item)
{
	return (struct span){ .stage = stage, .item = item, .begin_ns = clock_now_ns() };
}

/* End a span that moved nbytes. Thread-safe. */
void stats_end(struct stats *stats, struct span span, uint64_t nbytes);

/* Like stats_end(), at a given time: for work of a device that is reported later. Thread-safe. */
void stats_end_at(struct stats *stats, struct span span, uint64_t end_ns, uint64_t nbytes);

/*
 * Count bytes that the stage need not move: dropped records (-u, --limit) are progress, too. Has an
 * effect only if the stage measures the current phase. Thread-safe.
 */
void stats_skip(struct stats *stats, enum stage stage, uint64_t nbytes);

/* End a span in which the stage only waited for others. Thread-safe. */
void stats_end_wait(struct stats *stats, struct span span);

/*
 * Set the function that fills in the volumes so far; NULL: they no longer change. It is called when
 * a phase begins, at the end, and with a timeline also now and then by any thread that reports a
 * span, with the lock held. Volumes before the first phase count for that phase.
 */
typedef void stats_volume_source(void *context, struct stats_volumes *ret_volumes);
void stats_set_volume_source(struct stats *stats, stats_volume_source *source, void *context);

/* Report that a partition of the output was merged, from begin_ns until now. */
void stats_add_partition(struct stats *stats, uint64_t number, uint64_t begin_ns, uint64_t nbytes);

/*
 * Add work of a device, given by its number from 1 (0 is ignored). The times in `totals` are
 * ignored.
 */
void stats_add_device(struct stats *stats, uint32_t device, const struct device_totals *totals);

/* Thread-safe. */
void stats_get_progress(struct stats *stats, struct stats_progress *ret_progress);

/*
 * End the statistics: what follows, such as measuring peak rates, counts neither as time nor as
 * memory. Later calls have no effect.
 */
void stats_finish(struct stats *stats);

struct phase_progress {
	uint64_t done_nbytes;
	uint64_t total_nbytes;     /* when it is over: what it moved; 0: nothing, or unknown */
	uint64_t total_is_unknown; /* 1: the current phase has no known total */
	uint64_t elapsed_ns;       /* to its end, or to now */
};

/*
 * The progress of one process, or summed over the ranks of a distributed sort. A sum is in the
 * earliest phase that any rank is in. All members are 64-bit numbers, because ranks exchange the
 * struct as it is.
 */
struct progress_counters {
	uint64_t phase; /* the current one; N_PHASES: none has begun */
	struct phase_progress phases[N_PHASES];
};

/* Get the counters; stats NULL: nothing has begun. Thread-safe. */
void stats_get_progress_counters(struct stats *stats, struct progress_counters *ret_counters);

/*
 * Add the counters of a rank to a sum, which starts as progress_counters_none. Ranks in which no
 * phase has begun do not hold back the sum.
 */
static const struct progress_counters progress_counters_none = { .phase = N_PHASES };
void progress_counters_add(struct progress_counters *sum, const struct progress_counters *addend);

/* Convert counters, of one process or a sum, to the displayed progress. */
void progress_counters_summarize(const struct progress_counters *counters,
				 struct stats_progress *ret_progress);

/* Get all totals. stats must not be NULL. Thread-safe. */
void stats_get_totals(struct stats *stats, struct stats_totals *ret_totals);

/* Return the name of a stage, in text and JSON. */
const char *stage_name(enum stage stage);

/* Return the role of the threads that do the work of a stage if no device does it. */
enum track_role stage_role(enum stage stage);

/* Return the name of a phase in text: "run generation". */
const char *phase_name(enum phase phase);

/* Return the name of a phase in JSON: "run_generation". */
const char *phase_key(enum phase phase);
