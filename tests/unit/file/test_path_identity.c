/*
 * test_path_identity - no link and no spelling hides which file a path leads to
 */
#include "io/file/path_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A directory with a file, links to it, and links to nothing. */
static int enter_directory(void **state)
{
	char path[] = "/tmp/gsort-test.XXXXXX";

	(void)state;
	if (!mkdtemp(path) || chdir(path) < 0 || mkdir("d", 0777) < 0)
		return -1;
	close(open("file", O_CREAT | O_WRONLY, 0666));
	return link("file", "hard") | symlink("file", "soft") | symlink("new", "dangling") |
	       symlink("loop", "loop") | symlink("/dev/fd/5", "five");
}

static int leave_directory(void **state)
{
	(void)state;
	return system("rm -r \"$(pwd -P)\"");
}

static bool are_same(const char *a, const char *b)
{
	struct place x, y;
	bool same;

	assert_int_equal(place_of_path(a, &x), 0);
	assert_int_equal(place_of_path(b, &y), 0);
	same = place_is_same(&x, &y);
	assert_int_equal(place_is_same(&y, &x), same);
	place_free(&x);
	place_free(&y);
	return same;
}

static void rates_lead_to_the_file(void **state)
{
	(void)state;
	assert_true(are_same("file", "./d/../file"));
	assert_true(are_same("file", "hard"));
	assert_true(are_same("file", "soft"));
	assert_false(are_same("file", "d"));
	assert_false(are_same("file", "new"));
}

static void file_that_is_not_there_has_a_place(void **state)
{
	(void)state;
	assert_true(are_same("new", "./new"));
	assert_true(are_same("new", "d/.././/new"));
	assert_true(are_same("new", "dangling"));
	assert_true(are_same("d/new", "d/./new"));
	assert_false(are_same("new", "newer"));
	assert_false(are_same("new", "d/new"));
}

static void file_of_a_directory_that_is_not_there_has_a_place(void **state)
{
	(void)state;
	assert_true(are_same("e/new", "./e//new"));
	assert_true(are_same("e/new", "e/./f/../new"));
	assert_true(are_same("new", "e/../new"));
	assert_true(are_same("d/e/f/new", "d/e/f/../f/new"));
	assert_false(are_same("e/new", "f/new"));
	assert_false(are_same("e/new", "enew"));
}

static void what_leads_nowhere_is_an_error(void **state)
{
	struct place place;

	(void)state;
	assert_int_equal(place_of_path("file/new", &place), -ENOTDIR);
	assert_int_equal(place_of_path("loop", &place), -ELOOP);
	assert_int_equal(place_of_descriptor(777, &place), -EBADF);
}

static void descriptor_is_the_file_that_is_open(void **state)
{
	struct place open_file, file;
	const int fd = open("file", O_RDONLY);

	(void)state;
	assert_int_equal(place_of_descriptor(fd, &open_file), 0);
	assert_int_equal(place_of_path("hard", &file), 0);
	assert_true(place_is_same(&open_file, &file));
	close(fd);
}

static void path_that_stands_for_a_descriptor_is_told(void **state)
{
	(void)state;
	assert_int_equal(place_descriptor("/dev/fd/3"), 3);
	assert_int_equal(place_descriptor("/proc/self/fd/12"), 12);
	assert_int_equal(place_descriptor("/dev/stdout"), 1);
	assert_int_equal(place_descriptor("five"), 5);
	assert_int_equal(place_descriptor("/dev/fd/3x"), -1);
	assert_int_equal(place_descriptor("/dev/fd/"), -1);
	assert_int_equal(place_descriptor("/dev/fd/99999999999"), -1);
	assert_int_equal(place_descriptor("file"), -1);
	assert_int_equal(place_descriptor("soft"), -1);
	assert_int_equal(place_descriptor("loop"), -1);
	assert_int_equal(place_descriptor("new"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_lead_to_the_file),
		cmocka_unit_test(file_that_is_not_there_has_a_place),
		cmocka_unit_test(file_of_a_directory_that_is_not_there_has_a_place),
		cmocka_unit_test(what_leads_nowhere_is_an_error),
		cmocka_unit_test(descriptor_is_the_file_that_is_open),
		cmocka_unit_test(path_that_stands_for_a_descriptor_is_told),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
