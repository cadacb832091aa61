/*
 * test_report_file - a report appears when it is complete, and an older one stays until then
 */
#include "io/file/file.h"
#include "src/report/report_file.h"
#include "tests/support/capture_output.h"
#include "tests/support/captured_messages.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h> /* last: it makes a macro of fail */

static char path[32], text[CAPTURED_NBYTES];

/* An older report. */
static int make_path(void **state)
{
	FILE *older;

	(void)state;
	messages_reset(true);
	make_file(path);
	older = fopen(path, "w");
	return !older || fputs("older", older) < 0 || fclose(older) != 0;
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

static void older_report_stays_until_the_new_one_is_complete(void **state)
{
	struct report_file *file = open_report();

	(void)state;
	fputs("new", report_file_stream(file));
	fflush(report_file_stream(file));
	assert_string_equal(read_file(path, text), "older");
	assert_int_equal(report_file_commit(file), 0);
	assert_string_equal(read_file(path, text), "new");
}

static void older_report_survives_an_abort(void **state)
{
	struct report_file *file = open_report();

	(void)state;
	fputs("new", report_file_stream(file));
	report_file_abort(file);
	assert_string_equal(read_file(path, text), "older");
}

static void no_report_is_fine(void **state)
{
	(void)state;
	assert_int_equal(report_file_commit(NULL), 0);
	report_file_abort(NULL);
}

static void unwritable_path_is_named_at_once(void **state)
{
	struct report_file *file;

	(void)state;
	assert_int_equal(report_file_open(&syscalls_plain, "/no/such/directory/r", &file), -ENOENT);
	assert_non_null(strstr(messages_last(), "/no/such/directory/r"));
	messages_reset(true);
	assert_int_equal(report_file_open(&syscalls_plain, "/tmp", &file), -EISDIR);
	assert_non_null(strstr(messages_last(), "/tmp"));
}

static void full_disk_is_reported(void **state)
{
	struct report_file *file;

	(void)state;
	assert_int_equal(report_file_open(&syscalls_plain, "/dev/full", &file), 0);
	fputs("new", report_file_stream(file));
	assert_int_equal(report_file_commit(file), -ENOSPC);
	assert_non_null(strstr(messages_last(), "/dev/full"));
}

/* The disk has room again when the file is closed, but what is between is lost. */
static void gap_in_the_file_is_reported(void **state)
{
	struct report_file *file = open_report();
	struct rlimit before, limit;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 10000; i++)
		fputs("more than a buffer holds", report_file_stream(file));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fputs("end", report_file_stream(file));
	assert_int_equal(report_file_commit(file), -EFBIG);
	assert_non_null(strstr(messages_last(), path));
	assert_string_equal(read_file(path, text), "older");
}

static void text_goes_on_where_a_descriptor_stands(void **state)
{
	struct report_file *file;
	const int fd = open(path, O_WRONLY | O_APPEND);
	char name[32];

	(void)state;
	snprintf(name, sizeof name, "/dev/fd/%d", fd);
	assert_int_equal(report_file_open(&syscalls_plain, name, &file), 0);
	fputs(" and new", report_file_stream(file));
	assert_int_equal(report_file_commit(file), 0);
	close(fd);
	assert_string_equal(read_file(path, text), "older and new");
}

/* It would be one of the files that gsort itself has opened. */
static void descriptor_that_was_not_given_is_refused(void **state)
{
	const int ours = open(path, O_WRONLY | O_CLOEXEC), readable = open(path, O_RDONLY);
	struct report_file *file;
	char name[32];

	(void)state;
	snprintf(name, sizeof name, "/dev/fd/%d", ours);
	assert_int_equal(report_file_open(&syscalls_plain, name, &file), -EBADF);
	snprintf(name, sizeof name, "/dev/fd/%d", readable);
	assert_int_equal(report_file_open(&syscalls_plain, name, &file), -EBADF);
	close(ours);
	close(readable);
	assert_int_equal(report_file_open(&syscalls_plain, "/dev/fd/777", &file), -EBADF);
	assert_string_equal(read_file(path, text), "older");
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(older_report_stays_until_the_new_one_is_complete),
		FILE_TEST(older_report_survives_an_abort),
		cmocka_unit_test(no_report_is_fine),
		FILE_TEST(unwritable_path_is_named_at_once),
		FILE_TEST(full_disk_is_reported),
		FILE_TEST(gap_in_the_file_is_reported),
		FILE_TEST(text_goes_on_where_a_descriptor_stands),
		FILE_TEST(descriptor_that_was_not_given_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
