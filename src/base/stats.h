/*
 * stats - what each stage did, and which one held the others up
 *
 * A stage reports each piece of work as a span: when it began, when it ended, how many bytes. Spans
 * are added up per phase and stage, and become events of the trace when there is one, so that one
 * call serves both:
 *
 *	struct span span = stats_begin(STAGE_READ, chunk);
 *	r = file_read(...);
 *	stats_end(stats, span, nbytes);
 *
 * Time spent waiting for a slot, for memory or for another stage is a span too, ended with
 * stats_end_wait(). Spans are a slot or so in size (hundreds of KiB and more), so a lock per span
 * costs nothing that could be measured; do not report records.
 *
 * Of each stage two times are kept. `busy` adds up all its spans, over all threads. `covered` is
 * the time in which at least one of its spans ran. A stage that covers nearly all of a phase is the
 * one that held the others up: while it ran without a pause, the others had time to wait.
 *
 * Functions accept NULL for `stats`, and do nothing: tests and tools need not have one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/trace.h"

enum stage {
	STAGE_READ,     /* input file or pipe to memory */
	STAGE_UPLOAD,   /* host memory to device memory */
	STAGE_ENCODE,   /* records to elements */
	STAGE_SORT,     /* a chunk */
	STAGE_FETCH,    /* spilled blocks back to memory */
	STAGE_UNPACK,   /* spilled blocks to elements, on a device apart */
	STAGE_CUT,      /* splitters of a window */
	STAGE_MERGE,    /* a window */
	STAGE_DECODE,   /* elements to records, checked */
	STAGE_PACK,     /* elements to blocks to be spilled, on a device apart */
	STAGE_DOWNLOAD, /* device memory to host memory */
	STAGE_SPILL,    /* blocks to temporary files */
	STAGE_WRITE,    /* output file or pipe */
	STAGE_VERIFY,   /* the output, read back */
	N_STAGES
};

enum phase {
	PHASE_RUN_GENERATION, /* form runs; spill when memory is full. Measured by STAGE_READ */
	PHASE_MERGE_PASSES,   /* merge runs into fewer, longer ones. Measured by STAGE_SPILL */
	PHASE_FINAL_MERGE,    /* merge into the output. Measured by STAGE_WRITE */
	PHASE_VERIFY,         /* -c, or --verify. Measured by STAGE_VERIFY */
	N_PHASES
};

struct time_series;
struct stats;

/* One piece of work that has begun. */
struct span {
	enum stage stage;
	uint32_t queue;    /* of a device apart, from 1: it did it; 0: the calling thread */
	uint32_t device;   /* of several such, from 1; 0: it is the only one */
	uint64_t item;     /* number of the chunk, block or window, for the trace */
	uint64_t begin_ns; /* clock_now_ns() */
};

/* What the spans of a stage come to. */
struct stage_totals {
	uint64_t n_spans, nbytes;
	uint64_t busy_ns, blocked_ns, active_ns;
};

/* Bytes that come and go beside what stages count. */
struct stats_volumes {
	uint64_t temporary_written_nbytes, temporary_read_nbytes; /* of files, not of memory */
	uint64_t sent_nbytes, received_nbytes;                    /* messages between ranks */
};

struct phase_totals {
	bool has_begun;
	uint64_t elapsed_ns;          /* to its end, or now */
	struct stats_volumes volumes; /* as far as it has ended */
	struct stage_totals stages[N_STAGES];
};

/* Of the process, from its start to stats_finish() or now. */
struct stats_usage {
	uint64_t user_ns, system_ns;
	uint64_t peak_rss_nbytes;
};

/* What one of several devices did. */
struct device_totals {
	uint64_t n_chunks, sorted_nbytes; /* as they were read */
	uint64_t n_partitions,
		merged_nbytes; /* those of merges to runs, too; as they lie in memory */
	uint64_t peer_read_nbytes,
		staged_read_nbytes; /* of others: read there, had by way of the host */
	/* The time of all its operations, and that in which at least one was under way. */
	uint64_t busy_ns, active_ns;
};

enum { STATS_MAX_DEVICES = 64 };

struct stats_totals {
	uint64_t elapsed_ns; /* since stats_open(), to stats_finish() or now */
	struct stats_usage usage;
	struct phase_totals phases[N_PHASES];
	struct device_totals devices[STATS_MAX_DEVICES]; /* span.device, from 1, is the first */
};

/* How far the current phase is. */
struct stats_progress {
	enum phase phase;
	uint64_t done_nbytes, total_nbytes; /* total: 0 if unknown */
	uint64_t elapsed_ns;                /* since the phase began */
	bool started;                       /* a phase has begun */
	/* The same of all phases together; total: 0 if that of any of them is unknown. */
	uint64_t overall_done_nbytes, overall_total_nbytes;
	uint64_t overall_elapsed_ns; /* since the first phase began */
};

/*
 * trace: where spans go as events, may be NULL; must outlive the stats. 0, or -ENOMEM after a
 * message.
 */
int stats_open(struct trace *trace, struct stats **ret_stats);

/* The same, and what took place is also remembered; either may be NULL, and must outlive them. */
int stats_open_with_time_series(struct trace *trace, struct time_series *series,
				struct stats **ret_stats);
void stats_close(struct stats *stats);

/*
 * A phase begins, and the one before it ends; each at most once. total_nbytes: what its measuring
 * stage will have moved in the end, 0 if unknown.
 */
void stats_begin_phase(struct stats *stats, enum phase phase, uint64_t total_nbytes);

/*
 * The current phase has moved all that it had to, were it less than was expected; it ends when
 * another begins.
 */
void stats_complete_phase(struct stats *stats);

/*
 * A phase that has not begun will, and its measuring stage will then have so much to move. 0: it
 * will not, as long as nothing else is said. What stats_begin_phase() is told is better known.
 */
void stats_set_phase_total(struct stats *stats, enum phase phase, uint64_t total_nbytes);

static inline struct span stats_begin(enum stage stage, uint64_t item)
{
	return (struct span){ .stage = stage, .item = item, .begin_ns = clock_now_ns() };
}

/* The span ends now, having moved nbytes. Thread-safe, as are the next two. */
void stats_end(struct stats *stats, struct span span, uint64_t nbytes);

/* The same, with the time it ended given: for work of a device that is reported later. */
void stats_end_at(struct stats *stats, struct span span, uint64_t end_ns, uint64_t nbytes);

/*
 * So much need not be moved by the stage: records that are dropped (-u, --limit) are done, too.
 * For progress only; counts where the stage measures the current phase. Thread-safe.
 */
void stats_skip(struct stats *stats, enum stage stage, uint64_t nbytes);

/* The span was no work: the stage waited, until now, for others. */
void stats_end_wait(struct stats *stats, struct span span);

/*
 * What is in temporary space, to be looked at now and then while somebody looks on: by any thread
 * that reports a span, under a lock of the stats. NULL: none any more.
 */
void stats_set_temp_space_source(struct stats *stats, uint64_t (*nbytes)(void *context),
				 void *context);

/*
 * Volumes so far, which are asked for where a phase begins or all is done, under a lock of the
 * stats. What was before the first phase is of that. NULL: they do not change any more.
 */
typedef void stats_volume_source(void *context, struct stats_volumes *ret_volumes);
void stats_set_volume_source(struct stats *stats, stats_volume_source *source, void *context);

/* A range of the output was merged, from then until now. */
void stats_add_partition(struct stats *stats, uint64_t number, uint64_t begin_ns, uint64_t nbytes);

/* A device, by its number from 1, has done that besides; of it all but the times. Of 0 nothing. */
void stats_add_device(struct stats *stats, uint32_t device, const struct device_totals *totals);

/* Thread-safe. */
void stats_get_progress(struct stats *stats, struct stats_progress *ret_progress);

/*
 * All is done: what follows, measuring say, does not count, neither as time nor as memory. Only the
 * first call does anything.
 */
void stats_finish(struct stats *stats);

/* Thread-safe. stats: not NULL. */
void stats_get_totals(struct stats *stats, struct stats_totals *ret_totals);

/* The name of a stage, for a person and in JSON. */
const char *stage_name(enum stage stage);

/* Whose work it is, where no device apart does it. */
enum track_role stage_role(enum stage stage);

/* What a person calls a phase: "run generation". */
const char *phase_name(enum phase phase);

/* What it is in JSON: "run_generation". */
const char *phase_key(enum phase phase);
