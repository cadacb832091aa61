/*
 * test_files0 - names of inputs come from a list
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

/* Bytes of a packet that are not read at once are lost. No name may be incomplete or missing. */
TEST(list_that_comes_in_packets_is_whole)
{
	enum { N = 100, LENGTH = 1000 };
	const int saved = dup(STDIN_FILENO);
	char name[LENGTH] = "";
	struct options options;
	int pipe_fds[2];

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
