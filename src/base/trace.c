/*
 * trace - a timeline in the Chrome trace event format (see trace.h)
 *
 * The stream's own buffer is the bounded memory: stdio writes it out when it is full. Each line
 * ends with ",\n". The array is closed by an event that names the process, which so takes no comma.
 *
 * What is collected of a track is the sum of what was done, at most MOST_KINDS things, from when
 * the first began. As pieces do not overlap, the sum is not longer than that. A collection is
 * written when a piece ends more than the while after it began, so any two of them are a while
 * long, and there are at most 2 * MOST_KINDS events in each while on a track.
 */
#include "src/base/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

enum { MOST_KINDS = 6 };

/* The first while: so much of what the exact events took; the next one is so many times longer. */
enum { FIRST_PART = 512, LONGER = 4 };

/* Things of one kind that were done on a track. */
struct done {
	const char *name, *category;
	uint64_t busy_ns, nbytes, n_pieces;
	uint64_t item; /* of the first */
};

/* Of a track, what is yet to be written. */
struct collection {
	bool is_named; /* the track was told of */
	uint64_t begin_ns;
	unsigned n;
	struct done done[MOST_KINDS];
};

struct trace {
	FILE *stream;      /* whose owner finds out what has failed */
	uint64_t begin_ns; /* time 0 of the timeline */
	long pid;
	char name[96];                        /* of the process; "" if it is alone */
	uint64_t n_exact;                     /* that may be written as they are */
	uint64_t n_written;                   /* events of pieces */
	uint64_t n_next;                      /* so many, and the while grows */
	uint64_t while_ns;                    /* that pieces are collected for; 0: not at all */
	struct collection *of[N_TRACK_ROLES]; /* n[role], by track */
	uint32_t n[N_TRACK_ROLES];
};

/* What is between the two is events, with commas between them. */
static const char opening[] = "[\n", closing[] = "\n]\n";

int trace_open(FILE *stream, struct trace **ret_trace)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace)
		return fail_hint(-ENOMEM, HINT_ABOUT_TRACE, 0, "no memory for its events: %m");
	trace->stream = stream;
	trace->begin_ns = clock_now_ns();
	trace->pid = (long)getpid();
	trace_limit(trace, TRACE_EXACT);
	fputs(opening, stream);
	*ret_trace = trace;
	return 0;
}

void trace_limit(struct trace *trace, uint64_t n_exact)
{
	trace->n_exact = trace->n_next = n_exact;
}

void trace_be(struct trace *trace, const struct trace_process *process)
{
	size_t n = 0;

	trace->begin_ns = process->begin_ns;
	trace->pid = (long)process->number;
	for (const char *c = process->name; *c; c++)
		if (*c >= ' ' && *c != '"' && *c != '\\' && *c != 0x7f)
			trace->name[n++] = *c;
	trace->name[n] = '\0';
	trace_limit(trace, TRACE_EXACT / process->n + 1);
}

void trace_join(struct trace *trace, const char *text, size_t nbytes)
{
	const size_t before = sizeof opening - 1, behind = sizeof closing - 1;

	if (nbytes <= before + behind)
		return;
	fwrite(text + before, 1, nbytes - before - behind, trace->stream);
	fputs(",\n", trace->stream);
}

/* Tracks are shown as threads of this process, in the order of their numbers. */
static unsigned tid_of(enum track_role role, uint32_t track)
{
	_Static_assert(TRACKS_MOST < 10000, "roles do not share numbers");
	return 1 + (unsigned)role * 10000 + track;
}

/* Nanoseconds as what the format counts, microseconds, from the beginning. */
static void put_time(const struct trace *trace, const char *name, uint64_t ns)
{
	fprintf(trace->stream, "\"%s\":%" PRIu64 ".%03" PRIu64 ",", name, ns / 1000, ns % 1000);
}

/* What began before the trace was opened begins with it. */
static uint64_t since_begin_ns(const struct trace *trace, uint64_t at_ns)
{
	return at_ns > trace->begin_ns ? at_ns - trace->begin_ns : 0;
}

static void put_event(struct trace *trace, const struct trace_event *event, uint64_t n_pieces)
{
	const uint64_t begin_ns = since_begin_ns(trace, event->begin_ns);
	const uint64_t end_ns = since_begin_ns(trace, event->end_ns);

	fprintf(trace->stream, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",", event->name,
		event->category);
	put_time(trace, "ts", begin_ns);
	put_time(trace, "dur", end_ns > begin_ns ? end_ns - begin_ns : 0);
	fprintf(trace->stream,
		"\"pid\":%ld,\"tid\":%u,\"args\":{\"item\":%" PRIu64 ",\"bytes\":%" PRIu64,
		trace->pid, tid_of(event->role, event->track), event->item, event->nbytes);
	if (n_pieces > 1)
		fprintf(trace->stream, ",\"pieces\":%" PRIu64, n_pieces);
	fputs("}},\n", trace->stream);
	trace->n_written++;
}

static void put_name(struct trace *trace, const struct trace_event *event)
{
	const enum track_role role = event->role;
	const uint32_t track = event->track;
	const unsigned tid = tid_of(role, track);

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
static struct collection *find_collection(struct trace *trace, enum track_role role, uint32_t track)
{
	struct collection *grown;

	if (track >= trace->n[role]) {
		grown = reallocarray(trace->of[role], track + UINT64_C(1), sizeof *grown);
		if (!grown)
			return NULL;
		trace->of[role] = grown;
		while (trace->n[role] <= track)
			grown[trace->n[role]++] = (struct collection){ 0 };
	}
	return &trace->of[role][track];
}

/* Write what was collected, one thing behind the other. */
static void put_collection(struct trace *trace, enum track_role role, uint32_t track)
{
	struct collection *collection = &trace->of[role][track];
	uint64_t at_ns = collection->begin_ns;

	for (unsigned i = 0; i < collection->n; i++) {
		const struct done *done = &collection->done[i];
		const struct trace_event event = {
			.name = done->name,
			.category = done->category,
			.begin_ns = at_ns,
			.end_ns = at_ns + done->busy_ns,
			.role = role,
			.track = track,
			.item = done->item,
			.nbytes = done->nbytes,
		};

		put_event(trace, &event, done->n_pieces);
		at_ns += done->busy_ns;
	}
	collection->n = 0;
}

/* What was done of that kind so far; a new one if there is none. NULL: there are too many. */
static struct done *find_done(struct collection *collection, const struct trace_event *event)
{
	struct done *done = collection->done;

	for (unsigned i = 0; i < collection->n; i++, done++)
		if (done->name == event->name && done->category == event->category)
			return done;
	if (collection->n == MOST_KINDS)
		return NULL;
	*done = (struct done){ .name = event->name,
			       .category = event->category,
			       .item = event->item };
	collection->n++;
	return done;
}

static void collect(struct trace *trace, struct collection *collection,
		    const struct trace_event *event)
{
	struct done *done;

	if (collection->n && event->end_ns > collection->begin_ns + trace->while_ns)
		put_collection(trace, event->role, event->track);
	if (collection->n == 0)
		collection->begin_ns = event->begin_ns;
	done = find_done(collection, event);
	if (!done) {
		put_collection(trace, event->role, event->track);
		collection->begin_ns = event->begin_ns;
		done = find_done(collection, event);
	}
	done->busy_ns += event->end_ns - event->begin_ns;
	done->nbytes += event->nbytes;
	done->n_pieces++;
}

/* When so much is written that it has to be less from now on. */
static void lengthen_while(struct trace *trace, uint64_t now_ns)
{
	if (trace->n_written < trace->n_next)
		return;
	trace->while_ns = trace->while_ns ? trace->while_ns * LONGER :
					    since_begin_ns(trace, now_ns) / FIRST_PART + 1;
	trace->n_next += trace->n_exact / 4 + 1;
}

void trace_add(struct trace *trace, const struct trace_event *event)
{
	struct collection *collection;

	if (!trace)
		return;
	collection = find_collection(trace, event->role, event->track);
	if (!collection)
		return;
	if (!collection->is_named)
		put_name(trace, event);
	collection->is_named = true;
	lengthen_while(trace, event->end_ns);
	if (trace->while_ns && event->role != TRACK_PHASES)
		collect(trace, collection, event);
	else
		put_event(trace, event, 1);
}

void trace_count(struct trace *trace, const char *name, uint64_t at_ns, uint64_t nbytes)
{
	if (!trace)
		return;
	fprintf(trace->stream, "{\"name\":\"%s\",\"ph\":\"C\",", name);
	put_time(trace, "ts", since_begin_ns(trace, at_ns));
	fprintf(trace->stream, "\"pid\":%ld,\"args\":{\"bytes\":%" PRIu64 "}},\n", trace->pid,
		nbytes);
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	for (enum track_role role = 0; role < N_TRACK_ROLES; role++) {
		for (uint32_t track = 0; track < trace->n[role]; track++)
			put_collection(trace, role, track);
		free(trace->of[role]);
	}
	if (trace->name[0])
		fprintf(trace->stream,
			"{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%ld,"
			"\"args\":{\"sort_index\":%ld}},\n",
			trace->pid, trace->pid);
	fprintf(trace->stream,
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,"
		"\"args\":{\"name\":\"%s\"}}%s",
		trace->pid, trace->name[0] ? trace->name : "gsort", closing);
	free(trace);
}
