/*
 * trace.h - the timeline of a sort, and its export in the Chrome trace event format
 *
 * A timeline receives every piece of work and, from time to time, samples of memory, temporary
 * space and bytes written. It forwards them to a trace (a file) and to a time series (for the
 * charts of the HTML report).
 *
 * An event is shown on a track of its role, not of its thread:
 *
 *	reader 1	[read ][read ]    [read ]		a thread that ended ...
 *	reader 2	   [read ][read ]	     [read ]	... leaves its track to the next
 *	queue 1		       [sort   ][sort   ]
 *
 * Threads come and go with each merge, so a timeline of threads would have hundreds of nearly empty
 * lines. An event goes to the track of its owner's last event if that track is free, else to the
 * track that has been free longest, else to a new one. Events on one track never overlap, and a
 * role has about as many tracks as the most threads that were active at once.
 *
 * A trace is one JSON array for Perfetto or chrome://tracing: complete events ("ph":"X"), names of
 * tracks, and counters ("ph":"C"). Its size is bounded. After TRACE_MAX_EXACT events, the events of
 * a track are aggregated over an interval: one event for each kind, as long as the sum of them,
 * one after the other:
 *
 *	exact		[read][wait][read ][wait][read]  [wait]
 *	aggregated	[read 3 pieces  ][wait 3 pieces]
 *
 * So a track is as full as it was, but the order within the interval is lost. The interval grows by
 * a factor of four each time a quarter of the exact limit has been written.
 *
 * A timeline and its trace are used by one thread at a time (stats.c holds its lock).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/time_series.h"

/* What a track shows, in display order: the way that records take. */
enum track_role {
	TRACK_PHASES,     /* of the whole sort; one track */
	TRACK_PARTITIONS, /* merges of one partition of the output each */
	TRACK_READERS,
	TRACK_FETCHERS,      /* readers of stored runs */
	TRACK_CPU_QUEUES,    /* sorting and merging on the CPU */
	TRACK_DEVICE_QUEUES, /* queues of a device with its own memory */
	TRACK_WRITERS,
	TRACK_CHECKERS,
	N_TRACK_ROLES
};

/* Return the name of the tracks of a role ("readers"). */
const char *track_role_names(enum track_role role);

/* --- trace --- */

struct trace;

enum { TRACE_MAX_EXACT = 100000 };

/* A piece of work, or time spent waiting. */
struct trace_event {
	const char *name,
		*category; /* without characters that JSON escapes; must outlive the trace */
	enum stage stage;  /* for the time series; N_STAGES: no work of a stage */
	uint64_t begin_ns, end_ns; /* clock_now_ns(); not before the previous event of the track */
	enum track_role role;
	uint64_t owner;  /* the thread or queue; devices have tracks of their own */
	uint32_t track;  /* of the role, from 0; set by timeline_add() */
	uint32_t device; /* from 1 if there are several; else 0 */
	uint64_t item;   /* number of the slot, chunk or window */
	uint64_t nbytes; /* moved by it */
};

/*
 * Start a trace. The stream is used until trace_close(). The caller owns it and checks it for write
 * errors. Returns 0, or a negative errno after a message.
 */
int trace_open(FILE *stream, struct trace **ret_trace);

/* One of several processes that share a timeline; its number is the pid of the trace. */
struct trace_process {
	unsigned number, n_processes; /* number: from 0 */
	char name[96];                /* characters that JSON escapes are left out */
	uint64_t begin_ns;            /* time 0 of all processes, by the clock of this one */
};

/* Set the process, before the first event. Divides the limit of events among all processes. */
void trace_set_process(struct trace *trace, const struct trace_process *process);

/* Append the complete, closed trace of another process. */
void trace_append(struct trace *trace, const char *text, size_t nbytes);

/* Complete the array and free the trace. NULL is fine. */
void trace_close(struct trace *trace);

/* --- timeline --- */

/* A thread or queue, which does one piece of work after the other. */
struct track_owner {
	uint32_t device;
	uint64_t id;
};

struct track {
	struct track_owner owner;
	uint64_t end_ns; /* end of its last event */
};

/* More tracks of a role share the last one, on which events may then overlap. */
enum { TRACKS_MAX = 1024 };

struct tracks {
	struct track *by_role[N_TRACK_ROLES]; /* n[role]; grown on demand */
	uint32_t n[N_TRACK_ROLES];
};

/* All 0 but the trace and the time series, which must outlive the timeline. */
struct timeline {
	struct trace *trace;             /* NULL: none */
	struct time_series *time_series; /* NULL: none */
	struct tracks tracks;
	uint64_t last_ns; /* time of the last sample; 0: none */
	uint64_t n_samples;
};

/* Free the tracks. */
void timeline_destroy(struct timeline *timeline);

/* Add an event, and choose its track. Events come roughly in the order in which they end. */
void timeline_add(struct timeline *timeline, const struct trace_event *event);

/* Add a phase, which has the track TRACK_PHASES; `name` must outlive the trace. */
void timeline_add_phase(struct timeline *timeline, enum phase phase, const char *name,
			uint64_t begin_ns, uint64_t end_ns, uint64_t nbytes);

/*
 * Return whether the last sample is old enough for another one. A thread that ends a piece of work
 * asks this, so no thread has to wake up for samples. The interval doubles after every 1,000.
 */
bool timeline_needs_sample(const struct timeline *timeline, uint64_t now_ns);

/* Add a sample. The memory in use is measured here. */
void timeline_sample(struct timeline *timeline, uint64_t now_ns, struct time_series_gauges gauges);
