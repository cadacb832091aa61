/*
 * test_trace - the file of a trace is of bounded size; tests/cli/timeline.sh has its contents
 */
#include "src/base/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"

/* One of so many processes that each writes 200 events one by one. */
static const struct trace_process one_of_many = { .n_processes = 501 };

static char text[1 << 16];
static FILE *stream;
static struct timeline timeline;

static void open_timeline(void)
{
	struct trace_process process = one_of_many;

	stream = tmpfile();
	assert_non_null(stream);
	timeline = (struct timeline){ 0 };
	assert_int_equal(trace_open(stream, &timeline.trace), 0);
	process.begin_ns = clock_now_ns();
	trace_set_process(timeline.trace, &process);
}

/* Close the timeline; its file can be read from the beginning. */
static void close_timeline(void)
{
	trace_close(timeline.trace);
	timeline_destroy(&timeline);
	rewind(stream);
}

TEST(event_before_the_start_begins_with_it)
{
	const struct trace_event event = {
		.name = "read", .category = "work", .stage = N_STAGES, .begin_ns = 1, .end_ns = 2
	};

	open_timeline();
	timeline_add(&timeline, &event);
	close_timeline();
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	fclose(stream);
	assert_non_null(strstr(text, "\"ts\":0.000,\"dur\":0.000,"));
}

/*
 * Trace n events of work and n of waiting, 10 us each, on one track; returns the sum of their
 * bytes.
 */
static uint64_t trace_many(uint64_t n, uint64_t *ret_n_events)
{
	struct trace_event event = { .role = TRACK_WRITERS, .stage = N_STAGES };
	uint64_t sum = 0;

	open_timeline();
	event.end_ns = clock_now_ns();
	for (uint64_t i = 0; i < 2 * n; i++) {
		event.name = i % 2 ? "wait" : "write";
		event.category = event.name;
		event.nbytes = i % 2 ? 0 : 3;
		event.begin_ns = event.end_ns;
		event.end_ns += 10000;
		timeline_add(&timeline, &event);
	}
	close_timeline();
	*ret_n_events = 0;
	while (fgets(text, sizeof text, stream)) {
		const char *bytes = strstr(text, "\"bytes\":");

		*ret_n_events += bytes != NULL;
		sum += bytes ? strtoull(bytes + 8, NULL, 10) : 0;
	}
	fclose(stream);
	return sum;
}

TEST(trace_of_a_long_sort_is_bounded_complete_and_detailed)
{
	uint64_t n_events;

	assert_int_equal(trace_many(100, &n_events), 300);
	assert_int_equal(n_events, 200);
	assert_int_equal(trace_many(10000, &n_events), 30000);
	assert_in_range(n_events, 300, 600);
	assert_int_equal(trace_many(1000000, &n_events), 3000000);
	assert_in_range(n_events, 300, 1000);
}
