/*
 * timeline - what a sort does, as it happens, for those who look on (see timeline.h)
 *
 * Gauges are looked at by whoever ends a piece of work when it is time to: no thread of its own
 * wakes for that. It is the more seldom the longer it goes on, so there are never many samples.
 */
#include "src/base/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"

/* After so many samples, each in the interval, the interval is twice as long. */
enum { SAMPLES_PER_INTERVAL = 1000, FIRST_INTERVAL_NS = 5000000 };

struct timeline {
	struct timeline_sinks sinks;
	struct tracks *tracks;
	struct timeline_gauges gauges;
	uint64_t last_ns; /* when the gauges were looked at; 0: never */
	uint64_t interval_ns, n_samples;
};

int timeline_open(const struct timeline_sinks *sinks, struct timeline **ret_timeline)
{
	struct timeline *timeline = calloc(1, sizeof *timeline);

	if (!timeline || tracks_open(&timeline->tracks) < 0) {
		free(timeline);
		return fail(-ENOMEM, "no memory for a timeline");
	}
	timeline->sinks = *sinks;
	timeline->interval_ns = FIRST_INTERVAL_NS;
	*ret_timeline = timeline;
	return 0;
}

void timeline_close(struct timeline *timeline)
{
	if (!timeline)
		return;
	tracks_close(timeline->tracks);
	free(timeline);
}

static void add_to_time_series(const struct timeline *timeline, enum stage stage,
			       const struct trace_event *trace_entry)
{
	struct time_series *series = timeline->sinks.time_series;

	if (stage == N_STAGES)
		return;
	time_series_add(series, &(struct time_series_event){ .stage = stage,
							     .begin_ns = trace_entry->begin_ns,
							     .end_ns = trace_entry->end_ns,
							     .nbytes = trace_entry->nbytes,
							     .is_device_queue = trace_entry->role ==
										TRACK_DEVICE_QUEUES,
							     .queue = trace_entry->track });
}

void timeline_add(struct timeline *timeline, const struct timeline_event *event)
{
	struct trace_event trace_entry = {
		.name = event->name,
		.category = event->category,
		.begin_ns = event->begin_ns < event->end_ns ? event->begin_ns : event->end_ns,
		.end_ns = event->end_ns,
		.role = event->role,
		.device = event->device,
		.item = event->item,
		.nbytes = event->nbytes,
	};

	trace_entry.track = tracks_assign(timeline->tracks, trace_entry.role,
					  (struct track_owner){ event->device, event->owner },
					  &trace_entry.begin_ns, trace_entry.end_ns);
	trace_add(timeline->sinks.trace, &trace_entry);
	if (timeline->sinks.time_series)
		add_to_time_series(timeline, event->stage, &trace_entry);
}

void timeline_add_phase(struct timeline *timeline, enum phase phase, uint64_t begin_ns,
			uint64_t end_ns, uint64_t nbytes)
{
	struct time_series *series = timeline->sinks.time_series;
	const struct timeline_event event = { .name = phase_name(phase),
					      .category = "phase",
					      .stage = N_STAGES,
					      .begin_ns = begin_ns,
					      .end_ns = end_ns,
					      .role = TRACK_PHASES,
					      .nbytes = nbytes };

	timeline_add(timeline, &event);
	if (!series)
		return;
	series->phases[phase].begin_ns = begin_ns;
	series->phases[phase].end_ns = end_ns;
}

void timeline_set_gauges(struct timeline *timeline, const struct timeline_gauges *gauges)
{
	timeline->gauges = *gauges;
}

void timeline_sample_now(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	const struct timeline_gauges *gauges = &timeline->gauges;
	struct trace *trace = timeline->sinks.trace;
	struct time_series_gauges sample = { .written_nbytes = written_nbytes };

	if (now_ns < timeline->last_ns) /* who was late is passed over */
		return;
	timeline->last_ns = now_ns;
	sample.memory_nbytes = memory_resident_nbytes();
	if (gauges->temporary_nbytes)
		sample.temporary_nbytes = gauges->temporary_nbytes(gauges->context);
	trace_add_counter(trace, "memory", now_ns, sample.memory_nbytes);
	trace_add_counter(trace, "temporary space", now_ns, sample.temporary_nbytes);
	trace_add_counter(trace, "written", now_ns, sample.written_nbytes);
	if (timeline->sinks.time_series)
		time_series_sample(timeline->sinks.time_series, now_ns, &sample);
	if (++timeline->n_samples % SAMPLES_PER_INTERVAL == 0)
		timeline->interval_ns *= 2;
}

void timeline_sample(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	if (now_ns >= timeline->last_ns + timeline->interval_ns)
		timeline_sample_now(timeline, now_ns, written_nbytes);
}
