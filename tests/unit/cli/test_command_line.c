/*
 * test_command_line - help is printed or an error, and gsort has no options of gsort-mpi
 */
#include "src/cli/cli_main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/lib/api_cli.h"
#include "tests/support/unit_test.h"

static char last_failure[1024]; /* the last failure */

static void store_last_failure(void *context, enum gsort_severity kind, const char *text)
{
	(void)context;
	if (kind == GSORT_ERROR)
		snprintf(last_failure, sizeof last_failure, "%s", text);
}

static struct gsort *open_sort(void)
{
	struct gsort *sort;

	assert_int_equal(gsort_open(&sort), 0);
	assert_int_equal(gsort_set_message_callback(sort, store_last_failure, NULL), 0);
	return sort;
}

/* Take "gsort" and a word that asks, and answer, with standard output being `fd`. */
static int take_with_stdout(int fd, const char *word)
{
	char *argv[] = { "gsort", (char *)word, NULL };
	const int saved = dup(STDOUT_FILENO);
	struct gsort *sort = open_sort();
	int r;

	fflush(stdout);
	assert_true(saved >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	assert_int_equal(command_line_parse(&record_program, 2, argv, sort), COMMAND_LINE_BUILTIN);
	r = command_line_print_builtin(&record_program, sort);
	clearerr(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	close(saved);
	gsort_close(sort);
	return r;
}

TEST(help_that_cannot_be_written_is_an_error)
{
	const int full = open("/dev/full", O_WRONLY);

	assert_true(full >= 0);
	assert_true(take_with_stdout(full, "--help") < 0);
	close(full);
}

/* One table has the options of both. */
TEST(mpi_only_options_are_unknown_to_gsort)
{
	struct gsort_option option;
	struct gsort *sort = open_sort();
	unsigned n_single = 0, n_distributed = 0, n_only = 0;

	while (gsort_get_option(n_single, &option, sizeof option) == 0) {
		assert_string_not_equal(option.name, "timeout");
		assert_string_not_equal(option.name, "shared-memory");
		n_single++;
	}
	while (api_distributed_get_option(n_distributed, &option, sizeof option) == 0) {
		n_only += strcmp(option.name, "timeout") == 0 ||
			  strcmp(option.name, "shared-memory") == 0;
		n_distributed++;
	}
	assert_int_equal(n_only, 2);
	assert_int_equal(n_distributed, n_single + n_only);
	assert_int_equal(gsort_set_from_cli(sort, "timeout", "5"), -EINVAL);
	assert_string_equal(last_failure, "unknown option 'timeout'");
	assert_int_equal(gsort_set(sort, "timeout", "5"), -EINVAL);
	assert_null(gsort_get_set(sort, "timeout"));
	assert_int_equal(api_distributed_timeout_ns(sort), UINT64_C(60000000000));
	gsort_close(sort);
}
