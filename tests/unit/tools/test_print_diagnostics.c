/*
 * test_print_diagnostics - one line a message
 */
#include "tools/cli/tool_main.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/support/capture_output.h"
#include "tests/support/unit_test.h"
#undef fail /* cmocka's: here it is the one that is printed */

static char path[32], text[CAPTURED_NBYTES];
static int standard_error;

static int capture(void **state)
{
	int fd;

	(void)state;
	make_temp_file(path);
	fflush(stderr);
	standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	print_diagnostics_as("gsort");
	return dup2(fd, STDERR_FILENO) < 0 || close(fd) < 0;
}

/* Return the printed text, and stop capturing. */
static const char *printed(void)
{
	fflush(stderr);
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	read_text_file(path, text);
	unlink(path);
	return text;
}

TEST_WITH(message_is_one_line_of_the_program, capture, NULL)
{
	warn("a");
	notice("b\n%s", "\033[1mc");
	fail(-EIO, "d: %m");
	fail(-EIO, "not the first");
	assert_string_equal(printed(), "gsort: warning: a\n"
				       "gsort: b$'\\n\\033'[1mc\n"
				       "gsort: d: Input/output error\n");
}
