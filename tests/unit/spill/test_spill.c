/*
 * test_spill.c - temporary files are unnamed, bounded, spread over directories, and released
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "src/base/thread.h"
#include "tests/support/thread_gate.h"
#include "tests/support/spill_fixture.h"
#include "tests/support/unit_test.h"

static struct spill *open_spill(const char *const *directories, size_t n, uint64_t limit_nbytes)
{
	struct spill *spill;

	assert_int_equal(spill_open(&faulty_calls, directories, n, limit_nbytes, 0, &spill), 0);
	return spill;
}

DIRECTORY_TEST(extents_come_back_and_leave_no_name)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill;
	struct spill_extent a, b;

	for (int nameless = 0; nameless < 2; nameless++) {
		faults.rejects_tmpfile = !nameless;
		faults.max_transfer_nbytes = 7777;
		faults.interrupt_every = 2;
		spill = open_spill(directories, 1, SPILL_UNLIMITED);
		a = store_bytes(spill, N);
		b = store_bytes(spill, 1);
		assert_int_equal(count_directory_entries(), 0);
		assert_true(b.offset % SPILL_ALIGN_NBYTES == 0);
		assert_stored(spill, a);
		assert_stored(spill, b);
		spill_close(spill);
	}
}

DIRECTORY_TEST(file_that_keeps_its_name_is_not_used)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill_extent extent;

	faults.rejects_tmpfile = true;
	faults.unlink_errno = EROFS;
	assert_int_equal(spill_write(spill, spill_bytes, N, &extent), -EROFS);
	assert_non_null(strstr(captured_messages_error(), fixture_directory));
	assert_non_null(strstr(captured_messages_warning(), fixture_path(".gsort-")));
	assert_int_equal(count_directory_entries(), 1);
	spill_close(spill);
}

DIRECTORY_TEST(every_directory_is_used)
{
	const char *const directories[] = { fixture_directory, "/tmp", "/var/tmp" };
	struct spill *spill = open_spill(directories, 3, SPILL_UNLIMITED);
	unsigned n_in[3] = { 0 };

	for (int i = 0; i < 12; i++)
		n_in[store_bytes(spill, N).file]++;
	for (int i = 0; i < 3; i++)
		assert_true(n_in[i] > 0);
	assert_string_equal(spill_directory(spill, 2), "/var/tmp");
	spill_close(spill);
}

/* Writers of one directory do not wait for each other. */
DIRECTORY_TEST(each_writer_has_a_file)
{
	enum { N_WRITERS = 4, N_EXTENTS = 24 };
	const char *const directories[] = { fixture_directory, "/tmp" };
	struct spill *spill = open_spill(directories, 2, SPILL_UNLIMITED);
	struct spill_extent extents[N_EXTENTS];
	unsigned n_in[N_WRITERS] = { 0 };

	spill_set_n_writers(spill, N_WRITERS);
	assert_int_equal(spill_n_files(spill), N_WRITERS);
	for (int i = 0; i < N_EXTENTS; i++) {
		extents[i] = store_bytes(spill, N);
		n_in[extents[i].file]++;
		assert_string_equal(spill_directory(spill, extents[i].file),
				    directories[extents[i].file % 2]);
	}
	for (int i = 0; i < N_WRITERS; i++)
		assert_true(n_in[i] > 0);
	for (int i = 0; i < N_EXTENTS; i++)
		assert_stored(spill, extents[i]);
	spill_close(spill);
}

DIRECTORY_TEST(extents_come_back_by_direct_io)
{
	static _Alignas(SPILL_ALIGN_NBYTES) unsigned char aligned[N];
	const char *const directories[] = { fixture_directory };

	fill_pattern(aligned, N, 1);
	for (int refuses = 0; refuses < 2; refuses++) {
		struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
		struct spill_extent extent;

		faults.rejects_direct = refuses;
		spill_bypass_cache(spill);
		for (int i = 0; i < 20; i++) {
			assert_int_equal(spill_write(spill, aligned, N, &extent), 0);
			assert_stored(spill, extent);
			assert_stored(spill, store_bytes(spill, 1 + 7777 * i % N));
		}
		spill_close(spill);
	}
}

/* Without direct I/O or a second file, everything is written through the cache. */
DIRECTORY_TEST(extents_come_back_by_adaptive_io)
{
	enum { LONG = (1 << 20) + 5, N_EXTENTS = 16 };
	static _Alignas(SPILL_ALIGN_NBYTES) unsigned char long_data[LONG], back[LONG];
	const char *const directories[] = { fixture_directory };

	fill_pattern(long_data, LONG, 1);
	for (int refuses = 0; refuses < 2; refuses++) {
		struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
		struct spill_extent extents[N_EXTENTS];
		uint64_t free_nbytes, free_before;
		bool second = false;

		faults.rejects_direct = refuses;
		assert_int_equal(spill_free_nbytes(spill, &free_before), 0);
		spill_use_adaptive_io(spill);
		assert_int_equal(spill_free_nbytes(spill, &free_nbytes), 0);
		assert_true(free_nbytes < free_before + free_before / 2);
		for (int i = 0; i < N_EXTENTS; i++) {
			assert_int_equal(spill_write(spill, long_data, LONG - i, &extents[i]), 0);
			assert_string_equal(spill_directory(spill, extents[i].file),
					    fixture_directory);
			second = second || extents[i].file == 1;
		}
		assert_true(second == !refuses);
		for (int i = 0; i < N_EXTENTS; i++) {
			assert_int_equal(spill_read(spill, extents[i], back), 0);
			assert_memory_equal(back, long_data, LONG - i);
			spill_discard(spill, extents[i]);
		}
		assert_int_equal(spill_used_nbytes(spill), 0);
		spill_close(spill);
	}
}

DIRECTORY_TEST(full_directory_is_skipped)
{
	const char *const directories[] = { fixture_directory, "/tmp" };
	struct spill *spill = open_spill(directories, 2, SPILL_UNLIMITED);

	faults.faulty_directory = fixture_directory;
	faults.faulty_write_errno = ENOSPC;
	for (int i = 0; i < 4; i++) {
		const struct spill_extent extent = store_bytes(spill, N);

		assert_int_equal(extent.file, 1);
		assert_stored(spill, extent);
	}
	assert_int_equal(spill_used_nbytes(spill), 4 * N_IN_PAGES);
	assert_false(captured_messages_has_error());
	spill_close(spill);
}

/* Store 40 extents of one page by two threads. */
static atomic_int n_stored;

static void *store_pages(void *spill)
{
	while (atomic_fetch_add(&n_stored, 1) < 40)
		store_bytes(spill, SPILL_ALIGN_NBYTES);
	return NULL;
}

DIRECTORY_TEST(one_writer_avoids_a_slow_directory)
{
	const char *const directories[] = { fixture_directory, "/tmp" };
	struct spill *spill = open_spill(directories, 2, SPILL_UNLIMITED);
	unsigned n_slow = 0;

	faults.faulty_directory = fixture_directory;
	faults.faulty_write_delay_us = 20000;
	for (int i = 0; i < 20; i++)
		n_slow += store_bytes(spill, SPILL_ALIGN_NBYTES).file == 0;
	assert_in_range(n_slow, 1, 5);
	spill_close(spill);
}

DIRECTORY_TEST(slow_directory_gets_less)
{
	const char *const directories[] = { fixture_directory, "/tmp" };
	struct spill *spill = open_spill(directories, 2, SPILL_UNLIMITED);
	struct stat slow;
	pthread_t threads[2];

	faults.faulty_directory = fixture_directory;
	faults.faulty_write_delay_us = 5000;
	n_stored = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(thread_start(store_pages, spill, 0, &threads[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fstat(faults.faulty_fd, &slow), 0);
	assert_true(slow.st_size <= 10 * SPILL_ALIGN_NBYTES);
	spill_close(spill);
}

DIRECTORY_TEST(late_allocation_reserves_no_space)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);

	spill_disable_preallocation(spill);
	assert_stored(spill, store_bytes(spill, N));
	assert_int_equal(faults.max_preallocated_nbytes, 0);
	spill_close(spill);
}

DIRECTORY_TEST(real_full_disk_is_survived)
{
	const char *small = fixture_path("small");
	const char *const directories[] = { small, fixture_directory };
	struct spill *spill;
	struct spill_extent extents[8];
	unsigned n_small = 0;

	assert_int_equal(mkdir(small, 0700), 0);
	if (mount("none", small, "tmpfs", 0, "size=256k") < 0)
		skip(); /* requires root */
	/* Make the other directory slower. */
	faults.faulty_directory = fixture_directory;
	faults.faulty_write_delay_us = 20000;
	spill = open_spill(directories, 2, SPILL_UNLIMITED);
	for (int i = 0; i < 8; i++) {
		extents[i] = store_bytes(spill, N);
		n_small += extents[i].file == 0;
	}
	assert_int_equal(n_small, 2);
	for (int i = 0; i < 8; i++)
		assert_stored(spill, extents[i]);
	/* Released space is used again. */
	for (int i = 0; i < 8; i++)
		spill_discard(spill, extents[i]);
	assert_int_equal(spill_used_nbytes(spill), 0);
	n_small = 0;
	for (int i = 0; i < 8; i++)
		n_small += store_bytes(spill, N).file == 0;
	spill_close(spill);
	assert_int_equal(umount(small), 0);
	assert_int_equal(n_small, 2);
}

DIRECTORY_TEST(limit_counts_discarded_space)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, 2 * N_IN_PAGES);
	struct spill_extent a = store_bytes(spill, N), b = store_bytes(spill, N);
	uint64_t nbytes;

	assert_int_equal(spill_write(spill, spill_bytes, 1, &b), -ENOSPC);
	spill_discard(spill, a);
	assert_int_equal(spill_used_nbytes(spill), N_IN_PAGES);
	assert_int_equal(spill_free_nbytes(spill, &nbytes), 0);
	assert_int_equal(nbytes, N_IN_PAGES);
	store_bytes(spill, N);
	assert_int_equal(spill_peak_nbytes(spill), 2 * N_IN_PAGES);
	spill_close(spill);
}

DIRECTORY_TEST(discarded_space_is_reclaimed_at_the_limit)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, N_IN_PAGES);

	for (int i = 0; i < 20; i++)
		spill_discard(spill, store_bytes(spill, N));
	assert_int_equal(spill_peak_nbytes(spill), N_IN_PAGES);
	assert_false(captured_messages_has_error());
	spill_close(spill);
}

DIRECTORY_TEST(discarded_space_returns_to_the_disk)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill_extent extent = store_bytes(spill, N);
	struct stat before, after;

	assert_int_equal(fstat(faults.tmpfile_fd, &before), 0);
	spill_discard(spill, extent);
	assert_int_equal(spill_used_nbytes(spill), 0);
	assert_int_equal(fstat(faults.tmpfile_fd, &after), 0);
	assert_true((before.st_blocks - after.st_blocks) * 512 >= N_IN_PAGES);
	spill_close(spill);
}

DIRECTORY_TEST(nothing_is_discarded_before_the_close)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill_extent extent = store_bytes(spill, N);

	spill_begin_close(spill);
	spill_discard(spill, extent);
	assert_int_equal(spill_used_nbytes(spill), N_IN_PAGES);
	spill_close(spill);
	spill_begin_close(NULL);
}

/* In the background: a backlog of 4 MiB may stay, and as much may be in progress. */
DIRECTORY_TEST(backlog_of_discarded_space_is_small)
{
	enum { N_EXTENTS = 400, MAX_BACKLOG = 8 << 20 };
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill_extent extents[N_EXTENTS];
	struct stat file;

	for (int i = 0; i < N_EXTENTS; i++)
		extents[i] = store_bytes(spill, N);
	for (int i = 0; i < N_EXTENTS; i++) {
		spill_discard(spill, extents[i]);
		assert_int_equal(fstat(faults.tmpfile_fd, &file), 0);
		assert_true(file.st_blocks * 512 <=
			    (N_EXTENTS - 1 - i) * N_IN_PAGES + MAX_BACKLOG + N_IN_PAGES);
	}
	spill_close(spill);
}

/* The free space of every disk. */
static uint64_t free_nbytes = UINT64_MAX;

int __real_fstatvfs64(int fd, struct statvfs *space);
int __wrap_fstatvfs64(int fd, struct statvfs *space);
int __wrap_fstatvfs64(int fd, struct statvfs *space)
{
	const int r = __real_fstatvfs64(fd, space);

	space->f_frsize = 1;
	space->f_bavail = free_nbytes;
	return r;
}

/* Punching the first hole blocks until the gate is open. */
static struct gate hole;
static atomic_bool is_punching;

static void punch_slowly_once(void)
{
	if (!atomic_exchange(&is_punching, true) && !gate_pass(&hole))
		abort();
}

/* How many bytes may be pending if space is short, and how many extents if it is ample. */
enum { N_MANY = 1000, ALL = N_MANY * N_IN_PAGES, LITTLE = 8 << 20, MUCH = N_MANY / 8 };

/* Open a spill with extents and free space; the first hole is being punched. */
static struct spill *open_busy_spill(uint64_t limit_nbytes, uint64_t room_nbytes,
				     struct spill_extent *ret_extents)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, limit_nbytes);

	for (int i = 0; i < N_MANY; i++)
		ret_extents[i] = store_bytes(spill, N);
	hole = (struct gate)GATE_INITIALIZER;
	is_punching = false;
	faults.on_punch = punch_slowly_once;
	free_nbytes = room_nbytes;
	return spill;
}

/* Discard every second extent, so that none are adjacent, while the thread is blocked. */
static void discard_many(struct spill *spill, const struct spill_extent *extents)
{
	for (int i = 0; i < MUCH; i++)
		spill_discard(spill, extents[2 * i]);
	while (!is_punching)
		sched_yield();
}

DIRECTORY_TEST(discard_does_not_wait_with_ample_space)
{
	static struct spill_extent extents[N_MANY];
	struct spill *spill = open_busy_spill(SPILL_UNLIMITED, UINT64_C(2) * ALL, extents);

	discard_many(spill, extents);
	gate_open(&hole, 1);
	assert_int_equal(spill_used_nbytes(spill), (N_MANY - MUCH) * N_IN_PAGES);
	spill_close(spill);
}

/* After each discard the live extents and a little more are in use. */
static void assert_small_backlog(struct spill *spill, const struct spill_extent *extents)
{
	gate_open(&hole, 1);
	for (int i = 0; i < N_MANY / 2; i++) {
		struct stats_volumes volumes;

		spill_discard(spill, extents[2 * i]);
		spill_get_volumes(spill, &volumes);
		assert_true(volumes.temporary_used_nbytes <=
			    (uint64_t)(N_MANY - 1 - i) * N_IN_PAGES + LITTLE);
	}
	spill_close(spill);
}

DIRECTORY_TEST(backlog_is_small_with_little_space)
{
	static struct spill_extent extents[N_MANY];

	assert_small_backlog(open_busy_spill(SPILL_UNLIMITED, UINT64_C(2) * ALL - 1, extents),
			     extents);
}

DIRECTORY_TEST(backlog_is_small_near_the_limit)
{
	static struct spill_extent extents[N_MANY];

	assert_small_backlog(open_busy_spill(UINT64_C(3) * ALL - 1, UINT64_MAX, extents), extents);
}

DIRECTORY_TEST(backlog_does_not_raise_the_peak)
{
	static struct spill_extent extents[N_MANY];
	struct spill *spill = open_busy_spill(SPILL_UNLIMITED, UINT64_MAX, extents);

	discard_many(spill, extents);
	for (int i = 0; i < MUCH - LITTLE / N_IN_PAGES - 1; i++)
		store_bytes(spill, N);
	assert_int_equal(spill_peak_nbytes(spill), ALL);
	gate_open(&hole, 1);
	spill_close(spill);
}

DIRECTORY_TEST(neighbours_are_discarded_together)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill_extent extents[9];

	for (int i = 0; i < 9; i++)
		extents[i] = store_bytes(spill, N);
	/* From both ends to the middle, and a separate one. */
	for (int i = 0; i < 3; i++) {
		spill_discard(spill, extents[i]);
		spill_discard(spill, extents[6 - i]);
	}
	spill_discard(spill, extents[8]);
	spill_discard(spill, extents[3]);
	assert_int_equal(spill_used_nbytes(spill), N_IN_PAGES);
	assert_int_equal(faults.n_punches, 2);
	assert_stored(spill, extents[7]);
	spill_close(spill);
}

DIRECTORY_TEST(unpunchable_space_stays_in_use)
{
	const char *const directories[] = { fixture_directory };
	struct spill *spill = open_spill(directories, 1, SPILL_UNLIMITED);

	faults.punch_errno = EOPNOTSUPP;
	spill_discard(spill, store_bytes(spill, N));
	assert_int_equal(spill_used_nbytes(spill), N_IN_PAGES);
	spill_close(spill);
}

DIRECTORY_TEST(directories_of_one_disk_count_once)
{
	const char *const directories[] = { fixture_directory, fixture_directory };
	struct spill *one = open_spill(directories, 1, SPILL_UNLIMITED);
	struct spill *two = open_spill(directories, 2, SPILL_UNLIMITED);
	uint64_t of_one, of_two;

	assert_int_equal(spill_free_nbytes(one, &of_one), 0);
	assert_int_equal(spill_free_nbytes(two, &of_two), 0);
	assert_true(of_two < of_one + of_one / 2);
	spill_close(one);
	spill_close(two);
}

GROUP_FIXTURE(fill_spill_bytes, NULL)
