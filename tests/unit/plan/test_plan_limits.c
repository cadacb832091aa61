/*
 * test_plan_limits - limits and sizes of all magnitudes are planned with, and never wrap around
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/support/plan_requests.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N_REQUESTS = 200000, REQUEST_NBYTES = 96 };

/* The same numbers everywhere (Marsaglia's xorshift). */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void any_request_makes_a_plan_that_holds(void **state)
{
	uint64_t random = 0x9e3779b97f4a7c15;
	unsigned char bytes[REQUEST_NBYTES];

	(void)state;
	for (int i = 0; i < N_REQUESTS; i++) {
		const char *broken;

		for (size_t at = 0; at < sizeof bytes; at += sizeof random) {
			next_random(&random);
			memcpy(bytes + at, &random, sizeof random);
		}
		broken = try_plan(bytes, sizeof bytes);
		if (broken)
			fail_msg("request %d: %s", i, broken);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_request_makes_a_plan_that_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
