/*
 * test_tracks - pieces of work find a track of their role, and never lie over each other
 */
#include <stdlib.h>

#include "src/base/tracks.h"
#include "tests/support/unit_test.h"

static struct tracks *open_tracks(void)
{
	struct tracks *tracks;

	assert_int_equal(tracks_open(&tracks), 0);
	return tracks;
}

static struct track_owner track_owner_of(uint32_t device, uint64_t who)
{
	return (struct track_owner){ device, who };
}

static uint32_t assign_track(struct tracks *tracks, uint64_t owner, uint64_t begin_ns,
			     uint64_t end_ns)
{
	const uint64_t given_ns = begin_ns;
	const uint32_t track =
		tracks_assign(tracks, TRACK_READERS, track_owner_of(0, owner), &begin_ns, end_ns);

	assert_int_equal(begin_ns, given_ns);
	return track;
}

static void threads_that_come_and_go_share_a_track(void **state)
{
	struct tracks *tracks = open_tracks();

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(assign_track(tracks, i, 10 * i, 10 * i + 10), 0);
	assert_int_equal(tracks_count(tracks, TRACK_READERS), 1);
	assert_int_equal(tracks_count(tracks, TRACK_WRITERS), 0);
	tracks_close(tracks);
}

static void concurrent_events_use_separate_tracks(void **state)
{
	struct tracks *tracks = open_tracks();

	(void)state;
	assert_int_equal(assign_track(tracks, 7, 0, 10), 0);
	assert_int_equal(assign_track(tracks, 8, 5, 12), 1);
	assert_int_equal(assign_track(tracks, 9, 11, 13), 0);
	assert_int_equal(tracks_count(tracks, TRACK_READERS), 2);
	tracks_close(tracks);
}

static void devices_do_not_share_a_track(void **state)
{
	struct tracks *tracks = open_tracks();
	uint64_t begin_ns = 0;

	(void)state;
	assert_int_equal(
		tracks_assign(tracks, TRACK_DEVICE_QUEUES, track_owner_of(1, 1), &begin_ns, 1), 0);
	begin_ns = 5;
	assert_int_equal(
		tracks_assign(tracks, TRACK_DEVICE_QUEUES, track_owner_of(2, 1), &begin_ns, 6), 1);
	begin_ns = 7;
	assert_int_equal(
		tracks_assign(tracks, TRACK_DEVICE_QUEUES, track_owner_of(1, 2), &begin_ns, 8), 0);
	tracks_close(tracks);
}

static void thread_stays_on_its_track(void **state)
{
	struct tracks *tracks = open_tracks();

	(void)state;
	assert_int_equal(assign_track(tracks, 7, 0, 10), 0);
	assert_int_equal(assign_track(tracks, 8, 0, 11), 1);
	for (uint64_t i = 2; i < 100; i++) {
		assert_int_equal(assign_track(tracks, 8, 10 * i, 10 * i + 9), 1);
		assert_int_equal(assign_track(tracks, 7, 10 * i, 10 * i + 9), 0);
	}
	tracks_close(tracks);
}

static void clock_of_a_device_may_be_a_little_wrong(void **state)
{
	struct tracks *tracks = open_tracks();
	uint64_t begin_ns = 0;

	(void)state;
	assert_int_equal(tracks_assign(tracks, TRACK_DEVICE_QUEUES, track_owner_of(0, 1), &begin_ns,
				       5000),
			 0);
	begin_ns = 4990;
	assert_int_equal(tracks_assign(tracks, TRACK_DEVICE_QUEUES, track_owner_of(0, 1), &begin_ns,
				       9000),
			 0);
	assert_int_equal(begin_ns, 5000);
	tracks_close(tracks);
}

/* Of spans at random, in the order in which they end. */
static void pieces_on_a_track_never_overlap(void **state)
{
	enum { N_THREADS = 9, N_PIECES = 20000 };
	uint64_t ends[N_THREADS] = { 0 }, last[64] = { 0 };
	struct tracks *tracks = open_tracks();

	(void)state;
	srand(1);
	for (uint64_t now = 1; now < N_PIECES; now++) {
		const unsigned thread = (unsigned)rand() % N_THREADS;
		uint64_t begin = ends[thread] + (unsigned)rand() % (now - ends[thread]);
		const uint32_t track = tracks_assign(tracks, TRACK_CPU_QUEUES,
						     track_owner_of(0, thread), &begin, now);

		assert_true(track < 64);
		assert_true(begin >= last[track] && begin <= now);
		last[track] = ends[thread] = now;
	}
	assert_true(tracks_count(tracks, TRACK_CPU_QUEUES) <= 2 * N_THREADS);
	tracks_close(tracks);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(threads_that_come_and_go_share_a_track),
	cmocka_unit_test(concurrent_events_use_separate_tracks),
	cmocka_unit_test(devices_do_not_share_a_track),
	cmocka_unit_test(thread_stays_on_its_track),
	cmocka_unit_test(clock_of_a_device_may_be_a_little_wrong),
	cmocka_unit_test(pieces_on_a_track_never_overlap),
};

UNIT_TESTS(tracks, tests, NULL, NULL)
