/*
 * test_trace - the file is JSON that a trace viewer takes, whoever adds to it
 */
#include "src/base/trace.h"
#include "tests/support/captured.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N_THREADS = 4, N_EVENTS = 100 };

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

/* What is in it, in `text`. */
static const char *close_trace(struct trace *trace)
{
	trace_close(trace);
	rewind(stream);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	fclose(stream);
	return text;
}

/* Is the text an array with one object per line, a comma between any two? Their number, or -1. */
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

static void empty_trace_is_valid(void **state)
{
	struct trace *trace = open_trace();

	(void)state;
	close_trace(trace);
	assert_int_equal(count_objects(), 1);
}

static void event_tells_when_where_and_how_much(void **state)
{
	struct trace_event event = {
		.name = "sort", .category = "work", .track = 3, .item = 17, .nbytes = 4096
	};
	struct trace *trace = open_trace();

	(void)state;
	event.begin_ns = clock_now_ns() + 1000000;
	event.end_ns = event.begin_ns + 1234567;
	trace_add(trace, &event);
	close_trace(trace);
	assert_int_equal(count_objects(), 2);
	assert_non_null(strstr(text, "{\"name\":\"sort\",\"cat\":\"work\",\"ph\":\"X\",\"ts\":"));
	assert_non_null(strstr(text, ",\"dur\":1234.567,\"pid\":"));
	assert_non_null(
		strstr(text, ",\"tid\":1073741827,\"args\":{\"item\":17,\"bytes\":4096}},\n"));
}

static void event_before_the_start_begins_with_it(void **state)
{
	const struct trace_event event = {
		.name = "read", .category = "work", .begin_ns = 1, .end_ns = 2
	};
	struct trace *trace = open_trace();

	(void)state;
	trace_add(trace, &event);
	assert_non_null(strstr(close_trace(trace), "\"ts\":0.000,\"dur\":0.000,"));
}

static void *add_events(void *arg)
{
	struct trace *trace = arg;

	for (uint64_t i = 0; i < N_EVENTS; i++) {
		const struct trace_event event = { .name = "merge",
						   .category = "work",
						   .begin_ns = clock_now_ns(),
						   .end_ns = clock_now_ns(),
						   .item = i };

		trace_add(trace, &event);
	}
	return NULL;
}

static void threads_do_not_mix_their_events(void **state)
{
	pthread_t threads[N_THREADS];
	struct trace *trace = open_trace();

	(void)state;
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_events, trace), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	close_trace(trace);
	assert_int_equal(count_objects(), N_THREADS * N_EVENTS + 1);
}

static void no_trace_is_fine(void **state)
{
	const struct trace_event event = { .name = "read", .category = "work" };

	(void)state;
	trace_add(NULL, &event);
	trace_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_trace_is_valid),
		cmocka_unit_test(event_tells_when_where_and_how_much),
		cmocka_unit_test(event_before_the_start_begins_with_it),
		cmocka_unit_test(threads_do_not_mix_their_events),
		cmocka_unit_test(no_trace_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
