/*
 * test_hole_punch.c - ranges are released, and callers wait no longer than necessary
 */
#include "io/spill/hole_punch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/support/thread_gate.h"
#include "tests/support/unit_test.h"

/* Punching blocks until the gate is open. */
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

static struct hole_punch_limits limits_of(uint64_t nbytes)
{
	return (struct hole_punch_limits){ .soft_nbytes = nbytes, .hard_nbytes = 2 * nbytes };
}

static struct hole_punch *open_hole_punch(struct disk *disk)
{
	struct hole_punch *puncher;

	assert_int_equal(hole_punch_open(punch, disk, &puncher), 0);
	return puncher;
}

/* A thread that adds ten bytes or drains. */
struct user {
	struct hole_punch *puncher;
	struct disk *disk;
	uint64_t seen_nbytes; /* punched when it returned */
	bool drains;
};

static void *use(void *argument)
{
	struct user *user = argument;

	if (user->drains)
		hole_punch_drain(user->puncher, 0);
	else
		hole_punch_add(user->puncher, 0, 1000, 10, limits_of(1));
	user->seen_nbytes = atomic_load(&user->disk->punched_nbytes);
	return NULL;
}

/* The background thread is punching ten bytes meanwhile. */
static void assert_waits_for_the_disk(bool drains, uint64_t expected_nbytes)
{
	struct disk disk = { .begun = GATE_INITIALIZER, .gate = GATE_INITIALIZER };
	struct user user = { .puncher = open_hole_punch(&disk), .disk = &disk, .drains = drains };
	pthread_t thread;

	hole_punch_add(user.puncher, 0, 0, 10, limits_of(5));
	assert_true(gate_pass(&disk.begun));
	assert_int_equal(pthread_create(&thread, NULL, use, &user), 0);
	gate_open(&disk.gate, 2);
	pthread_join(thread, NULL);
	assert_true(user.seen_nbytes >= expected_nbytes);
	hole_punch_close(user.puncher);
}

TEST(drain_waits_for_holes_in_progress)
{
	assert_waits_for_the_disk(true, 10);
}

TEST(adding_waits_when_too_much_is_pending)
{
	assert_waits_for_the_disk(false, 20);
}

/* The background thread is blocked in the first ten bytes, so waiting would never end. */
TEST(adding_below_the_hard_limit_does_not_wait)
{
	struct disk disk = { .begun = GATE_INITIALIZER, .gate = GATE_INITIALIZER };
	struct hole_punch *puncher = open_hole_punch(&disk);

	for (uint64_t i = 0; i < 10; i++) {
		const struct hole_punch_limits limits = { .soft_nbytes = 1, .hard_nbytes = 100 };

		hole_punch_add(puncher, 0, i * 20, 10, limits);
		assert_true(i > 0 || gate_pass(&disk.begun));
	}
	assert_int_equal(disk.punched_nbytes, 0);
	gate_open(&disk.gate, 10);
	hole_punch_drain(puncher, 0);
	assert_int_equal(disk.punched_nbytes, 100);
	hole_punch_close(puncher);
}

TEST(drain_stops_at_the_limit)
{
	struct disk disk = { .begun = GATE_INITIALIZER, .gate = GATE_INITIALIZER };
	struct hole_punch *puncher = open_hole_punch(&disk);

	for (uint64_t i = 0; i < 10; i++)
		hole_punch_add(puncher, 0, i * 20, 10, limits_of(1000));
	gate_open(&disk.gate, 10);
	assert_true(hole_punch_drain(puncher, 65));
	assert_int_equal(disk.punched_nbytes, 40);
	assert_false(hole_punch_drain(puncher, 60));
	assert_int_equal(disk.punched_nbytes, 40);
	hole_punch_close(puncher);
}

TEST(neighbours_are_punched_as_one_hole)
{
	struct disk disk = { .begun = GATE_INITIALIZER, .gate = GATE_INITIALIZER };
	struct hole_punch *puncher = open_hole_punch(&disk);

	for (uint64_t i = 0; i < 10; i++)
		hole_punch_add(puncher, 0, i * 10, 10, limits_of(1000));
	gate_open(&disk.gate, 1);
	assert_true(hole_punch_drain(puncher, 0));
	assert_int_equal(disk.punched_nbytes, 100);
	assert_false(hole_punch_drain(puncher, 0));
	hole_punch_close(puncher);
	hole_punch_close(NULL);
}

/* Counts how often each of many ranges of ten bytes was punched. */
enum { MANY = 4000, MAX_HOLES = 1024, DISTANCE = 20 };

struct ranges {
	atomic_uint n_punched;
	atomic_uint times[MANY];
};

static void count_hole(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct ranges *hole_totals = context;

	if (file != 7 || nbytes != 10 || offset % DISTANCE || offset / DISTANCE >= MANY)
		abort();
	atomic_fetch_add(&hole_totals->times[offset / DISTANCE], 1);
	atomic_fetch_add(&hole_totals->n_punched, 1);
}

/* When MAX_HOLES are pending, each addition punches another one at once. */
TEST(separate_holes_fit_in_the_list)
{
	struct ranges hole_totals = { 0 };
	struct hole_punch *puncher;

	assert_int_equal(hole_punch_open(count_hole, &hole_totals, &puncher), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		hole_punch_add(puncher, 7, i * DISTANCE, 10, limits_of(UINT64_C(1) << 40));
		assert_int_equal(hole_totals.n_punched, i < MAX_HOLES ? 0 : i - MAX_HOLES + 1);
	}
	assert_true(hole_punch_drain(puncher, 0));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hole_totals.times[i], 1);
	hole_punch_close(puncher);
}
