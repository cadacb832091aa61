/*
 * trace.c - the timeline of a sort, and its export in the Chrome trace event format (see trace.h)
 *
 * The buffer of the stream is nearly all the memory that a trace needs. Each line ends with ",\n";
 * the array is closed by the event that names the process, which has no comma.
 *
 * Aggregated events of a track are at most MAX_SUMS sums, one for each kind, from the time at which
 * the first began. As events of a track do not overlap, the sums are no longer than that time. They
 * are written when an event ends later than the interval after that begin. So there are at most
 * 2 * MAX_SUMS events of a track in each interval.
 */
#include "src/base/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/base/system_limits.h"

/* --- tracks --- */

/* The maximum drift of a device's clock against ours after some hours. */
enum { CLOCK_ERROR_NS = 1000000 };

static const struct {
	const char *name, *names;
} roles[N_TRACK_ROLES] = {
	[TRACK_PHASES] = { "phase", "phases" },
	[TRACK_PARTITIONS] = { "partition", "partitions" },
	[TRACK_READERS] = { "reader", "readers" },
	[TRACK_FETCHERS] = { "fetcher", "fetchers" },
	[TRACK_CPU_QUEUES] = { "CPU queue", "CPU queues" },
	[TRACK_DEVICE_QUEUES] = { "GPU queue", "GPU queues" },
	[TRACK_WRITERS] = { "writer", "writers" },
	[TRACK_CHECKERS] = { "verifier", "verifiers" },
};

/* Return the owner's track if it is free, else the one that has been free longest, or NULL. */
static struct track *find_free_track(struct tracks *tracks, enum track_role role,
				     struct track_owner owner, uint64_t begin_ns)
{
	struct track *best = NULL;

	for (uint32_t i = 0; i < tracks->n[role]; i++) {
		struct track *track = &tracks->by_role[role][i];

		if (track->owner.device != owner.device)
			continue;
		/* Events of a device may seem to begin before the previous one has ended. */
		if (track->owner.id == owner.id &&
		    track->end_ns <= begin_ns + (role == TRACK_DEVICE_QUEUES ? CLOCK_ERROR_NS : 0))
			return track;
		if (track->end_ns <= begin_ns && (!best || track->end_ns < best->end_ns))
			best = track;
	}
	return best;
}

/* Add a track. Return it, the last one if there are too many, or NULL if memory is short. */
static struct track *add_track(struct tracks *tracks, enum track_role role)
{
	const uint32_t n = tracks->n[role];
	struct track *grown = NULL;

	if (n < TRACKS_MAX)
		grown = reallocarray(tracks->by_role[role], n + 1, sizeof *grown);
	if (!grown)
		return n ? &tracks->by_role[role][n - 1] : NULL;
	grown[n] = (struct track){ 0 };
	tracks->by_role[role] = grown;
	tracks->n[role]++;
	return &grown[n];
}

/*
 * Return the track of an event. Moves *begin_ns to the end of the previous event on it if the two
 * overlap by less than the clocks may differ.
 */
static uint32_t tracks_assign(struct tracks *tracks, enum track_role role, struct track_owner owner,
			      uint64_t *begin_ns, uint64_t end_ns)
{
	struct track *track = find_free_track(tracks, role, owner, *begin_ns);

	if (!track)
		track = add_track(tracks, role);
	if (!track)
		return 0;
	if (track->end_ns > *begin_ns)
		*begin_ns = track->end_ns < end_ns ? track->end_ns : end_ns;
	*track = (struct track){ owner, end_ns > track->end_ns ? end_ns : track->end_ns };
	return (uint32_t)(track - tracks->by_role[role]);
}

const char *track_role_names(enum track_role role)
{
	return roles[role].names;
}

/* --- trace --- */

enum { MAX_SUMS = 6 };

/* The first interval is this fraction of the time that the exact events took; later ones grow. */
enum { INITIAL_FRACTION = 512, GROWTH_FACTOR = 4 };

/* Events of one kind on a track. */
struct event_sum {
	const char *name, *category;
	uint64_t busy_ns, nbytes, n_events;
	uint64_t item; /* number of the first item */
};

/* Events of a track that are not written yet. */
struct pending_events {
	bool is_named; /* the name of the track was written */
	uint64_t begin_ns;
	unsigned n_sums;
	struct event_sum sums[MAX_SUMS];
};

struct trace {
	FILE *stream;      /* the owner checks it for errors */
	uint64_t begin_ns; /* time 0 of the timeline */
	long pid;
	char name[96];           /* of the process; "" if there is only one */
	uint64_t n_exact;        /* limit of events that are written one by one */
	uint64_t n_written;      /* events without names and counters */
	uint64_t next_growth;    /* n_written at which the interval grows */
	uint64_t aggregation_ns; /* the interval; 0: events are written one by one */
	struct pending_events *pending[N_TRACK_ROLES]; /* n[role], by track */
	uint32_t n_tracks[N_TRACK_ROLES];
};

/* Between the two there are events, separated by commas. */
static const char opening[] = "[\n", closing[] = "\n]\n";

static void set_limit(struct trace *trace, uint64_t n_exact)
{
	trace->n_exact = trace->next_growth = n_exact;
}

int trace_open(FILE *stream, struct trace **ret_trace)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace)
		return fail(-ENOMEM, "--trace: no memory for its events: %m");
	trace->stream = stream;
	trace->begin_ns = clock_now_ns();
	trace->pid = (long)getpid();
	set_limit(trace, TRACE_MAX_EXACT);
	fputs(opening, stream);
	*ret_trace = trace;
	return 0;
}

void trace_set_process(struct trace *trace, const struct trace_process *process)
{
	size_t n = 0;

	trace->begin_ns = process->begin_ns;
	trace->pid = (long)process->number;
	for (const char *c = process->name; *c; c++)
		if (*c >= ' ' && *c != '"' && *c != '\\' && *c != 0x7f)
			trace->name[n++] = *c;
	trace->name[n] = '\0';
	set_limit(trace, TRACE_MAX_EXACT / process->n_processes + 1);
}

void trace_append(struct trace *trace, const char *text, size_t nbytes)
{
	const size_t prefix_nbytes = sizeof opening - 1, suffix_nbytes = sizeof closing - 1;

	if (nbytes <= prefix_nbytes + suffix_nbytes)
		return;
	fwrite(text + prefix_nbytes, 1, nbytes - prefix_nbytes - suffix_nbytes, trace->stream);
	fputs(",\n", trace->stream);
}

/* Tracks are shown as threads of the process, ordered by number. */
static unsigned get_tid(enum track_role role, uint32_t track)
{
	_Static_assert(TRACKS_MAX < 10000, "roles do not share numbers");
	return 1 + (unsigned)role * 10000 + track;
}

/* Write a time in microseconds, the unit of the format. */
static void write_time(const struct trace *trace, const char *name, uint64_t ns)
{
	fprintf(trace->stream, "\"%s\":%" PRIu64 ".%03" PRIu64 ",", name, ns / 1000, ns % 1000);
}

/* Events that began before the trace begin with it. */
static uint64_t relative_ns(const struct trace *trace, uint64_t time_ns)
{
	return time_ns > trace->begin_ns ? time_ns - trace->begin_ns : 0;
}

static void write_event(struct trace *trace, const struct trace_event *event, uint64_t n_events)
{
	const uint64_t begin_ns = relative_ns(trace, event->begin_ns);
	const uint64_t end_ns = relative_ns(trace, event->end_ns);

	fprintf(trace->stream, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",", event->name,
		event->category);
	write_time(trace, "ts", begin_ns);
	write_time(trace, "dur", end_ns > begin_ns ? end_ns - begin_ns : 0);
	fprintf(trace->stream,
		"\"pid\":%ld,\"tid\":%u,\"args\":{\"item\":%" PRIu64 ",\"bytes\":%" PRIu64,
		trace->pid, get_tid(event->role, event->track), event->item, event->nbytes);
	if (n_events > 1)
		fprintf(trace->stream, ",\"pieces\":%" PRIu64, n_events);
	fputs("}},\n", trace->stream);
	trace->n_written++;
}

static void write_track_name(struct trace *trace, const struct trace_event *event)
{
	const enum track_role role = event->role;
	const uint32_t track = event->track;
	const unsigned tid = get_tid(role, track);

	fprintf(trace->stream,
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%ld,\"tid\":%u,\"args\":{\"name\":",
		trace->pid, tid);
	if (role == TRACK_PHASES)
		fprintf(trace->stream, "\"%s\"}},\n", roles[role].names);
	else if (event->device)
		fprintf(trace->stream, "\"%s %u, device %u\"}},\n", roles[role].name, track + 1,
			event->device);
	else
		fprintf(trace->stream, "\"%s %u\"}},\n", roles[role].name, track + 1);
	fprintf(trace->stream,
		"{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%ld,\"tid\":%u,"
		"\"args\":{\"sort_index\":%u}},\n",
		trace->pid, tid, tid);
}

/* Return the pending events of a track, or NULL if memory is short. */
static struct pending_events *get_pending(struct trace *trace, enum track_role role, uint32_t track)
{
	struct pending_events *grown;

	if (track >= trace->n_tracks[role]) {
		grown = reallocarray(trace->pending[role], track + UINT64_C(1), sizeof *grown);
		if (!grown)
			return NULL;
		trace->pending[role] = grown;
		while (trace->n_tracks[role] <= track)
			grown[trace->n_tracks[role]++] = (struct pending_events){ 0 };
	}
	return &trace->pending[role][track];
}

/* Write the sums of a track one after the other. */
static void write_pending(struct trace *trace, enum track_role role, uint32_t track)
{
	struct pending_events *pending = &trace->pending[role][track];
	uint64_t time_ns = pending->begin_ns;

	for (unsigned i = 0; i < pending->n_sums; i++) {
		const struct event_sum *sum = &pending->sums[i];
		const struct trace_event event = {
			.name = sum->name,
			.category = sum->category,
			.begin_ns = time_ns,
			.end_ns = time_ns + sum->busy_ns,
			.role = role,
			.track = track,
			.item = sum->item,
			.nbytes = sum->nbytes,
		};

		write_event(trace, &event, sum->n_events);
		time_ns += sum->busy_ns;
	}
	pending->n_sums = 0;
}

/*
 * Return the sum of the event's kind, a new one if necessary, or NULL if there are too many kinds.
 */
static struct event_sum *find_sum(struct pending_events *pending, const struct trace_event *event)
{
	struct event_sum *sum = pending->sums;

	for (unsigned i = 0; i < pending->n_sums; i++, sum++)
		if (sum->name == event->name && sum->category == event->category)
			return sum;
	if (pending->n_sums == MAX_SUMS)
		return NULL;
	*sum = (struct event_sum){ .name = event->name,
				   .category = event->category,
				   .item = event->item };
	pending->n_sums++;
	return sum;
}

static void aggregate_event(struct trace *trace, struct pending_events *pending,
			    const struct trace_event *event)
{
	struct event_sum *sum;

	if (pending->n_sums && event->end_ns > pending->begin_ns + trace->aggregation_ns)
		write_pending(trace, event->role, event->track);
	if (pending->n_sums == 0)
		pending->begin_ns = event->begin_ns;
	sum = find_sum(pending, event);
	if (!sum) {
		write_pending(trace, event->role, event->track);
		pending->begin_ns = event->begin_ns;
		sum = find_sum(pending, event);
	}
	sum->busy_ns += event->end_ns - event->begin_ns;
	sum->nbytes += event->nbytes;
	sum->n_events++;
}

/* trace may be NULL. */
static void add_event(struct trace *trace, const struct trace_event *event)
{
	struct pending_events *pending;

	if (!trace)
		return;
	pending = get_pending(trace, event->role, event->track);
	if (!pending)
		return;
	if (!pending->is_named)
		write_track_name(trace, event);
	pending->is_named = true;
	/* Start to aggregate, or lengthen the interval, when enough has been written. */
	if (trace->n_written >= trace->next_growth) {
		trace->aggregation_ns =
			trace->aggregation_ns ?
				trace->aggregation_ns * GROWTH_FACTOR :
				relative_ns(trace, event->end_ns) / INITIAL_FRACTION + 1;
		trace->next_growth += trace->n_exact / 4 + 1;
	}
	if (trace->aggregation_ns && event->role != TRACK_PHASES)
		aggregate_event(trace, pending, event);
	else
		write_event(trace, event, 1);
}

/* Add the value of a counter, in order of time. trace may be NULL. */
static void add_counter(struct trace *trace, const char *name, uint64_t time_ns, uint64_t nbytes)
{
	if (!trace)
		return;
	fprintf(trace->stream, "{\"name\":\"%s\",\"ph\":\"C\",", name);
	write_time(trace, "ts", relative_ns(trace, time_ns));
	fprintf(trace->stream, "\"pid\":%ld,\"args\":{\"bytes\":%" PRIu64 "}},\n", trace->pid,
		nbytes);
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	for (enum track_role role = 0; role < N_TRACK_ROLES; role++) {
		for (uint32_t track = 0; track < trace->n_tracks[role]; track++)
			write_pending(trace, role, track);
		free(trace->pending[role]);
	}
	if (trace->name[0])
		fprintf(trace->stream,
			"{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%ld,"
			"\"args\":{\"sort_index\":%ld}},\n",
			trace->pid, trace->pid);
	fprintf(trace->stream,
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,"
		"\"args\":{\"name\":\"%s\"}}%s",
		trace->pid, trace->name[0] ? trace->name : GSORT_PROGRAM, closing);
	free(trace);
}

/* --- timeline --- */

/* The interval doubles after this many samples. */
enum { SAMPLES_PER_INTERVAL = 1000 };

#define FIRST_INTERVAL_NS UINT64_C(5000000)

void timeline_destroy(struct timeline *timeline)
{
	for (enum track_role role = 0; role < N_TRACK_ROLES; role++)
		free(timeline->tracks.by_role[role]);
}

void timeline_add(struct timeline *timeline, const struct trace_event *event)
{
	struct trace_event placed = *event;

	if (placed.begin_ns > placed.end_ns)
		placed.begin_ns = placed.end_ns;
	placed.track = tracks_assign(&timeline->tracks, placed.role,
				     (struct track_owner){ placed.device, placed.owner },
				     &placed.begin_ns, placed.end_ns);
	add_event(timeline->trace, &placed);
	if (timeline->time_series && placed.stage != N_STAGES)
		time_series_add(timeline->time_series, placed.stage,
				placed.role == TRACK_DEVICE_QUEUES ? placed.track + 1 : 0,
				placed.begin_ns, placed.end_ns, placed.nbytes);
}

void timeline_add_phase(struct timeline *timeline, enum phase phase, const char *name,
			uint64_t begin_ns, uint64_t end_ns, uint64_t nbytes)
{
	struct time_series *series = timeline->time_series;
	const struct trace_event event = { .name = name,
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

void timeline_sample(struct timeline *timeline, uint64_t now_ns, struct time_series_gauges gauges)
{
	struct trace *trace = timeline->trace;

	if (now_ns < timeline->last_ns) /* a late event */
		return;
	timeline->last_ns = now_ns;
	gauges.memory_nbytes = memory_resident_nbytes();
	add_counter(trace, "memory", now_ns, gauges.memory_nbytes);
	add_counter(trace, "temporary space", now_ns, gauges.temporary_nbytes);
	add_counter(trace, "written", now_ns, gauges.written_nbytes);
	if (timeline->time_series)
		time_series_sample(timeline->time_series, now_ns, &gauges);
	timeline->n_samples++;
}

bool timeline_needs_sample(const struct timeline *timeline, uint64_t now_ns)
{
	return now_ns >= timeline->last_ns +
				 (FIRST_INTERVAL_NS << timeline->n_samples / SAMPLES_PER_INTERVAL);
}
