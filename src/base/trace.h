/*
 * trace - a timeline in the Chrome trace event format
 *
 * One JSON array of complete events ("ph":"X"), to be looked at with Perfetto or chrome://tracing.
 * Any thread may add events. They go to a stream, whose buffer is all the memory that they take.
 *
 * An event lies on a track: the thread that reports it, or a numbered one for what runs elsewhere
 * (a lane of a device). Events of one track must nest or not overlap.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct trace;

enum { TRACE_THIS_THREAD = 0 }; /* the track of the calling thread; tracks above are the caller's */

struct trace_event {
	const char *name, *category; /* plain words, nothing that JSON would have to escape */
	uint64_t begin_ns, end_ns;   /* clock_now_ns() */
	uint32_t track;
	uint64_t item;   /* number of the slot, chunk or window */
	uint64_t nbytes; /* moved by it */
};

/* The clock of all times here: monotonic, since some moment before the start. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The stream is used until the trace is closed, and stays the caller's, who finds out whether it
 * could be written. Returns 0, or a negative errno after a message.
 */
int trace_open(FILE *stream, struct trace **ret_trace);

/* Thread-safe; NULL is fine. */
void trace_add(struct trace *trace, const struct trace_event *event);

/* Complete it; NULL is fine. */
void trace_close(struct trace *trace);
