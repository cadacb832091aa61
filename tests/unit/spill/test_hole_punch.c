/*
 * test_hole_punch - ranges are given back, and who waits for that waits no longer than it takes
 */
#include "io/spill/hole_punch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/support/thread_gate.h"

#include <cmocka.h> /* last: it makes a macro of fail */

/* Punching takes until the gate is open. */
struct disk {
	struct gate begun, gate;
	atomic_uint_fast64_t punched_nbytes;
};

static void punch(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct disk *disk = context;

	(void)file, (void)offset;
	gate_open(&disk->begun, 1);
	if (!gate_pass(&disk->gate))
		abort();
	atomic_fetch_add(&disk->punched_nbytes, nbytes);
}

/* As many bytes may be pending, and twice that. */
static struct reclaim_lag lag_of(uint64_t nbytes)
{
	return (struct reclaim_lag){ .usual_nbytes = nbytes, .most_nbytes = 2 * nbytes };
}

static struct reclaim *open_reclaim(struct disk *disk)
{
	struct reclaim *reclaim;

	assert_int_equal(reclaim_open(punch, disk, &reclaim), 0);
	return reclaim;
}

/* A thread that adds ten bytes, or drains. */
struct user {
	struct reclaim *reclaim;
	struct disk *disk;
	uint64_t seen_nbytes; /* punched when it had done that */
	bool drains;
};

static void *use(void *argument)
{
	struct user *user = argument;

	if (user->drains)
		reclaim_until(user->reclaim, 0);
	else
		reclaim_add(user->reclaim, 0, 1000, 10, lag_of(1));
	user->seen_nbytes = atomic_load(&user->disk->punched_nbytes);
	return NULL;
}

/* The thread of the reclaim is punching ten bytes while the user comes. */
static void assert_waits_for_the_disk(bool drains, uint64_t expected_nbytes)
{
	struct disk disk = { .begun = GATE_CLOSED, .gate = GATE_CLOSED };
	struct user user = { .reclaim = open_reclaim(&disk), .disk = &disk, .drains = drains };
	pthread_t thread;

	reclaim_add(user.reclaim, 0, 0, 10, lag_of(5));
	assert_true(gate_pass(&disk.begun));
	assert_int_equal(pthread_create(&thread, NULL, use, &user), 0);
	gate_open(&disk.gate, 2);
	pthread_join(thread, NULL);
	assert_true(user.seen_nbytes >= expected_nbytes);
	reclaim_close(user.reclaim);
}

static void drain_waits_for_what_is_being_given_back(void **state)
{
	(void)state;
	assert_waits_for_the_disk(true, 10);
}

static void adding_waits_when_too_much_is_pending(void **state)
{
	(void)state;
	assert_waits_for_the_disk(false, 20);
}

/* The thread is at the first ten bytes all the while, so waiting would be without an end. */
static void adding_does_not_wait_for_less_than_the_most(void **state)
{
	struct disk disk = { .begun = GATE_CLOSED, .gate = GATE_CLOSED };
	struct reclaim *reclaim = open_reclaim(&disk);

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		const struct reclaim_lag lag = { .usual_nbytes = 1, .most_nbytes = 100 };

		reclaim_add(reclaim, 0, i * 20, 10, lag);
		assert_true(i > 0 || gate_pass(&disk.begun));
	}
	assert_int_equal(disk.punched_nbytes, 0);
	gate_open(&disk.gate, 10);
	reclaim_until(reclaim, 0);
	assert_int_equal(disk.punched_nbytes, 100);
	reclaim_close(reclaim);
}

static void no_more_is_given_back_than_asked_for(void **state)
{
	struct disk disk = { .begun = GATE_CLOSED, .gate = GATE_CLOSED };
	struct reclaim *reclaim = open_reclaim(&disk);

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		reclaim_add(reclaim, 0, i * 20, 10, lag_of(1000));
	gate_open(&disk.gate, 10);
	assert_true(reclaim_until(reclaim, 65));
	assert_int_equal(disk.punched_nbytes, 40);
	assert_false(reclaim_until(reclaim, 60));
	assert_int_equal(disk.punched_nbytes, 40);
	reclaim_close(reclaim);
}

static void neighbours_are_given_back_as_one(void **state)
{
	struct disk disk = { .begun = GATE_CLOSED, .gate = GATE_CLOSED };
	struct reclaim *reclaim = open_reclaim(&disk);

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		reclaim_add(reclaim, 0, i * 10, 10, lag_of(1000));
	gate_open(&disk.gate, 1);
	assert_true(reclaim_until(reclaim, 0));
	assert_int_equal(disk.punched_nbytes, 100);
	assert_false(reclaim_until(reclaim, 0));
	reclaim_close(reclaim);
	reclaim_close(NULL);
}

/* Which of many ranges of ten bytes have been given back. */
enum { MANY = 4000, MOST = 1024, DISTANCE = 20 };

struct ranges {
	atomic_uint n_punched;
	atomic_uint times[MANY];
};

static void count_range(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct ranges *ranges = context;

	if (file != 7 || nbytes != 10 || offset % DISTANCE || offset / DISTANCE >= MANY)
		abort();
	atomic_fetch_add(&ranges->times[offset / DISTANCE], 1);
	atomic_fetch_add(&ranges->n_punched, 1);
}

/* The list has room for MOST: for each one more, another is given back at once. */
static void ranges_without_neighbours_are_no_more_than_the_list_holds(void **state)
{
	struct ranges ranges = { 0 };
	struct reclaim *reclaim;

	(void)state;
	assert_int_equal(reclaim_open(count_range, &ranges, &reclaim), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		reclaim_add(reclaim, 7, i * DISTANCE, 10, lag_of(UINT64_C(1) << 40));
		assert_int_equal(ranges.n_punched, i < MOST ? 0 : i - MOST + 1);
	}
	assert_true(reclaim_until(reclaim, 0));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ranges.times[i], 1);
	reclaim_close(reclaim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drain_waits_for_what_is_being_given_back),
		cmocka_unit_test(adding_waits_when_too_much_is_pending),
		cmocka_unit_test(adding_does_not_wait_for_less_than_the_most),
		cmocka_unit_test(no_more_is_given_back_than_asked_for),
		cmocka_unit_test(neighbours_are_given_back_as_one),
		cmocka_unit_test(ranges_without_neighbours_are_no_more_than_the_list_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
