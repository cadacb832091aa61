/*
 * test_print_diagnostics - one line a message, with the options that help
 */
#include "tools/cli/print_diagnostics.h"
#include "src/options/hint_text.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "tests/support/capture_output.h"

#include <cmocka.h>
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

/* What has been printed; from now on it is not captured any more. */
static const char *printed(void)
{
	fflush(stderr);
	dup2(standard_error, STDERR_FILENO);
	close(standard_error);
	read_text_file(path, text);
	unlink(path);
	return text;
}

static void message_is_one_line_of_the_program(void **state)
{
	(void)state;
	warn("a");
	notice("b\n%s", "\033[1mc");
	fail(-EIO, "d: %m");
	fail(-EIO, "not the first");
	assert_string_equal(printed(), "gsort: warning: a\n"
				       "gsort: b$'\\n\\033'[1mc\n"
				       "gsort: d: Input/output error\n");
}

static void hints_are_worded_as_options(void **state)
{
	(void)state;
	warn_hint(HINT_ABOUT_TRACE, 0, "a");
	warn_hint(HINT_MEMORY_NEEDED, 12, "b");
	fail_hint(-ENOMEM, HINT_LESS_MEMORY, 0, "c: %m");
	assert_string_equal(printed(), "gsort: warning: --trace: a\n"
				       "gsort: warning: b; it needs -S of at least 12M\n"
				       "gsort: c: Cannot allocate memory; try a smaller -S\n");
}

static void every_hint_names_an_option(void **state)
{
	(void)state;
	for (enum hint hint = HINT_NONE + 1; hint < N_HINTS; hint++) {
		const struct message message = { .hint = hint, .number = UINT64_MAX };
		struct hint_text words;

		hint_text_get(&message, &words);
		assert_true(*words.prefix || *words.suffix);
		assert_non_null(strchr(*words.prefix ? words.prefix : words.suffix, '-'));
		assert_true(strlen(words.suffix) + 1 < sizeof words.suffix);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(message_is_one_line_of_the_program, capture),
		cmocka_unit_test_setup(hints_are_worded_as_options, capture),
		cmocka_unit_test(every_hint_names_an_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
