/*
 * test_distributed - ranks that are not asked for the same do nothing of it
 */
#include "src/lib/distributed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "tests/support/fake_ranks.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N_RANKS = 4 };

/* Which option ranks take, each one bit of them, and with which value (NULL: none). */
struct asked {
	const char *option;
	const char *value, *other; /* of the first rank, and all others */
	unsigned takers;
};

static void hear(void *context, enum gsort_severity kind, const char *text)
{
	if (kind == GSORT_ERROR)
		snprintf(context, MESSAGE_NBYTES, "%s", text);
}

static int meet(struct ranks *ranks, void *argument)
{
	const struct asked *asked = argument;
	const unsigned rank = ranks_rank(ranks);
	char heard[MESSAGE_NBYTES] = "";
	struct gsort *sort;
	int r = gsort_open(&sort);

	if (r < 0)
		return r;
	company_join(sort, ranks);
	gsort_set_message_callback(sort, hear, heard);
	if (asked->takers >> rank & 1)
		r = gsort_set_from_cli(sort, asked->option,
				       rank == 0 ? asked->value : asked->other);
	if (r == 0)
		r = company_meet(sort);
	gsort_close(sort);
	return r < 0 && *heard ? (fail)(r, "%s", heard) : r;
}

/*
 * What this one says, alone: others only miss whoever has gone, which MPI does not leave them the
 * time for. "": nobody says anything, and all go on.
 */
static void try_meeting(const struct asked *asked, unsigned teller, char text[static 512])
{
	struct asked given = *asked;
	struct ranks_double ranks = { .size = N_RANKS,
				      .settings = { .stall_ns = UINT64_C(60) * 1000000000 },
				      .body = meet,
				      .argument = &given };

	ranks_double_run(&ranks);
	strcpy(text, ranks.ends[teller].text);
	if (!*text)
		ranks_double_assert_fine(&ranks);
	for (unsigned i = 0; i < N_RANKS; i++)
		if (i != teller && *ranks.ends[i].text && !strstr(ranks.ends[i].text, "is gone"))
			fail_msg("rank %u, too: %s", i, ranks.ends[i].text);
	ranks_double_forget(&ranks);
}

static void assert_told(const struct asked *asked, unsigned teller, const char *expected)
{
	char text[512];

	try_meeting(asked, teller, text);
	if (!strstr(text, expected))
		fail_msg("'%s' does not say '%s'", text, expected);
}

/* All that only the first rank would do, or nobody. */
static void what_is_told_is_asked_of_all_ranks_or_none(void **state)
{
	static const struct asked options[] = {
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

	(void)state;
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		struct asked asked = options[i];
		char expected[128], text[512];

		asked.takers = 1 << 3 | 1 << 2;
		snprintf(expected, sizeof expected, "is asked for --%s, and the", asked.option);
		assert_told(&asked, 2, expected);
		asked.takers = 1 << 0 | 1 << 1;
		snprintf(expected, sizeof expected, "is not asked for --%s, and", asked.option);
		assert_told(&asked, 2, expected);
		asked.takers = (1 << N_RANKS) - 1;
		try_meeting(&asked, 0, text);
		assert_string_equal(text, "");
	}
}

static void another_argument_is_another_request(void **state)
{
	const struct asked asked = { "stats-json", "a", "b", (1 << N_RANKS) - 1 };

	(void)state;
	assert_told(&asked, 1, "--stats-json is 'b' here, and 'a' with the first rank");
}

/* Machines differ, and so may what ranks take of them. */
static void resources_may_be_each_rank_s_own(void **state)
{
	const struct asked asked = { "buffer-size", "1G", "2G", 1 << 0 | 1 << 2 };
	char text[512];

	(void)state;
	try_meeting(&asked, 0, text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_is_asked_of_all_ranks_or_none),
		cmocka_unit_test(another_argument_is_another_request),
		cmocka_unit_test(resources_may_be_each_rank_s_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
