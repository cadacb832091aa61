/*
 * test_output.c - an output is complete, or the target is untouched and nothing is left behind
 */
#include <linux/magic.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "io/file/direct_io.h"
#include "tests/support/output_fixture.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

static unsigned char divided_data[24 << 20];
static const char old[] = "what was there before";

static const char *old_file(const char *name)
{
	write_file(fixture_path(name), old, sizeof old);
	return fixture_path(name);
}

static int open_refused(const char *path)
{
	struct output *output;
	const int r = output_open(&faulty_calls, path, OUTPUT_SIZE_UNKNOWN, &output);

	assert_true(r < 0);
	assert_non_null(strstr(captured_messages_error(), path));
	return r;
}

/* Write the data in pieces, from back to front. */
static void write_data(struct output *output)
{
	for (uint64_t at = N; at > 0; at -= OUTPUT_WRITE_NBYTES)
		assert_int_equal(output_write_at(output, at - OUTPUT_WRITE_NBYTES,
						 output_bytes + at - OUTPUT_WRITE_NBYTES,
						 OUTPUT_WRITE_NBYTES),
				 0);
}

DIRECTORY_TEST(old_file_is_untouched_until_commit)
{
	for (int nameless = 0; nameless < 2; nameless++) {
		const char *path = old_file("f");
		struct output *output;

		faults.rejects_tmpfile = !nameless;
		faults.max_transfer_nbytes = 77;
		faults.interrupt_every = 2;
		output = open_output(path, N);
		assert_true(output_is_atomic(output));
		write_data(output);
		assert_true(file_contains(path, old, sizeof old));
		assert_int_equal(count_directory_entries(), nameless ? 1 : 2);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
		assert_true(file_contains(path, output_bytes, N));
		assert_int_equal(count_directory_entries(), 1);
	}
}

DIRECTORY_TEST(output_that_cannot_be_created_is_refused)
{
	const char *path = old_file("f");

	faults.rejects_tmpfile = true;
	faults.create_errno = EACCES;
	/* More often than the undo table has entries. */
	for (int i = 0; i < 100; i++) {
		captured_messages_reset(true);
		assert_int_equal(open_refused(path), -EACCES);
	}
	assert_true(file_contains(path, old, sizeof old));
	assert_int_equal(count_directory_entries(), 1);
}

/* Without an undo table. */
DIRECTORY_TEST(unregistered_temp_file_is_removed)
{
	struct syscalls calls = faulty_calls;
	struct output *output;

	faults.rejects_tmpfile = true;
	calls.undo = NULL;
	assert_int_equal(output_open(&calls, old_file("f"), N, &output), 0);
	undo_run(&process_get()->undo);
	assert_int_equal(count_directory_entries(), 2);
	write_data(output);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(count_directory_entries(), 1);
	assert_true(file_contains(fixture_path("f"), output_bytes, N));
}

/* Unaligned pieces that are large enough for direct writes. */
static void check_direct_output(bool expect_direct)
{
	enum { LONG = (6 << 20) + 4321, FIRST = (2 << 20) + 77, SECOND = (4 << 20) + 99 };
	static _Alignas(DIRECT_ALIGN_NBYTES) unsigned char long_data[LONG];
	const char *path = fixture_path("long");
	struct output *output = open_output(path, LONG);
	struct file file;
	uint64_t base = 1;

	memset(long_data, 0x5a, LONG);
	for (size_t i = 0; i < LONG; i += 61)
		long_data[i] = (unsigned char)(i / 61);
	assert_int_equal(output_direct_alignment(output, &base), 0);
	output_bypass_cache(output);
	assert_int_equal(output_direct_alignment(output, &base),
			 expect_direct ? DIRECT_ALIGN_NBYTES : 0);
	assert_int_equal(base, expect_direct ? 0 : 1);
	assert_int_equal(output_write_at(output, SECOND, long_data + SECOND, LONG - SECOND), 0);
	assert_int_equal(output_write_at(output, 0, long_data, FIRST), 0);
	assert_int_equal(output_write_at(output, FIRST, long_data + FIRST, SECOND - FIRST), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path, O_RDONLY, 0, &file), 0);
	if (expect_direct)
		assert_false(direct_is_cached(&file, 0, LONG));
	file_close(&file);
	assert_true(file_contains(path, long_data, LONG));
}

DIRECTORY_TEST(aligned_large_writes_are_direct)
{
	struct statfs system;

	assert_int_equal(statfs(fixture_directory, &system), 0);
	if (system.f_type == TMPFS_MAGIC) /* all of it is cache */
		skip();
	check_direct_output(true);
}

DIRECTORY_TEST(large_writes_go_through_the_cache_where_direct_ones_are_refused)
{
	faults.rejects_direct = true;
	check_direct_output(false);
}

/* Free space of the first queries, and of later ones. */
static struct {
	unsigned n_looks, n_before;
	uint64_t before_nbytes, nbytes;
} disk;

int __real_fstatvfs64(int fd, struct statvfs *space);
int __wrap_fstatvfs64(int fd, struct statvfs *space);
int __wrap_fstatvfs64(int fd, struct statvfs *space)
{
	const int r = __real_fstatvfs64(fd, space);

	if (disk.nbytes == 0)
		return r;
	space->f_frsize = 1;
	space->f_bfree = space->f_bavail = disk.n_looks++ < disk.n_before ? disk.before_nbytes :
									    disk.nbytes;
	return r;
}

/* XFS releases the space of removed files a little later. */
DIRECTORY_TEST(space_may_come_a_moment_later)
{
	struct output *output;

	disk.n_before = 2;
	disk.before_nbytes = N - 1;
	disk.nbytes = N;
	output = open_output(fixture_path("new"), N);
	write_data(output);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(disk.n_looks >= 3);
	disk.nbytes = 0;
}

/* Such a file system may compress, so the output may still fit. */
DIRECTORY_TEST(small_disk_without_preallocation_is_tried)
{
	struct output *output;

	disk.n_before = 0;
	disk.nbytes = N - 1;
	faults.preallocate_errno = EOPNOTSUPP;
	output = open_output(fixture_path("new"), N);
	disk.nbytes = 0;
	write_data(output);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
}

enum { DIVIDED = 24 << 20, HALF = DIVIDED / 2, LONG_WRITE_NBYTES = 200 * 1000 };

/* Write one of two halves, piece by piece. */
static void *write_half(void *arg)
{
	struct output_writer *w = arg;

	for (uint64_t at = w->first * HALF, end = at + HALF; at < end && w->r == 0;
	     at += LONG_WRITE_NBYTES) {
		const uint64_t n = end - at < LONG_WRITE_NBYTES ? end - at : LONG_WRITE_NBYTES;

		w->r = output_write_at(w->output, at, divided_data + at, n);
	}
	return NULL;
}

/* Write by two threads, far apart. Returns how much was written through mappings. */
static uint64_t check_divided(uint64_t expected_nbytes, uint32_t n_writers)
{
	const char *path = fixture_path("divided");
	struct output *output = open_output(path, expected_nbytes);
	struct output_writer writers[2];
	struct file_writer_stats stats = { 0 };

	fill_pattern(divided_data, DIVIDED, 1);
	output_set_n_writers(output, n_writers);
	for (unsigned i = 0; i < 2; i++) {
		writers[i] = (struct output_writer){ .output = output, .first = i };
		assert_int_equal(thread_start(write_half, &writers[i], 0, &writers[i].thread), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[i].r, 0);
	}
	output_add_io_stats(output, &stats);
	assert_int_equal(stats.cached_nbytes + stats.mmap_nbytes, DIVIDED);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, divided_data, DIVIDED));
	return stats.mmap_nbytes;
}

DIRECTORY_TEST(output_of_many_writers_is_mapped)
{
	assert_true(check_divided(DIVIDED, 4) > 0);
	assert_true(check_divided(DIVIDED + 12345, 4) > 0);
}

/* For few writers mappings are slower; without preallocation there may be no space. */
DIRECTORY_TEST(output_of_few_writers_is_not_mapped)
{
	assert_int_equal(check_divided(DIVIDED, 3), 0);
	if (!FOR_RACES_ONLY) {
		assert_int_equal(check_divided(DIVIDED, 1), 0);
		assert_int_equal(check_divided(OUTPUT_SIZE_UNKNOWN, 4), 0);
	}
	faults.preallocate_errno = EOPNOTSUPP;
	assert_int_equal(check_divided(DIVIDED, 4), 0);
}

/* Short outputs are preallocated at once. */
enum { PARTS = 3, PART = DIVIDED / PARTS - 321, SHORT_PART = MMAP_SEGMENT_NBYTES };

static const char *const part_names[PARTS] = { "p0", "p1", "p2" };

/* Open outputs of the same known size. */
static void open_parts(const struct syscalls *calls, uint64_t nbytes,
		       struct output *parts[static PARTS])
{
	process_setup(); /* cmocka installs a SIGBUS handler for each test */
	fill_pattern(divided_data, DIVIDED, 3);
	for (int i = 0; i < PARTS; i++) {
		assert_int_equal(output_open(calls, fixture_path(part_names[i]),
					     OUTPUT_SIZE_UNKNOWN, &parts[i]),
				 0);
		output_update_expected_size(parts[i], nbytes);
	}
	/* Prefaulting does not pay for a small file, or the space does not suffice. */
	assert_int_equal(output_n_prefault_threads(parts[0], nbytes, 64), 0);
	assert_int_equal(output_n_prefault_threads(parts[0], UINT64_C(1) << 60, 64), 0);
}

/* One writer for each part. */
static void open_prefaulted_parts(const struct syscalls *calls, uint64_t nbytes,
				  struct output *parts[static PARTS])
{
	open_parts(calls, nbytes, parts);
	output_start_prefault(parts, PARTS, PARTS, 2);
}

/* Write by one thread. Returns how much was written through mappings. */
static uint64_t write_part(struct output *part, int i, size_t nbytes)
{
	const unsigned char *data = divided_data + (size_t)i * nbytes;
	struct file_writer_stats stats = { 0 };

	assert_int_equal(output_set_expected_size(part, nbytes), 0); /* a second time */
	output_set_n_writers(part, 1);
	for (size_t at = 0; at < nbytes; at += LONG_WRITE_NBYTES) {
		const size_t n = nbytes - at < LONG_WRITE_NBYTES ? nbytes - at : LONG_WRITE_NBYTES;

		assert_int_equal(output_write_at(part, at, data + at, n), 0);
	}
	output_add_io_stats(part, &stats);
	assert_int_equal(output_commit(part, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(fixture_path(part_names[i]), data, nbytes));
	return stats.mmap_nbytes;
}

DIRECTORY_TEST(prefaulted_parts_are_mapped)
{
	struct output *parts[PARTS];

	open_prefaulted_parts(&faulty_calls, PART, parts);
	for (int i = 0; i < PARTS; i++)
		assert_true(write_part(parts[i], i, PART) >=
			    PART / LONG_WRITE_NBYTES * LONG_WRITE_NBYTES);
}

DIRECTORY_TEST(prefaulted_parts_survive_failed_mappings)
{
	struct syscalls unguarded = faulty_calls;
	struct output *parts[PARTS];

	unguarded.mappings = NULL;
	open_prefaulted_parts(&unguarded, PART, parts);
	for (int i = 0; i < PARTS; i++)
		assert_int_equal(write_part(parts[i], i, PART), 0);

	faults.preallocate_errno = EOPNOTSUPP;
	open_prefaulted_parts(&faulty_calls, PART, parts);
	for (int i = 0; i < PARTS; i++)
		assert_int_equal(write_part(parts[i], i, PART), 0);

	/* The first step was allocated. */
	faults.preallocate_errno = 0;
	open_parts(&faulty_calls, PART, parts);
	faults.preallocate_errno = ENOSPC;
	output_start_prefault(parts, PARTS, PARTS, 2);
	for (int i = 0; i < PARTS; i++)
		assert_in_range(write_part(parts[i], i, PART), 1, PART / 2);
}

/* Writing to the mapping raises SIGBUS. */
DIRECTORY_TEST(truncated_prefaulted_part_is_written)
{
	struct output *parts[PARTS];

	open_prefaulted_parts(&faulty_calls, SHORT_PART, parts);
	assert_int_equal(ftruncate(faults.tmpfile_fd, 0), 0);
	for (int i = 0; i < PARTS; i++)
		assert_true((write_part(parts[i], i, SHORT_PART) == 0) == (i == PARTS - 1));
}

/* The disk or a quota is full behind the preallocated space: a mapping cannot report that. */
DIRECTORY_TEST(failed_prefaulted_part_is_reported)
{
	struct output *parts[PARTS];

	open_prefaulted_parts(&faulty_calls, SHORT_PART, parts);
	assert_int_equal(ftruncate(faults.tmpfile_fd, 0), 0);
	faults.transfer_errno = EDQUOT;
	assert_int_equal(output_write_at(parts[PARTS - 1], 0, divided_data, LONG_WRITE_NBYTES),
			 -EDQUOT);
	assert_non_null(strstr(captured_messages_error(), part_names[PARTS - 1]));
	for (int i = 0; i < PARTS; i++)
		output_abort(parts[i]);
	assert_int_equal(count_directory_entries(), 0);
}

DIRECTORY_TEST(prefaulted_parts_commit_one_by_one)
{
	struct output *parts[PARTS];

	open_prefaulted_parts(&faulty_calls, PART, parts);
	output_abort(parts[0]);
	output_bypass_cache(parts[1]);
	assert_int_equal(write_part(parts[1], 1, PART), 0);
	assert_true(write_part(parts[2], 2, PART) > 0);
}

/* Only around the offset that is written. */
DIRECTORY_TEST(space_is_preallocated_where_written)
{
	const uint64_t nbytes = UINT64_C(1) << 30;
	struct output *output = open_output(fixture_path("f"), nbytes);
	struct stat file;

	assert_int_equal(output_write_at(output, nbytes / 2, output_bytes, OUTPUT_WRITE_NBYTES), 0);
	assert_int_equal(output_write_at(output, nbytes - OUTPUT_WRITE_NBYTES, output_bytes,
					 OUTPUT_WRITE_NBYTES),
			 0);
	assert_int_equal(fstat(faults.tmpfile_fd, &file), 0);
	assert_int_equal(file.st_size, nbytes);
	assert_in_range(file.st_blocks * 512, 2 * OUTPUT_WRITE_NBYTES, nbytes / 32);
	output_abort(output);
}

DIRECTORY_TEST(space_is_preallocated_a_step_ahead)
{
	const uint64_t nbytes = UINT64_C(1) << 30, step = nbytes / 128;
	struct output *output = open_output(fixture_path("f"), nbytes);
	struct stat file;

	for (uint64_t at = 0; at <= 5 * step; at += step / 2) {
		assert_int_equal(output_write_at(output, at, output_bytes, OUTPUT_WRITE_NBYTES), 0);
		assert_int_equal(fstat(faults.tmpfile_fd, &file), 0);
		assert_in_range(file.st_size, at + OUTPUT_WRITE_NBYTES,
				at + OUTPUT_WRITE_NBYTES + step);
		assert_true((uint64_t)file.st_blocks * 512 <= at + OUTPUT_WRITE_NBYTES + 2 * step);
	}
	output_abort(output);
}

DIRECTORY_TEST(too_small_a_disk_is_refused_at_once)
{
	struct output *output;

	assert_int_equal(output_open(&faulty_calls, fixture_path("f"), UINT64_C(1) << 60, &output),
			 -ENOSPC);
	assert_non_null(strstr(captured_messages_error(), "1152921504606846976 bytes are needed"));
	/* The free space is not even allocated for a moment. */
	assert_in_range(faults.max_preallocated_nbytes, 1, 4096);
	assert_int_equal(count_directory_entries(), 0);
}

DIRECTORY_TEST(gap_is_never_committed)
{
	const char *path = old_file("f");
	struct output *output = open_output(path, N);

	assert_int_equal(output_write_at(output, 0, output_bytes, OUTPUT_WRITE_NBYTES), 0);
	assert_int_equal(output_write_at(output, 2 * OUTPUT_WRITE_NBYTES, output_bytes,
					 OUTPUT_WRITE_NBYTES),
			 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EIO);
	assert_true(file_contains(path, old, sizeof old));
	assert_int_equal(count_directory_entries(), 1);
}

DIRECTORY_TEST(unfinished_file_that_cannot_be_removed_is_named)
{
	const char *path = old_file("f");
	struct output *output = open_output(path, N);

	faults.rename_errno = EACCES;
	faults.unlink_errno = EROFS;
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EACCES);
	assert_non_null(strstr(captured_messages_error(), "cannot be replaced"));
	assert_non_null(strstr(captured_messages_warning(), path));
	assert_non_null(strstr(captured_messages_warning(), ".gsort-"));
	assert_non_null(strstr(captured_messages_warning(), strerror(EROFS)));
	assert_true(file_contains(path, old, sizeof old));
	assert_int_equal(count_directory_entries(), 2);
}

DIRECTORY_TEST(file_created_meanwhile_is_not_replaced)
{
	for (int nameless = 0; nameless < 2; nameless++) {
		const char *path = fixture_path("new");
		struct output *output;

		captured_messages_reset(true);
		faults.rejects_tmpfile = !nameless;
		output = open_output(path, N);
		write_data(output);
		write_file(path, "theirs", 6);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
		assert_non_null(strstr(captured_messages_error(), path));
		assert_true(file_contains(path, "theirs", 6));
		assert_int_equal(count_directory_entries(), 1);
		unlink(path);
	}
}

DIRECTORY_TEST(retargeted_link_is_not_followed)
{
	const char *link = fixture_path("link");
	struct output *output;

	write_file(fixture_path("other"), "other", 5);
	assert_int_equal(symlink(old_file("f"), link), 0);
	output = open_output(link, N);
	write_data(output);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(fixture_path("other"), link), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
	assert_true(file_contains(fixture_path("f"), old, sizeof old));
	assert_true(file_contains(fixture_path("other"), "other", 5));
}

/* A changed name or mode, or a removed target, is no conflict. */
DIRECTORY_TEST(harmless_changes_allow_replacement)
{
	for (int i = 0; i < 3; i++) {
		const char *path = old_file("f");
		struct output *output = open_output(path, N);

		write_data(output);
		if (i == 0)
			assert_int_equal(chmod(path, 0604), 0);
		else if (i == 1)
			assert_int_equal(link(path, fixture_path("other")), 0);
		else
			assert_int_equal(unlink(path), 0);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
		assert_true(file_contains(path, output_bytes, N));
	}
}

DIRECTORY_TEST(durability_syncs_data_then_name)
{
	const unsigned n_syncs[] = {
		[OUTPUT_UNSYNCED] = 0, [OUTPUT_SYNC_DATA] = 1, [OUTPUT_SYNC_ALL] = 2
	};

	for (int durability = OUTPUT_UNSYNCED; durability <= OUTPUT_SYNC_ALL; durability++) {
		struct output *output = open_output(fixture_path("new"), N);

		faults.n_syncs = 0;
		write_data(output);
		assert_int_equal(output_commit(output, (enum output_durability)durability), 0);
		assert_int_equal(faults.n_syncs, n_syncs[durability]);
	}
}

DIRECTORY_TEST(file_of_another_in_a_sticky_directory_is_refused_at_once)
{
	int r;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(old_file("f"), 1234, 1234), 0);
	assert_int_equal(chmod(fixture_path("f"), 0666), 0);
	assert_int_equal(chmod(fixture_directory, 01777), 0);
	assert_int_equal(seteuid(5678), 0);
	r = open_refused(fixture_path("f"));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(captured_messages_error(), "in a sticky directory"));
}

DIRECTORY_TEST(permissions_are_what_a_user_expects)
{
	const mode_t before = umask(027);

	for (int nameless = 0; nameless < 2; nameless++) {
		faults.rejects_tmpfile = !nameless;
		unlink(fixture_path("new"));
		assert_int_equal(
			output_commit(open_output(fixture_path("new"), 0), OUTPUT_UNSYNCED), 0);
		assert_int_equal(get_permissions(fixture_path("new")), 0640);
		assert_int_equal(chmod(fixture_path("new"), 0606), 0);
		assert_int_equal(
			output_commit(open_output(fixture_path("new"), 0), OUTPUT_UNSYNCED), 0);
		assert_int_equal(get_permissions(fixture_path("new")), 0606);
	}
	umask(before);
}

DIRECTORY_TEST(owner_is_kept_if_permitted)
{
	struct stat status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(old_file("f"), 1234, 5678), 0);
	assert_int_equal(output_commit(open_output(fixture_path("f"), 0), OUTPUT_UNSYNCED), 0);
	assert_int_equal(stat(fixture_path("f"), &status), 0);
	assert_int_equal(status.st_uid, 1234);
	assert_int_equal(status.st_gid, 5678);
}

/* Open an output of nbytes twice, as two processes do. */
static void open_shared_twice(const char *path, uint64_t nbytes, struct output **ret_output,
			      struct output **ret_joined)
{
	assert_int_equal(output_open_shared(&faulty_calls, path, nbytes, NULL, ret_output), 0);
	assert_int_equal(output_open_shared_existing(&faulty_calls, path,
						     output_shared_name(*ret_output), ret_joined),
			 0);
}

/* Write one output through two descriptors. Returns how much was written through mappings. */
static uint64_t check_shared(uint64_t announced_nbytes)
{
	const char *path = fixture_path("shared");
	struct output *outputs[2];
	struct output_writer writers[2];
	struct file_writer_stats stats = { 0 };

	fill_pattern(divided_data, DIVIDED, 2);
	assert_int_equal(
		output_open_shared(&faulty_calls, path, announced_nbytes, NULL, &outputs[0]), 0);
	assert_int_equal(output_open_shared_existing(&faulty_calls, path,
						     output_shared_name(outputs[0]), &outputs[1]),
			 0);
	for (unsigned i = 0; i < 2; i++) {
		if (output_can_preallocate(outputs[0]))
			output_enable_shared_mmap(outputs[i], announced_nbytes);
		writers[i] = (struct output_writer){ .output = outputs[i], .first = i };
		assert_int_equal(thread_start(write_half, &writers[i], 0, &writers[i].thread), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[i].r, 0);
		output_add_io_stats(outputs[i], &stats);
	}
	assert_int_equal(output_close_shared(outputs[1]), 0);
	output_record_remote_writes(outputs[0], HALF, DIVIDED);
	assert_int_equal(output_commit(outputs[0], OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, divided_data, DIVIDED));
	return stats.mmap_nbytes;
}

DIRECTORY_TEST(shared_output_is_mapped)
{
	assert_int_equal(check_shared(DIVIDED), DIVIDED);
}

/* A checkpoint has recorded the time of modification, which truncating again would change. */
DIRECTORY_TEST(finalized_output_is_not_truncated_again)
{
	struct output *output = open_output(fixture_path("f"), 2 * N);
	struct stat status;

	write_data(output);
	assert_int_equal(output_finalize(output, &status), 0);
	assert_int_equal(status.st_size, N);
	faults.ftruncate_errno = EIO;
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
}

/* Including what only the joined process has preallocated behind its last byte. */
DIRECTORY_TEST(excess_shared_preallocation_is_truncated)
{
	const size_t nbytes = MMAP_SEGMENT_NBYTES + LONG_WRITE_NBYTES;
	const char *path = fixture_path("f");
	struct output *output, *joined;

	fill_pattern(divided_data, DIVIDED, 2);
	open_shared_twice(path, DIVIDED, &output, &joined);
	output_enable_shared_mmap(output, DIVIDED);
	output_enable_shared_mmap(joined, DIVIDED);
	assert_int_equal(output_write_at(output, 0, divided_data, MMAP_SEGMENT_NBYTES), 0);
	assert_int_equal(output_write_at(joined, MMAP_SEGMENT_NBYTES,
					 divided_data + MMAP_SEGMENT_NBYTES, LONG_WRITE_NBYTES),
			 0);
	assert_int_equal(output_close_shared(joined), 0);
	output_record_remote_writes(output, LONG_WRITE_NBYTES, nbytes);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, divided_data, nbytes));
}

DIRECTORY_TEST(shared_output_works_without_preallocation)
{
	faults.preallocate_errno = EOPNOTSUPP;
	assert_int_equal(check_shared(DIVIDED), 0);
}

/* Space that was not preallocated may be gone by then. */
DIRECTORY_TEST(shared_output_survives_failed_preallocation)
{
	const char *path = fixture_path("f");
	struct file_writer_stats stats = { 0 };
	struct output *output, *joined;

	fill_pattern(divided_data, DIVIDED, 2);
	open_shared_twice(path, DIVIDED, &output, &joined);
	output_enable_shared_mmap(joined, DIVIDED);
	faults.preallocate_errno = ENOSPC;
	assert_int_equal(output_write_at(joined, HALF, divided_data + HALF, HALF), 0);
	output_add_io_stats(joined, &stats);
	assert_int_equal(stats.mmap_nbytes, 0);
	faults.transfer_errno = ENOSPC;
	assert_int_equal(output_write_at(joined, 0, divided_data, HALF), -ENOSPC);
	output_abort(joined);
	output_abort(output);
	assert_int_equal(count_directory_entries(), 0);
}

DIRECTORY_TEST(truncated_output_cannot_be_read_back)
{
	static unsigned char back[N];
	struct output *output;

	assert_int_equal(output_open_shared(&faulty_calls, fixture_path("f"), N, NULL, &output), 0);
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
	assert_int_equal(truncate(fixture_path(output_shared_name(output)), N / 2), 0);
	assert_int_equal(output_read_at(output, 0, back, N), -ENODATA);
	assert_non_null(strstr(captured_messages_error(), "truncated by another process"));
	output_abort(output);
}

/* The sizes of several parts are not known before they are begun. */
DIRECTORY_TEST(output_above_the_size_limit_is_refused)
{
	struct rlimit before, small;
	struct output *output;

	assert_int_equal(output_open_shared(&faulty_calls, fixture_path("f"), OUTPUT_SIZE_UNKNOWN,
					    NULL, &output),
			 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = N;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(output_check_limit(output, N), 0);
	assert_int_equal(output_check_limit(output, N + 1), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(captured_messages_error(), "ulimit -f"));
	output_abort(output);
}

/* The creator may be killed before it can remove the file. */
DIRECTORY_TEST(failed_sharer_removes_the_shared_output)
{
	const char *path = old_file("f");
	struct output *output, *joined;

	for (int is_signal = 0; is_signal < 2; is_signal++) {
		open_shared_twice(path, N, &output, &joined);
		assert_int_equal(count_directory_entries(), 2);
		if (is_signal)
			undo_run(&process_get()->undo);
		else
			output_abort(joined);
		assert_int_equal(count_directory_entries(), 1);
		if (is_signal)
			output_close_shared(joined);
		output_abort(output);
		assert_true(file_contains(path, old, sizeof old));
	}
}

/* Some file systems write a file when it is closed, and report errors then. */
DIRECTORY_TEST(failed_shared_close_removes_the_output)
{
	const char *path = old_file("f");
	struct output *output, *joined;

	open_shared_twice(path, N, &output, &joined);
	assert_int_equal(output_write_at(joined, 0, output_bytes, N), 0);
	faults.close_errno = EDQUOT;
	assert_int_equal(output_close_shared(joined), -EDQUOT);
	faults.close_errno = 0;
	assert_non_null(strstr(captured_messages_error(), ": close: Disk quota exceeded"));
	assert_int_equal(count_directory_entries(), 1);
	output_record_remote_writes(output, N, N);
	assert_true(output_commit(output, OUTPUT_UNSYNCED) < 0);
	assert_true(file_contains(path, old, sizeof old));
}

DIRECTORY_TEST(incomplete_shared_output_is_not_committed)
{
	const char *path = old_file("f");
	struct output *output;

	assert_int_equal(output_open_shared(&faulty_calls, path, N, NULL, &output), 0);
	assert_int_equal(output_write_at(output, 0, output_bytes, OUTPUT_WRITE_NBYTES), 0);
	output_record_remote_writes(output, N - 2 * OUTPUT_WRITE_NBYTES, N);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EIO);
	assert_true(file_contains(path, old, sizeof old));
	assert_int_equal(count_directory_entries(), 1);
}

DIRECTORY_TEST(invisible_shared_output_cannot_be_opened)
{
	struct output *joined;

	assert_int_equal(output_open_shared_existing(&faulty_calls, fixture_path("f"),
						     ".gsort-temp-0", &joined),
			 -ENOENT);
	assert_non_null(strstr(captured_messages_error(), "all ranks must see the same directory"));
	assert_int_equal(count_directory_entries(), 0);
}

/* Opening and closing would be an end of file for its reader. */
DIRECTORY_TEST(pipe_cannot_be_a_shared_output)
{
	const char *path = fixture_path("pipe");
	struct output *output = NULL;
	struct pollfd reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = (struct pollfd){ .fd = open(path, O_RDONLY | O_NONBLOCK), .events = POLLIN };
	assert_true(reader.fd >= 0);
	assert_int_equal(output_open_shared(&faulty_calls, path, N, NULL, &output), -EINVAL);
	assert_int_equal(output_open_shared_existing(&faulty_calls, path, ".gsort-temp-0", &output),
			 -EINVAL);
	assert_int_equal(poll(&reader, 1, 0), 0); /* no writer has come and gone */
	close(reader.fd);
	assert_int_equal(unlink(path), 0);
}

DIRECTORY_TEST(pipe_cannot_be_read_back)
{
	const char *path = fixture_path("pipe");
	struct output *output;
	unsigned char back;
	int reader;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	output = open_output(path, 1);
	assert_int_equal(output_write_at(output, 0, output_bytes, 1), 0);
	assert_int_equal(output_read_at(output, 0, &back, 1), -ESPIPE);
	output_abort(output);
	close(reader);
	assert_int_equal(unlink(path), 0);
}

GROUP_FIXTURE(fill_output_bytes, NULL)
