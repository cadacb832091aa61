/*
 * test_path_identity - links and spellings do not change the identity of a file
 */
#include "io/file/path_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/unit_test.h"

/* A directory with a file, links to it, and dangling links. */
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

static int remove_directory(void **state)
{
	(void)state;
	return system("rm -r \"$(pwd -P)\"");
}

static bool is_same_path(const char *a, const char *b)
{
	struct path_identity x, y;
	bool same;

	assert_int_equal(path_identity_resolve(a, &x), 0);
	assert_int_equal(path_identity_resolve(b, &y), 0);
	same = path_identity_equal(&x, &y);
	assert_int_equal(path_identity_equal(&y, &x), same);
	path_identity_free(&x);
	path_identity_free(&y);
	return same;
}

TEST(paths_to_one_file_are_equal)
{
	assert_true(is_same_path("file", "./d/../file"));
	assert_true(is_same_path("file", "hard"));
	assert_true(is_same_path("file", "soft"));
	assert_false(is_same_path("file", "d"));
	assert_false(is_same_path("file", "new"));
}

TEST(missing_file_has_an_identity)
{
	assert_true(is_same_path("new", "./new"));
	assert_true(is_same_path("new", "d/.././/new"));
	assert_true(is_same_path("new", "dangling"));
	assert_true(is_same_path("d/new", "d/./new"));
	assert_false(is_same_path("new", "newer"));
	assert_false(is_same_path("new", "d/new"));
}

TEST(file_in_missing_directory_has_identity)
{
	assert_true(is_same_path("e/new", "./e//new"));
	assert_true(is_same_path("e/new", "e/./f/../new"));
	assert_true(is_same_path("new", "e/../new"));
	assert_true(is_same_path("d/e/f/new", "d/e/f/../f/new"));
	assert_false(is_same_path("e/new", "f/new"));
	assert_false(is_same_path("e/new", "enew"));
}

TEST(unresolvable_path_is_an_error)
{
	struct path_identity identity;

	assert_int_equal(path_identity_resolve("file/new", &identity), -ENOTDIR);
	assert_int_equal(path_identity_resolve("loop", &identity), -ELOOP);
	assert_int_equal(path_identity_from_fd(777, &identity), -EBADF);
}

TEST(descriptor_has_its_files_identity)
{
	struct path_identity open_file, file;
	const int fd = open("file", O_RDONLY);

	assert_int_equal(path_identity_from_fd(fd, &open_file), 0);
	assert_int_equal(path_identity_resolve("hard", &file), 0);
	assert_true(path_identity_equal(&open_file, &file));
	close(fd);
}

TEST(descriptor_paths_are_recognised)
{
	assert_int_equal(path_to_descriptor("/dev/fd/3"), 3);
	assert_int_equal(path_to_descriptor("/proc/self/fd/12"), 12);
	assert_int_equal(path_to_descriptor("/dev/stdout"), 1);
	assert_int_equal(path_to_descriptor("five"), 5);
	assert_int_equal(path_to_descriptor("/dev/fd/3x"), -1);
	assert_int_equal(path_to_descriptor("/dev/fd/"), -1);
	assert_int_equal(path_to_descriptor("/dev/fd/99999999999"), -1);
	assert_int_equal(path_to_descriptor("file"), -1);
	assert_int_equal(path_to_descriptor("soft"), -1);
	assert_int_equal(path_to_descriptor("loop"), -1);
	assert_int_equal(path_to_descriptor("new"), -1);
}

GROUP_FIXTURE(enter_directory, remove_directory)
