/*
 * timeline - what a sort does, as it happens, for those who look on (see timeline.h)
 *
 * Gauges are looked at by whoever ends a piece of work when it is time to: no thread of its own
 * wakes for that. It is the more seldom the longer it goes on, so there are never many samples.
 */
#include "src/base/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/memory_limit.h"
#include "src/base/messages.h"

/* After so many samples, each in the interval, the interval is twice as long. */
enum { SAMPLES_EACH = 1000, FIRST_INTERVAL_NS = 5000000 };

struct timeline {
	struct trace *trace;
	struct tracks *tracks;
	struct timeline_gauges gauges;
	uint64_t last_ns; /* when the gauges were looked at; 0: never */
	uint64_t interval_ns, n_samples;
};

int timeline_open(struct trace *trace, struct timeline **ret_timeline)
{
	struct timeline *timeline = calloc(1, sizeof *timeline);

	if (!timeline || tracks_open(&timeline->tracks) < 0) {
		free(timeline);
		return fail(-ENOMEM, "no memory for a timeline");
	}
	timeline->trace = trace;
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

void timeline_add(struct timeline *timeline, const struct timeline_piece *piece)
{
	struct trace_event event = {
		.name = piece->name,
		.category = piece->category,
		.begin_ns = piece->begin_ns < piece->end_ns ? piece->begin_ns : piece->end_ns,
		.end_ns = piece->end_ns,
		.role = piece->role,
		.item = piece->item,
		.nbytes = piece->nbytes,
	};

	event.track = tracks_place(timeline->tracks, event.role, piece->owner, &event.begin_ns,
				   event.end_ns);
	trace_add(timeline->trace, &event);
}

void timeline_watch(struct timeline *timeline, const struct timeline_gauges *gauges)
{
	timeline->gauges = *gauges;
}

void timeline_look_now(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	const struct timeline_gauges *gauges = &timeline->gauges;
	const uint64_t temporary_nbytes =
		gauges->temporary_nbytes ? gauges->temporary_nbytes(gauges->context) : 0;

	if (now_ns < timeline->last_ns) /* who was late is passed over */
		return;
	timeline->last_ns = now_ns;
	trace_count(timeline->trace, "memory", now_ns, memory_resident_nbytes());
	trace_count(timeline->trace, "temporary space", now_ns, temporary_nbytes);
	trace_count(timeline->trace, "written", now_ns, written_nbytes);
	if (++timeline->n_samples % SAMPLES_EACH == 0)
		timeline->interval_ns *= 2;
}

void timeline_look(struct timeline *timeline, uint64_t now_ns, uint64_t written_nbytes)
{
	if (now_ns >= timeline->last_ns + timeline->interval_ns)
		timeline_look_now(timeline, now_ns, written_nbytes);
}
