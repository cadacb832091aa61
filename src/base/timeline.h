/*
 * timeline - what a sort does, as it happens, for those who look on
 *
 * Pieces of work, phases, and now and then what memory, temporary space and the output have come to
 * go to a trace and a history. Where nobody looks on, nothing of it is there, and nothing costs
 * anything.
 *
 * By one thread at a time: stats.c holds its lock.
 */
#pragma once

#include "src/base/time_series.h"
#include "src/base/trace.h"

struct timeline;

/* Who looks on; NULL: nobody. Both must outlive it. */
struct timeline_sinks {
	struct trace *trace;
	struct time_series *time_series;
};

/* 0, or -ENOMEM after a message. */
int timeline_open(const struct timeline_sinks *sinks, struct timeline **ret_timeline);

/* NULL is fine. */
void timeline_close(struct timeline *timeline);

/* A piece of work or of waiting. */
struct timeline_event {
	const char *name, *category; /* of a trace_event */
	enum stage stage;            /* that is work; N_STAGES: that is none, or waiting */
	uint64_t begin_ns, end_ns;
	enum track_role role;
	uint32_t device; /* of several, from 1; else 0 */
	uint64_t owner;  /* what did it (tracks.h) */
	uint64_t item, nbytes;
};

/* A phase, which is a piece, too. */
void timeline_add_phase(struct timeline *timeline, enum phase phase, uint64_t begin_ns,
			uint64_t end_ns, uint64_t nbytes);

void timeline_add(struct timeline *timeline, const struct timeline_event *event);

/* What is looked at now and then. */
struct timeline_gauges {
	uint64_t (*temporary_nbytes)(void *context); /* NULL: there is none */
	void *context;
};
void timeline_set_gauges(struct timeline *timeline, const struct timeline_gauges *gauges);

/* Look at them, if it is time; written_nbytes: to the output so far. */
void timeline_sample(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes);

/* The same, whether it is time or not: something begins or ends. */
void timeline_sample_now(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes);
