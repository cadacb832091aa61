/*
 * test_trace - the file is JSON for a trace viewer, of bounded size
 */
#include "src/base/trace.h"
#include "tests/support/capture_output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/unit_test.h"

static char text[CAPTURED_NBYTES];
static FILE *stream;

static struct trace *open_trace(void)
{
	struct trace *trace;

	stream = tmpfile();
	assert_non_null(stream);
	assert_int_equal(trace_open(stream, &trace), 0);
	return trace;
}

/* Close the trace and return its text. */
static const char *close_trace(struct trace *trace)
{
	trace_close(trace);
	rewind(stream);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	fclose(stream);
	return text;
}

/* Return the number of objects if the text is an array with one object per line; else -1. */
static int count_objects(void)
{
	int n = 0;

	if (strncmp(text, "[\n", 2) != 0 || strcmp(text + strlen(text) - 3, "\n]\n") != 0)
		return -1;
	for (const char *line = text + 2; *line != ']'; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');
		const bool is_last = end[1] == ']';

		if (*line != '{' || strncmp(is_last ? end - 1 : end - 2, is_last ? "}" : "},",
					    is_last ? 1 : 2) != 0)
			return -1;
		n++;
	}
	return n;
}

TEST(empty_trace_is_valid)
{
	struct trace *trace = open_trace();

	close_trace(trace);
	assert_int_equal(count_objects(), 1);
}

TEST(event_has_time_track_and_size)
{
	struct trace_event event = { .name = "sort",
				     .category = "work",
				     .role = TRACK_CPU_QUEUES,
				     .track = 3,
				     .item = 17,
				     .nbytes = 4096 };
	struct trace *trace = open_trace();

	event.begin_ns = clock_now_ns() + 1000000;
	event.end_ns = event.begin_ns + 1234567;
	trace_add(trace, &event);
	close_trace(trace);
	assert_int_equal(count_objects(), 4);
	assert_non_null(strstr(text, "{\"name\":\"sort\",\"cat\":\"work\",\"ph\":\"X\",\"ts\":"));
	assert_non_null(strstr(text, ",\"dur\":1234.567,\"pid\":"));
	assert_non_null(strstr(text, ",\"tid\":40004,\"args\":{\"item\":17,\"bytes\":4096}},\n"));
	assert_non_null(strstr(text, "\"tid\":40004,\"args\":{\"name\":\"CPU queue 4\"}},\n"));
	assert_non_null(strstr(text, "\"tid\":40004,\"args\":{\"sort_index\":40004}},\n"));
}

TEST(event_before_the_start_begins_with_it)
{
	const struct trace_event event = {
		.name = "read", .category = "work", .begin_ns = 1, .end_ns = 2
	};
	struct trace *trace = open_trace();

	trace_add(trace, &event);
	assert_non_null(strstr(close_trace(trace), "\"ts\":0.000,\"dur\":0.000,"));
}

TEST(counter_is_an_event)
{
	struct trace *trace = open_trace();

	trace_add_counter(trace, "memory", 0, 4711);
	assert_non_null(
		strstr(close_trace(trace), "{\"name\":\"memory\",\"ph\":\"C\",\"ts\":0.000,"));
	assert_non_null(strstr(text, "\"args\":{\"bytes\":4711}},\n"));
}

/*
 * Trace n events of work and n of waiting, 10 us each, on one track; returns the sum of their
 * bytes.
 */
static uint64_t trace_many(uint64_t n, uint64_t *ret_n_events)
{
	struct trace *trace = open_trace();
	struct trace_event event = { .role = TRACK_WRITERS };
	uint64_t sum = 0;

	trace_set_limit(trace, 200);
	event.end_ns = clock_now_ns();
	for (uint64_t i = 0; i < 2 * n; i++) {
		event.name = i % 2 ? "wait" : "write";
		event.category = event.name;
		event.nbytes = i % 2 ? 0 : 3;
		event.begin_ns = event.end_ns;
		event.end_ns += 10000;
		trace_add(trace, &event);
	}
	trace_close(trace);
	rewind(stream);
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

TEST(no_trace_is_fine)
{
	const struct trace_event event = { .name = "read", .category = "work" };

	trace_add(NULL, &event);
	trace_add_counter(NULL, "memory", 0, 0);
	trace_close(NULL);
}
