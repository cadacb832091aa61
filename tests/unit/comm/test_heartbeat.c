/*
 * test_heartbeat - which ranks are pinged, and which fail
 */
#include "src/comm/watchdog.h"

#include "tests/support/unit_test.h"

enum { TIMEOUT_NS = 1600, CHECK_NS = TIMEOUT_NS / 16, N_RANKS = 3, ANY_RANK = N_RANKS };

static struct heartbeat heartbeat;

static int open_heartbeat(void **state)
{
	(void)state;
	return heartbeat_init(&heartbeat, N_RANKS, TIMEOUT_NS, 1000);
}

static int close_heartbeat(void **state)
{
	(void)state;
	heartbeat_destroy(&heartbeat);
	return 0;
}

/*
 * Check as often as the progress thread does, from `from` to `to`; return the last state that is
 * not HEARTBEAT_OK.
 */
static enum heartbeat_state check_until(unsigned rank, uint64_t from, uint64_t to)
{
	enum heartbeat_state last = HEARTBEAT_OK;

	for (uint64_t now = from; now <= to; now += CHECK_NS)
		if (heartbeat_needs_check(&heartbeat, now)) {
			const enum heartbeat_state silence = heartbeat_check(&heartbeat, rank, now);

			if (silence != HEARTBEAT_OK)
				last = silence;
		}
	return last;
}

#define HEARTBEAT_TEST(claim) TEST_WITH(claim, open_heartbeat, close_heartbeat)

HEARTBEAT_TEST(test_idle_rank_may_be_silent)
{
	assert_int_equal(check_until(1, 1000, 1000 + 10 * TIMEOUT_NS), HEARTBEAT_OK);
	heartbeat_begin_wait(&heartbeat, 1, 1000 + 10 * TIMEOUT_NS);
	assert_int_equal(check_until(2, 1000 + 10 * TIMEOUT_NS, 1000 + 20 * TIMEOUT_NS),
			 HEARTBEAT_OK);
}

HEARTBEAT_TEST(test_silent_rank_is_pinged_and_times_out)
{
	heartbeat_begin_wait(&heartbeat, 1, 1000);
	assert_int_equal(check_until(1, 1000, 1000 + TIMEOUT_NS / 4 - 1), HEARTBEAT_OK);
	assert_int_equal(check_until(1, 1000 + TIMEOUT_NS / 4, 1000 + TIMEOUT_NS / 4),
			 HEARTBEAT_PING);
	assert_int_equal(check_until(1, 1000 + TIMEOUT_NS / 4 + CHECK_NS, 1000 + TIMEOUT_NS - 1),
			 HEARTBEAT_OK);
	assert_int_equal(check_until(1, 1000 + TIMEOUT_NS, 1000 + TIMEOUT_NS), HEARTBEAT_TIMEOUT);
}

HEARTBEAT_TEST(test_answering_rank_does_not_time_out)
{
	uint64_t now = 1000;

	heartbeat_begin_wait(&heartbeat, 1, now);
	for (int i = 0; i < 10; i++, now += TIMEOUT_NS / 2) {
		assert_int_equal(check_until(1, now, now + TIMEOUT_NS / 2 - CHECK_NS),
				 HEARTBEAT_PING);
		heartbeat_record(&heartbeat, 1, now + TIMEOUT_NS / 2);
	}
}

HEARTBEAT_TEST(test_wait_for_any_rank_monitors_all)
{
	heartbeat_begin_wait(&heartbeat, ANY_RANK, 1000);
	for (unsigned rank = 0; rank < N_RANKS; rank++)
		assert_true(heartbeat_is_waiting(&heartbeat, rank));
	assert_int_equal(check_until(2, 1000, 1000 + TIMEOUT_NS), HEARTBEAT_TIMEOUT);
	heartbeat_end_wait(&heartbeat, ANY_RANK);
	assert_false(heartbeat_is_waiting(&heartbeat, 2));
}

HEARTBEAT_TEST(test_all_waits_can_be_ended)
{
	heartbeat_begin_wait(&heartbeat, 1, 1000);
	heartbeat_begin_wait(&heartbeat, ANY_RANK, 1000);
	heartbeat_end_all_waits(&heartbeat);
	for (unsigned rank = 0; rank < N_RANKS; rank++)
		assert_false(heartbeat_is_waiting(&heartbeat, rank));
	assert_int_equal(check_until(1, 1000, 1000 + 3 * TIMEOUT_NS), HEARTBEAT_OK);
}

HEARTBEAT_TEST(test_timeout_begins_with_the_wait)
{
	assert_int_equal(check_until(1, 1000, 1000 + 3 * TIMEOUT_NS), HEARTBEAT_OK);
	heartbeat_begin_wait(&heartbeat, 1, 1000 + 3 * TIMEOUT_NS);
	assert_int_equal(check_until(1, 1000 + 3 * TIMEOUT_NS + CHECK_NS,
				     1000 + 4 * TIMEOUT_NS - CHECK_NS),
			 HEARTBEAT_PING);
	assert_int_equal(check_until(1, 1000 + 4 * TIMEOUT_NS, 1000 + 4 * TIMEOUT_NS),
			 HEARTBEAT_TIMEOUT);
}

/* Awaiting more does not restart the timeout. */
HEARTBEAT_TEST(test_second_wait_keeps_the_timeout)
{
	heartbeat_begin_wait(&heartbeat, 1, 1000);
	assert_int_equal(check_until(1, 1000, 1000 + TIMEOUT_NS / 2), HEARTBEAT_PING);
	heartbeat_begin_wait(&heartbeat, 1, 1000 + TIMEOUT_NS / 2);
	heartbeat_begin_wait(&heartbeat, ANY_RANK, 1000 + TIMEOUT_NS / 2);
	assert_int_equal(check_until(1, 1000 + TIMEOUT_NS / 2, 1000 + TIMEOUT_NS),
			 HEARTBEAT_TIMEOUT);
}

/* Stopped and continued, as by a debugger or a batch system. */
HEARTBEAT_TEST(test_suspended_process_blames_no_rank)
{
	heartbeat_begin_wait(&heartbeat, 1, 1000);
	assert_int_equal(check_until(1, 1000, 1000 + TIMEOUT_NS / 2), HEARTBEAT_PING);
	assert_int_equal(check_until(1, 1000 + 100 * TIMEOUT_NS, 1000 + 100 * TIMEOUT_NS),
			 HEARTBEAT_OK);
	assert_int_equal(check_until(1, 1000 + 100 * TIMEOUT_NS, 1000 + 101 * TIMEOUT_NS),
			 HEARTBEAT_TIMEOUT);
}

HEARTBEAT_TEST(test_zero_disables_the_timeout)
{
	struct heartbeat patient;

	assert_int_equal(heartbeat_init(&patient, 2, 0, 0), 0);
	heartbeat_begin_wait(&patient, 1, 0);
	assert_false(heartbeat_needs_check(&patient, UINT64_MAX / 2));
	heartbeat_destroy(&patient);
}
