/*
 * trace - a timeline in the Chrome trace event format (see trace.h)
 *
 * The stream's own buffer is the bounded memory: stdio writes it out when it is full. Each line
 * ends with ",\n". The array is closed by an event that names the process, which so takes no comma.
 *
 * What is collected of a track is the sum of what was done, at most MAX_SUMS things, from when
 * the first began. As pieces do not overlap, the sum is not longer than that. A collection is
 * written when a piece ends more than the while after it began, so any two of them are a while
 * long, and there are at most 2 * MAX_SUMS events in each while on a track.
 */
#include "src/base/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "src/base/diagnostics.h"

enum { MAX_SUMS = 6 };

/* The first while: so much of what the exact events took; the next one is so many times longer. */
enum { INITIAL_FRACTION = 512, GROWTH_FACTOR = 4 };

/* Things of one kind that were done on a track. */
struct event_sum {
	const char *name, *category;
	uint64_t busy_ns, nbytes, n_events;
	uint64_t item; /* of the first */
};

/* Of a track, what is yet to be written. */
struct pending_events {
	bool is_named; /* the track was told of */
	uint64_t begin_ns;
	unsigned n_sums;
	struct event_sum sums[MAX_SUMS];
};

struct trace {
	FILE *stream;      /* whose owner finds out what has failed */
	uint64_t begin_ns; /* time 0 of the timeline */
	long pid;
	char name[96];           /* of the process; "" if it is alone */
	uint64_t n_exact;        /* that may be written as they are */
	uint64_t n_written;      /* events of pieces */
	uint64_t next_growth;    /* so many, and the while grows */
	uint64_t aggregation_ns; /* that pieces are collected for; 0: not at all */
	struct pending_events *pending[N_TRACK_ROLES]; /* n[role], by track */
	uint32_t n_tracks[N_TRACK_ROLES];
};

/* What is between the two is events, with commas between them. */
static const char opening[] = "[\n", closing[] = "\n]\n";

int trace_open(FILE *stream, struct trace **ret_trace)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace)
		return fail(-ENOMEM, "--trace: no memory for its events: %m");
	trace->stream = stream;
	trace->begin_ns = clock_now_ns();
	trace->pid = (long)getpid();
	trace_set_limit(trace, TRACE_MAX_EXACT);
	fputs(opening, stream);
	*ret_trace = trace;
	return 0;
}

void trace_set_limit(struct trace *trace, uint64_t n_exact)
{
	trace->n_exact = trace->next_growth = n_exact;
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
	trace_set_limit(trace, TRACE_MAX_EXACT / process->n_processes + 1);
}

void trace_append(struct trace *trace, const char *text, size_t nbytes)
{
	const size_t prefix_nbytes = sizeof opening - 1, suffix_nbytes = sizeof closing - 1;

	if (nbytes <= prefix_nbytes + suffix_nbytes)
		return;
	fwrite(text + prefix_nbytes, 1, nbytes - prefix_nbytes - suffix_nbytes, trace->stream);
	fputs(",\n", trace->stream);
}

/* Tracks are shown as threads of this process, in the order of their numbers. */
static unsigned get_tid(enum track_role role, uint32_t track)
{
	_Static_assert(TRACKS_MAX < 10000, "roles do not share numbers");
	return 1 + (unsigned)role * 10000 + track;
}

/* Nanoseconds as what the format counts, microseconds, from the beginning. */
static void write_time(const struct trace *trace, const char *name, uint64_t ns)
{
	fprintf(trace->stream, "\"%s\":%" PRIu64 ".%03" PRIu64 ",", name, ns / 1000, ns % 1000);
}

/* What began before the trace was opened begins with it. */
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
		fprintf(trace->stream, "\"%s\"}},\n", track_role_names(role));
	else if (event->device)
		fprintf(trace->stream, "\"%s %u, device %u\"}},\n", track_role_name(role),
			track + 1, event->device);
	else
		fprintf(trace->stream, "\"%s %u\"}},\n", track_role_name(role), track + 1);
	fprintf(trace->stream,
		"{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%ld,\"tid\":%u,"
		"\"args\":{\"sort_index\":%u}},\n",
		trace->pid, tid, tid);
}

/* Of that track; NULL: there is no memory for it. */
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

/* Write what was collected, one thing behind the other. */
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

/* What was done of that kind so far; a new one if there is none. NULL: there are too many. */
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

/* When so much is written that it has to be less from now on. */
static void grow_aggregation(struct trace *trace, uint64_t now_ns)
{
	if (trace->n_written < trace->next_growth)
		return;
	trace->aggregation_ns = trace->aggregation_ns ?
					trace->aggregation_ns * GROWTH_FACTOR :
					relative_ns(trace, now_ns) / INITIAL_FRACTION + 1;
	trace->next_growth += trace->n_exact / 4 + 1;
}

void trace_add(struct trace *trace, const struct trace_event *event)
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
	grow_aggregation(trace, event->end_ns);
	if (trace->aggregation_ns && event->role != TRACK_PHASES)
		aggregate_event(trace, pending, event);
	else
		write_event(trace, event, 1);
}

void trace_add_counter(struct trace *trace, const char *name, uint64_t time_ns, uint64_t nbytes)
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
