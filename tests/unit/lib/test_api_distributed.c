/*
 * test_api_distributed - ranks that are not asked for the same do nothing of it
 */
#include "src/lib/api_cli.h"

#include <stdio.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/unit_test.h"

enum { N_RANKS = 4 };

/* An option, its values (NULL: none), and the ranks that are given it, as a bit mask. */
struct option_case {
	const char *option;
	const char *value, *other_value; /* of the first rank, and all others */
	unsigned rank_mask;
};

static void store_failure(void *context, enum gsort_severity kind, const char *text)
{
	if (kind == GSORT_ERROR)
		snprintf(context, MESSAGE_NBYTES, "%s", text);
}

static int compare_on_rank(struct comm *ranks, void *argument)
{
	const struct option_case *option_case = argument;
	const unsigned rank = comm_rank(ranks);
	char failure[MESSAGE_NBYTES] = "";
	struct gsort *sort;
	int r = gsort_open(&sort);

	if (r < 0)
		return r;
	api_distributed_set_comm(sort, ranks);
	gsort_set_message_callback(sort, store_failure, failure);
	if (option_case->rank_mask >> rank & 1)
		r = gsort_set_from_cli(sort, option_case->option,
				       rank == 0 ? option_case->value : option_case->other_value);
	if (r == 0)
		r = api_distributed_compare_options(sort);
	gsort_close(sort);
	return r < 0 && *failure ? (fail)(r, "%s", failure) : r;
}

/*
 * Compare the options on all ranks, and store the message of one rank. The others only find that
 * this rank has gone, for which MPI leaves them no time. "": no rank reports an error, and all
 * continue.
 */
static void compare_on_all_ranks(const struct option_case *option_case, unsigned reporting_rank,
				 char text[static 512])
{
	struct option_case argument_case = *option_case;
	struct fake_ranks ranks = { .size = N_RANKS,
				    .params = { .timeout_ns = UINT64_C(60) * 1000000000 },
				    .body = compare_on_rank,
				    .argument = &argument_case };

	fake_ranks_run(&ranks);
	strcpy(text, ranks.exits[reporting_rank].error_text);
	if (!*text)
		fake_ranks_assert_success(&ranks);
	for (unsigned i = 0; i < N_RANKS; i++)
		if (i != reporting_rank && *ranks.exits[i].error_text &&
		    !strstr(ranks.exits[i].error_text, "has ended"))
			fail_msg("rank %u, too: %s", i, ranks.exits[i].error_text);
	fake_ranks_free(&ranks);
}

static void assert_reported(const struct option_case *option_case, unsigned reporting_rank,
			    const char *expected)
{
	char text[512];

	compare_on_all_ranks(option_case, reporting_rank, text);
	if (!strstr(text, expected))
		fail_msg("'%s' does not say '%s'", text, expected);
}

/* Options that only the first rank implements, or no rank. */
TEST(reporting_options_must_match)
{
	static const struct option_case options[] = {
		{ .option = "explain", "text", "text" },
		{ .option = "assume-size", "1G", "1G" },
		{ .option = "assume-rates", "disk=2G", "disk=2G" },
		{ .option = "progress", "always", "always" },
		{ .option = "stats" },
		{ .option = "stats-json", "a", "a" },
		{ .option = "trace", "a", "a" },
		{ .option = "report", "a", "a" },
		{ .option = "debug" },
		{ .option = "completion", "bash", "bash" },
		{ .option = "help" },
		{ .option = "version" },
	};

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		struct option_case option_case = options[i];
		char expected[128], text[512];

		option_case.rank_mask = 1 << 3 | 1 << 2;
		snprintf(expected, sizeof expected, "--%s is given here, but not on",
			 option_case.option);
		assert_reported(&option_case, 2, expected);
		option_case.rank_mask = 1 << 0 | 1 << 1;
		snprintf(expected, sizeof expected, "--%s is not given here, but on",
			 option_case.option);
		assert_reported(&option_case, 2, expected);
		option_case.rank_mask = (1 << N_RANKS) - 1;
		compare_on_all_ranks(&option_case, 0, text);
		assert_string_equal(text, "");
	}
}

TEST(different_arguments_are_refused)
{
	const struct option_case option_case = { "stats-json", "a", "b", (1 << N_RANKS) - 1 };

	assert_reported(&option_case, 1, "--stats-json is 'b' here, but 'a' on the first rank");
}

/* Machines differ, so resource options may differ. */
TEST(resource_options_may_differ)
{
	const struct option_case option_case = { "buffer-size", "1G", "2G", 1 << 0 | 1 << 2 };
	char text[512];

	compare_on_all_ranks(&option_case, 0, text);
	assert_string_equal(text, "");
}
