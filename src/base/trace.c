/*
 * trace - a timeline in the Chrome trace event format (see trace.h)
 *
 * The stream's own buffer is the bounded memory: stdio writes it out when it is full. Each event is
 * formatted into a local array first, so the lock is held for a copy only.
 *
 * Every event ends with ",\n". The array is closed by an event that names the process, which so
 * takes no comma.
 */
#include "src/base/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/messages.h"

/* Numbered tracks are shown as threads of this process; thread ids in use are far from these. */
enum { FIRST_NUMBERED_TID = 1 << 30 };

struct trace {
	/* Set at creation. */
	uint64_t begin_ns; /* time 0 of the timeline */

	pthread_mutex_t lock;
	/* Under the lock. */
	FILE *stream; /* whose owner finds out what has failed */
};

static void put(struct trace *trace, const char *text)
{
	pthread_mutex_lock(&trace->lock);
	fputs(text, trace->stream);
	pthread_mutex_unlock(&trace->lock);
}

int trace_open(FILE *stream, struct trace **ret_trace)
{
	struct trace *trace = calloc(1, sizeof *trace);

	if (!trace)
		return fail_hint(-ENOMEM, HINT_ABOUT_TRACE, 0, "no memory for its events: %m");
	trace->stream = stream;
	trace->begin_ns = clock_now_ns();
	pthread_mutex_init(&trace->lock, NULL);
	put(trace, "[\n");
	*ret_trace = trace;
	return 0;
}

static unsigned tid_of(uint32_t track)
{
	return track == TRACE_THIS_THREAD ? (unsigned)syscall(SYS_gettid) :
					    FIRST_NUMBERED_TID + track;
}

void trace_add(struct trace *trace, const struct trace_event *event)
{
	char text[512];
	uint64_t begin_ns, end_ns, length_ns;

	if (!trace)
		return;
	/* What began before the trace was opened begins with it. */
	begin_ns = event->begin_ns > trace->begin_ns ? event->begin_ns - trace->begin_ns : 0;
	end_ns = event->end_ns > trace->begin_ns ? event->end_ns - trace->begin_ns : 0;
	length_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
	snprintf(text, sizeof text,
		 "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03" PRIu64
		 ",\"dur\":%" PRIu64 ".%03" PRIu64
		 ",\"pid\":%ld,\"tid\":%u,\"args\":{\"item\":%" PRIu64 ",\"bytes\":%" PRIu64
		 "}},\n",
		 event->name, event->category, begin_ns / 1000, begin_ns % 1000, length_ns / 1000,
		 length_ns % 1000, (long)getpid(), tid_of(event->track), event->item,
		 event->nbytes);
	put(trace, text);
}

void trace_close(struct trace *trace)
{
	char text[128];

	if (!trace)
		return;
	snprintf(text, sizeof text,
		 "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,"
		 "\"args\":{\"name\":\"gsort\"}}\n]\n",
		 (long)getpid());
	put(trace, text);
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}
