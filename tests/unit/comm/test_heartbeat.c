/*
 * test_heartbeat - who is asked, and who is given up
 */
#include "src/comm/heartbeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STALL = 1600, LOOK = STALL / 16, N_RANKS = 3, ANY = N_RANKS };

static struct watch watch;

static int open_watch(void **state)
{
	(void)state;
	return watch_init(&watch, N_RANKS, STALL, 1000);
}

static int close_watch(void **state)
{
	(void)state;
	watch_destroy(&watch);
	return 0;
}

/* Look at it as often as one does, from `from` to `to`: what was the last that was not short? */
static enum silence look_until(unsigned rank, uint64_t from, uint64_t to)
{
	enum silence last = SILENCE_SHORT;

	for (uint64_t now = from; now <= to; now += LOOK)
		if (watch_is_time(&watch, now)) {
			const enum silence silence = watch_look(&watch, rank, now);

			if (silence != SILENCE_SHORT)
				last = silence;
		}
	return last;
}

static void test_who_owes_nothing_may_be_silent(void **state)
{
	(void)state;
	assert_int_equal(look_until(1, 1000, 1000 + 10 * STALL), SILENCE_SHORT);
	watch_await(&watch, 1, 1000 + 10 * STALL);
	assert_int_equal(look_until(2, 1000 + 10 * STALL, 1000 + 20 * STALL), SILENCE_SHORT);
}

static void test_silence_is_asked_about_and_then_given_up(void **state)
{
	(void)state;
	watch_await(&watch, 1, 1000);
	assert_int_equal(look_until(1, 1000, 1000 + STALL / 4 - 1), SILENCE_SHORT);
	assert_int_equal(look_until(1, 1000 + STALL / 4, 1000 + STALL / 4), SILENCE_ASK);
	assert_int_equal(look_until(1, 1000 + STALL / 4 + LOOK, 1000 + STALL - 1), SILENCE_SHORT);
	assert_int_equal(look_until(1, 1000 + STALL, 1000 + STALL), SILENCE_STALL);
}

static void test_who_answers_is_not_given_up(void **state)
{
	uint64_t now = 1000;

	(void)state;
	watch_await(&watch, 1, now);
	for (int i = 0; i < 10; i++, now += STALL / 2) {
		assert_int_equal(look_until(1, now, now + STALL / 2 - LOOK), SILENCE_ASK);
		watch_heard(&watch, 1, now + STALL / 2);
	}
}

static void test_all_are_awaited_by_who_awaits_anybody(void **state)
{
	(void)state;
	watch_await(&watch, ANY, 1000);
	for (unsigned rank = 0; rank < N_RANKS; rank++)
		assert_true(watch_awaits(&watch, rank));
	assert_int_equal(look_until(2, 1000, 1000 + STALL), SILENCE_STALL);
	watch_awaited(&watch, ANY);
	assert_false(watch_awaits(&watch, 2));
}

static void test_time_begins_when_something_is_awaited(void **state)
{
	(void)state;
	assert_int_equal(look_until(1, 1000, 1000 + 3 * STALL), SILENCE_SHORT);
	watch_await(&watch, 1, 1000 + 3 * STALL);
	assert_int_equal(look_until(1, 1000 + 3 * STALL + LOOK, 1000 + 4 * STALL - LOOK),
			 SILENCE_ASK);
	assert_int_equal(look_until(1, 1000 + 4 * STALL, 1000 + 4 * STALL), SILENCE_STALL);
}

/* More that is awaited does not make it heard. */
static void test_time_goes_on_when_more_is_awaited(void **state)
{
	(void)state;
	watch_await(&watch, 1, 1000);
	assert_int_equal(look_until(1, 1000, 1000 + STALL / 2), SILENCE_ASK);
	watch_await(&watch, 1, 1000 + STALL / 2);
	watch_await(&watch, ANY, 1000 + STALL / 2);
	assert_int_equal(look_until(1, 1000 + STALL / 2, 1000 + STALL), SILENCE_STALL);
}

/* Stopped and started again, as by a debugger or a batch system. */
static void test_who_was_away_blames_nobody(void **state)
{
	(void)state;
	watch_await(&watch, 1, 1000);
	assert_int_equal(look_until(1, 1000, 1000 + STALL / 2), SILENCE_ASK);
	assert_int_equal(look_until(1, 1000 + 100 * STALL, 1000 + 100 * STALL), SILENCE_SHORT);
	assert_int_equal(look_until(1, 1000 + 100 * STALL, 1000 + 101 * STALL), SILENCE_STALL);
}

static void test_nobody_is_given_up_without_a_stall_time(void **state)
{
	struct watch patient;

	(void)state;
	assert_int_equal(watch_init(&patient, 2, 0, 0), 0);
	watch_await(&patient, 1, 0);
	assert_false(watch_is_time(&patient, UINT64_MAX / 2));
	watch_destroy(&patient);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_watch, close_watch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_owes_nothing_may_be_silent),
		TEST(test_silence_is_asked_about_and_then_given_up),
		TEST(test_who_answers_is_not_given_up),
		TEST(test_all_are_awaited_by_who_awaits_anybody),
		TEST(test_time_begins_when_something_is_awaited),
		TEST(test_time_goes_on_when_more_is_awaited),
		TEST(test_who_was_away_blames_nobody),
		TEST(test_nobody_is_given_up_without_a_stall_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
