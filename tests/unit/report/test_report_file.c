/*
 * test_report_file - a report that is not complete leaves an older one; tests/cli has the rest
 */
#include "src/report/reports.h"
#include "tests/support/io_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "tests/support/unit_test.h"

static const char older[] = "older";

/* Make an older report. */
static int start(void **state)
{
	if (fixture_start(state) < 0)
		return -1;
	write_text("report", older);
	return 0;
}

static int open_trace(const char *name, struct reports *ret_reports)
{
	const char *const paths[N_REPORTS] = { [REPORT_TRACE] = name };

	*ret_reports = (struct reports){ 0 };
	return reports_open(&syscalls_plain, paths, ret_reports);
}

/* The disk is full for a while: what was not written then is missing. */
TEST_WITH(gap_in_the_file_is_reported, start, fixture_finish)
{
	const struct trace_event event = { .name = "read", .category = "work", .stage = N_STAGES };
	struct timeline timeline = { 0 };
	struct rlimit before, limit;
	const char *path = fixture_path("report");
	struct reports reports;

	assert_int_equal(open_trace(path, &reports), 0);
	timeline.trace = reports.trace;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 1000; i++) /* more than a buffer holds */
		timeline_add(&timeline, &event);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	timeline_destroy(&timeline);
	assert_int_equal(reports_write(NULL, NULL, false, &reports), -EFBIG);
	assert_non_null(strstr(captured_messages_error(), path));
	assert_true(file_contains(path, older, strlen(older)));
}

/* The descriptor would be that of a file that gsort opened itself. */
TEST_WITH(descriptor_that_was_not_given_is_refused, start, fixture_finish)
{
	const char *path = fixture_path("report");
	const int ours = open(path, O_WRONLY | O_CLOEXEC);
	struct reports reports;
	char name[32];

	snprintf(name, sizeof name, "/dev/fd/%d", ours);
	assert_int_equal(open_trace(name, &reports), -EBADF);
	reports_discard(&reports);
	close(ours);
	assert_true(file_contains(path, older, strlen(older)));
}
