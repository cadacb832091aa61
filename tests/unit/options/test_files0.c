/*
 * test_files0 - names of inputs come from a list
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

/* The path of the list that write_list() wrote. Tests unlink it. */
static char list_path[] = "/tmp/test_options.XXXXXX";

static const char *write_list(const char *text, size_t nbytes)
{
	int fd;

	strcpy(list_path + strlen(list_path) - 6, "XXXXXX");
	fd = mkstemp(list_path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, nbytes), (ssize_t)nbytes);
	close(fd);
	return list_path;
}

static void long_lists_of_file_names_are_read(void **state)
{
	enum { N = 20000 };
	char *text = malloc(N * 8), *end = text;
	struct options options;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < N; i++)
		end += sprintf(end, "f%d", i) + 1;
	options = PARSE_VALID("--files0-from", write_list(text, (size_t)(end - text)), "-o", "out");
	unlink(list_path);
	free(text);
	assert_int_equal(options.spec.n_inputs, N);
	assert_string_equal(options.spec.inputs[N - 1], "f19999");
	options_free(&options);
}

/* Bytes of a packet that are not read at once are lost. No name may be incomplete or missing. */
static void list_that_comes_in_packets_is_whole(void **state)
{
	enum { N = 100, LENGTH = 1000 };
	const int saved = dup(STDIN_FILENO);
	char name[LENGTH] = "";
	struct options options;
	int pipe_fds[2];

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_DIRECT), 0);
	assert_true(fcntl(pipe_fds[1], F_SETPIPE_SZ, 1 << 20) >= N << 12);
	memset(name, 'x', LENGTH - 1);
	for (int i = 0; i < N; i++)
		assert_int_equal(write(pipe_fds[1], name, LENGTH), LENGTH);
	close(pipe_fds[1]);
	dup2(pipe_fds[0], STDIN_FILENO);
	close(pipe_fds[0]);
	options = PARSE_VALID("--files0-from=-", "-o", "out");
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(options.spec.n_inputs, N);
	for (int i = 0; i < N; i++)
		assert_string_equal(options.spec.inputs[i], name);
	options_free(&options);
}

static void wrong_lists_of_file_names_are_refused(void **state)
{
	(void)state;
	ASSERT_REFUSED("/no/such/list", "No such file", "--files0-from=/no/such/list", "-o", "out");
	ASSERT_REFUSED("no file names", "--files0-from", "--files0-from=/dev/null", "-o", "out");
	ASSERT_REFUSED("file name 2 is empty", "", "--files0-from", write_list("a\0\0b\0", 5), "-o",
		       "out");
	unlink(list_path);
	ASSERT_REFUSED("/tmp", "directory", "--files0-from=/tmp", "-o", "out");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(long_lists_of_file_names_are_read),
	cmocka_unit_test(list_that_comes_in_packets_is_whole),
	cmocka_unit_test(wrong_lists_of_file_names_are_refused),
};

UNIT_TESTS(files0, tests, NULL, NULL)
