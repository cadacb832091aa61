/*
 * trace - a timeline in the Chrome trace event format
 *
 * One JSON array, to be looked at with Perfetto or chrome://tracing: pieces of work as complete
 * events ("ph":"X"), on tracks that are named and ordered by their role (tracks.h), and counters
 * ("ph":"C"). It goes to a stream, whose buffer is nearly all the memory that it takes.
 *
 * It does not grow with the sort for ever. After the first TRACE_MAX_EXACT events those of a
 * track are collected for a while, and become one event for each thing that was done in it, as
 * long as all of these took together, and one behind the other:
 *
 *	as it was	[read][wait][read ][wait][read]  [wait]
 *	in the trace	[read 3 pieces  ][wait 3 pieces]
 *
 * So a track is as full as it was, only no more in this order. For each quarter as many events that
 * are written then, the while is four times as long as the one before.
 *
 * By one thread at a time: who counts pieces has a lock already (stats.h). NULL is no trace, and
 * fine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/tracks.h"

struct trace;

enum { TRACE_MAX_EXACT = 100000 };

struct trace_event {
	const char *name, *category; /* plain words, nothing that JSON would have to escape */
	uint64_t begin_ns, end_ns;   /* clock_now_ns(); behind those before it on the track */
	enum track_role role;
	uint32_t track;  /* of the role */
	uint32_t device; /* of several, whose track it is, from 1; else 0 */
	uint64_t item;   /* number of the slot, chunk or window */
	uint64_t nbytes; /* moved by it */
};

/*
 * The stream is used until the trace is closed, and stays the caller's, who finds out whether it
 * could be written. Returns 0, or a negative errno after a message.
 */
int trace_open(FILE *stream, struct trace **ret_trace);

/* Instead of TRACE_MAX_EXACT; before anything is added. */
void trace_set_limit(struct trace *trace, uint64_t n_exact);

/* One of several processes that have one timeline; pid is its number. */
struct trace_process {
	unsigned number, n_processes; /* the one, from 0, of so many */
	char name[96];                /* what would have to be escaped in JSON is left out */
	uint64_t begin_ns;            /* time 0 of all of them, by the clock of this one */
};

/* Before anything is added. There are so many events less of each that all together are bounded. */
void trace_set_process(struct trace *trace, const struct trace_process *process);

/* The first adds the trace of another: all that was written until that was closed. */
void trace_append(struct trace *trace, const char *text, size_t nbytes);

/* Names are to stay where they are until it is closed. */
void trace_add(struct trace *trace, const struct trace_event *event);

/* A counter was that then; each in the order of time. */
void trace_add_counter(struct trace *trace, const char *name, uint64_t time_ns, uint64_t nbytes);

/* Complete it. */
void trace_close(struct trace *trace);
