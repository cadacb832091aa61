/*
 * test_trace - the file is JSON that a trace viewer takes, whoever adds to it
 */
#include "src/base/status.h"
#include "src/base/trace.h"
#include "tests/support/captured.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N_THREADS = 4, N_EVENTS = 100 };

static char path[32], text[CAPTURED_NBYTES];

static int make_path(void **state)
{
	(void)state;
	make_file(path);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
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
	struct trace *trace;

	(void)state;
	assert_int_equal(trace_open(path, &trace), 0);
	assert_int_equal(trace_close(trace), 0);
	read_file(path, text);
	assert_int_equal(count_objects(), 1);
}

static void event_tells_when_where_and_how_much(void **state)
{
	struct trace_event event = {
		.name = "sort", .category = "work", .track = 3, .item = 17, .nbytes = 4096
	};
	struct trace *trace;

	(void)state;
	assert_int_equal(trace_open(path, &trace), 0);
	event.begin_ns = trace_now_ns() + 1000000;
	event.end_ns = event.begin_ns + 1234567;
	trace_add(trace, &event);
	assert_int_equal(trace_close(trace), 0);
	read_file(path, text);
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
	struct trace *trace;

	(void)state;
	assert_int_equal(trace_open(path, &trace), 0);
	trace_add(trace, &event);
	assert_int_equal(trace_close(trace), 0);
	assert_non_null(strstr(read_file(path, text), "\"ts\":0.000,\"dur\":0.000,"));
}

static void *add_events(void *arg)
{
	struct trace *trace = arg;

	for (uint64_t i = 0; i < N_EVENTS; i++) {
		const struct trace_event event = { .name = "merge",
						   .category = "work",
						   .begin_ns = trace_now_ns(),
						   .end_ns = trace_now_ns(),
						   .item = i };

		trace_add(trace, &event);
	}
	return NULL;
}

static void threads_do_not_mix_their_events(void **state)
{
	pthread_t threads[N_THREADS];
	struct trace *trace;

	(void)state;
	assert_int_equal(trace_open(path, &trace), 0);
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_events, trace), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(trace_close(trace), 0);
	read_file(path, text);
	assert_int_equal(count_objects(), N_THREADS * N_EVENTS + 1);
}

static void no_trace_is_fine(void **state)
{
	const struct trace_event event = { .name = "read", .category = "work" };

	(void)state;
	trace_add(NULL, &event);
	assert_int_equal(trace_close(NULL), 0);
}

static void unwritable_path_is_named(void **state)
{
	struct trace *trace;

	(void)state;
	status_reset(true);
	assert_int_equal(trace_open("/no/such/directory/t.json", &trace), -ENOENT);
	assert_non_null(strstr(status_last(), "/no/such/directory/t.json"));
}

static void full_disk_is_reported_at_the_end(void **state)
{
	struct trace *trace;

	(void)state;
	status_reset(true);
	assert_int_equal(trace_open("/dev/full", &trace), 0);
	for (int i = 0; i < 10; i++)
		add_events(trace); /* more than stdio's buffer */
	assert_int_equal(trace_close(trace), -ENOSPC);
	assert_non_null(strstr(status_last(), "/dev/full"));
}

/* The disk has room again when the file is closed, but the events between are lost. */
static void gap_in_the_file_is_reported_at_the_end(void **state)
{
	struct rlimit before, limit;
	struct trace *trace;

	(void)state;
	status_reset(true);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(trace_open(path, &trace), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 10; i++)
		add_events(trace);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(trace_close(trace), -EFBIG);
	assert_non_null(strstr(status_last(), path));
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(empty_trace_is_valid),
		FILE_TEST(event_tells_when_where_and_how_much),
		FILE_TEST(event_before_the_start_begins_with_it),
		FILE_TEST(threads_do_not_mix_their_events),
		cmocka_unit_test(no_trace_is_fine),
		cmocka_unit_test(unwritable_path_is_named),
		FILE_TEST(gap_in_the_file_is_reported_at_the_end),
		cmocka_unit_test(full_disk_is_reported_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
