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
enum { SAMPLES_EACH = 1000, FIRST_INTERVAL_NS = 5000000 };

struct timeline {
	struct timeline_onlookers onlookers;
	struct tracks *tracks;
	struct timeline_gauges gauges;
	uint64_t last_ns; /* when the gauges were looked at; 0: never */
	uint64_t interval_ns, n_samples;
};

int timeline_open(const struct timeline_onlookers *onlookers, struct timeline **ret_timeline)
{
	struct timeline *timeline = calloc(1, sizeof *timeline);

	if (!timeline || tracks_open(&timeline->tracks) < 0) {
		free(timeline);
		return fail(-ENOMEM, "no memory for a timeline");
	}
	timeline->onlookers = *onlookers;
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

static void remember(const struct timeline *timeline, enum stage stage,
		     const struct trace_event *event)
{
	struct history *history = timeline->onlookers.history;

	if (stage == N_STAGES)
		return;
	history_add(history, &(struct history_piece){ .stage = stage,
						      .begin_ns = event->begin_ns,
						      .end_ns = event->end_ns,
						      .nbytes = event->nbytes,
						      .is_of_lane = event->role == TRACK_DEVICES,
						      .lane = event->track });
}

void timeline_add(struct timeline *timeline, const struct timeline_piece *piece)
{
	struct trace_event event = {
		.name = piece->name,
		.category = piece->category,
		.begin_ns = piece->begin_ns < piece->end_ns ? piece->begin_ns : piece->end_ns,
		.end_ns = piece->end_ns,
		.role = piece->role,
		.device = piece->device,
		.item = piece->item,
		.nbytes = piece->nbytes,
	};

	event.track = tracks_place(timeline->tracks, event.role,
				   (struct track_owner){ piece->device, piece->owner },
				   &event.begin_ns, event.end_ns);
	trace_add(timeline->onlookers.trace, &event);
	if (timeline->onlookers.history)
		remember(timeline, piece->stage, &event);
}

void timeline_add_phase(struct timeline *timeline, enum phase phase, uint64_t begin_ns,
			uint64_t end_ns, uint64_t nbytes)
{
	struct history *history = timeline->onlookers.history;
	const struct timeline_piece piece = { .name = phase_name(phase),
					      .category = "phase",
					      .stage = N_STAGES,
					      .begin_ns = begin_ns,
					      .end_ns = end_ns,
					      .role = TRACK_PHASES,
					      .nbytes = nbytes };

	timeline_add(timeline, &piece);
	if (!history)
		return;
	history->phases[phase].begin_ns = begin_ns;
	history->phases[phase].end_ns = end_ns;
}

void timeline_watch(struct timeline *timeline, const struct timeline_gauges *gauges)
{
	timeline->gauges = *gauges;
}

void timeline_look_now(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	const struct timeline_gauges *gauges = &timeline->gauges;
	struct trace *trace = timeline->onlookers.trace;
	struct history_gauges seen = { .written_nbytes = written_nbytes };

	if (now_ns < timeline->last_ns) /* who was late is passed over */
		return;
	timeline->last_ns = now_ns;
	seen.memory_nbytes = memory_resident_nbytes();
	if (gauges->temporary_nbytes)
		seen.temporary_nbytes = gauges->temporary_nbytes(gauges->context);
	trace_count(trace, "memory", now_ns, seen.memory_nbytes);
	trace_count(trace, "temporary space", now_ns, seen.temporary_nbytes);
	trace_count(trace, "written", now_ns, seen.written_nbytes);
	if (timeline->onlookers.history)
		history_look(timeline->onlookers.history, now_ns, &seen);
	if (++timeline->n_samples % SAMPLES_EACH == 0)
		timeline->interval_ns *= 2;
}

void timeline_look(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	if (now_ns >= timeline->last_ns + timeline->interval_ns)
		timeline_look_now(timeline, now_ns, written_nbytes);
}
