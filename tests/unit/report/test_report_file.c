/*
 * test_report_file - a report appears when it is complete; until then an older one remains
 */
#include "io/file/file.h"
#include "src/report/reports.h"
#include "tests/support/capture_output.h"
#include "tests/support/captured_messages.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "tests/support/unit_test.h"

static char path[32], text[CAPTURED_NBYTES];

/* Make an older report. */
static int make_path(void **state)
{
	FILE *old_report;

	(void)state;
	captured_messages_reset(true);
	make_temp_file(path);
	old_report = fopen(path, "w");
	return !old_report || fputs("older", old_report) < 0 || fclose(old_report) != 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

static struct report_file *open_report(void)
{
	struct report_file *file;

	assert_int_equal(report_file_open(&syscalls_plain, path, &file), 0);
	return file;
}

TEST(null_report_is_accepted)
{
	assert_int_equal(report_file_commit(NULL, false), 0);
	report_file_abort(NULL);
}

/* The disk is full for a while: what was not written then is missing. */
TEST_WITH(gap_in_the_file_is_reported, make_path, remove_path)
{
	struct report_file *file = open_report();
	struct rlimit before, limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 10000; i++)
		fputs("more than a buffer holds", report_file_stream(file));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fputs("end", report_file_stream(file));
	assert_int_equal(report_file_commit(file, false), -EFBIG);
	assert_non_null(strstr(captured_messages_error(), path));
	assert_string_equal(read_text_file(path, text), "older");
}

/* The descriptor would be that of a file that gsort opened itself. */
TEST_WITH(descriptor_that_was_not_given_is_refused, make_path, remove_path)
{
	const int ours = open(path, O_WRONLY | O_CLOEXEC), readable = open(path, O_RDONLY);
	struct report_file *file;
	char name[32];

	snprintf(name, sizeof name, "/dev/fd/%d", ours);
	assert_int_equal(report_file_open(&syscalls_plain, name, &file), -EBADF);
	snprintf(name, sizeof name, "/dev/fd/%d", readable);
	assert_int_equal(report_file_open(&syscalls_plain, name, &file), -EBADF);
	close(ours);
	close(readable);
	assert_int_equal(report_file_open(&syscalls_plain, "/dev/fd/777", &file), -EBADF);
	assert_string_equal(read_text_file(path, text), "older");
}
