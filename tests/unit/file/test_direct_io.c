/*
 * test_direct_io - what is read past the page cache is the same, however it lies, and leaves no trace
 */
#include "io/file/direct_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "io/input/source.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = (8 << 20) + 1234, SMALL_N = 100 * 1000 };

static _Alignas(DIRECT_ALIGN_NBYTES) unsigned char data[N];
static struct io_queue *queue; /* or NULL */

/* A file of the data on the disk, and nowhere else. Skips where the disk is memory. */
static struct file open_cold(int flags)
{
	struct file file, cached;

	write_file(path_of("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_RDWR, 0, &cached), 0);
	assert_int_equal(file_sync(&cached), 0);
	assert_int_equal(posix_fadvise(cached.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	file_close(&cached);
	if (file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_RDONLY | flags, 0, &file) < 0)
		skip();
	if (direct_is_cached(&file, 0, N))
		skip();
	return file;
}

static void any_range_is_read_to_any_place(void **state)
{
	struct file file = open_cold(O_DIRECT);
	uint64_t x = 1;

	(void)state;
	for (int i = 0; i < 500; i++) {
		size_t offset, nbytes, shift;
		unsigned char *memory;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		offset = (x >> 20) % (N - SMALL_N);
		nbytes = 1 + (x >> 40) % SMALL_N;
		shift = i % 3 ? x >> 50 : 0;
		if (i % 5 == 0)
			offset -= offset % DIRECT_ALIGN_NBYTES;
		memory = guarded_alloc(nbytes + shift);
		assert_int_equal(direct_read_at(queue, &file, offset, memory + shift, nbytes), 0);
		assert_memory_equal(memory + shift, data + offset, nbytes);
		guarded_free(memory, nbytes + shift);
	}
	file_close(&file);
}

static void end_of_the_file_is_read(void **state)
{
	struct file file = open_cold(O_DIRECT);
	unsigned char *back = guarded_alloc(N);

	(void)state;
	assert_int_equal(direct_read_at(queue, &file, 0, back, N), 0);
	assert_memory_equal(back, data, N);
	assert_int_equal(direct_read_at(queue, &file, N - 10, back, 10), 0);
	assert_memory_equal(back, data + N - 10, 10);
	assert_int_equal(direct_read_at(queue, &file, N - 10, back, 11), -EINVAL);
	assert_int_equal(direct_read_at(queue, &file, 1, back, N), -EINVAL);
	guarded_free(back, N);
	file_close(&file);
}

static void interrupted_and_failing_reads(void **state)
{
	struct file file = open_cold(O_DIRECT);
	unsigned char *back = guarded_alloc(SMALL_N);

	(void)state;
	faults.interrupt_every = 2;
	faults.most_nbytes = 8192;
	assert_int_equal(direct_read_at(queue, &file, 5, back, SMALL_N), 0);
	assert_memory_equal(back, data + 5, SMALL_N);
	faults.interrupt_every = 0;
	faults.transfer_errno = EIO;
	assert_int_equal(direct_read_at(queue, &file, 5, back, SMALL_N), -EIO);
	assert_int_equal(direct_read_at(queue, &file, 5, back, 10), -EIO);
	guarded_free(back, SMALL_N);
	file_close(&file);
}

/* The pieces that come behind the one that fails are read, and do not make up for it. */
static void read_of_which_any_piece_fails_fails(void **state)
{
	enum { PIECE = 1 << 20, N_PIECES = 4 };
	struct file file = open_cold(O_DIRECT);
	unsigned char *back = guarded_alloc(N_PIECES * PIECE);

	(void)state;
	faults.place_errno = EIO;
	for (int i = 0; i < N_PIECES; i++) {
		faults.failing_offset = (off_t)i * PIECE;
		assert_int_equal(direct_read_at(queue, &file, 0, back, N_PIECES * PIECE), -EIO);
	}
	faults.place_errno = 0;
	assert_int_equal(direct_read_at(queue, &file, 0, back, N_PIECES * PIECE), 0);
	assert_memory_equal(back, data, N_PIECES * PIECE);
	guarded_free(back, N_PIECES * PIECE);
	file_close(&file);
}

static void what_was_read_is_known_to_be_cached(void **state)
{
	struct file file = open_cold(0);
	unsigned char *back = guarded_alloc(N);

	(void)state;
	assert_int_equal(file_read_at(&file, 0, back, N), 0);
	assert_true(direct_is_cached(&file, 0, N));
	guarded_free(back, N);
	file_close(&file);
}

static void any_range_is_written_from_any_place(void **state)
{
	struct file direct = open_cold(O_DIRECT), cached;
	unsigned char *back = guarded_alloc(N);
	uint64_t x = 1, at = 0;

	(void)state;
	file_close(&direct);
	assert_int_equal(
		file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_RDWR | O_TRUNC, 0, &cached), 0);
	assert_int_equal(file_reopen(&cached, O_RDWR | O_DIRECT, &direct), 0);
	while (at < N) {
		size_t nbytes;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		nbytes = 1 + (x >> 40) % (x >> 30 & 1 ? SMALL_N : 3 << 20);
		nbytes = nbytes < N - at ? nbytes : N - at;
		assert_int_equal(direct_write_at(queue, &direct, &cached, at, data + at, nbytes),
				 0);
		at += nbytes;
	}
	assert_int_equal(file_read_at(&cached, 0, back, N), 0);
	assert_memory_equal(back, data, N);
	guarded_free(back, N);
	file_close(&direct);
	file_close(&cached);
}

/* Read the file as a source that is large from large_nbytes on. */
static void read_source(uint64_t large_nbytes)
{
	unsigned char *back = guarded_alloc(N);
	struct source_table table;
	struct source source;

	source_table_init(&table, &faulty_calls, &(struct format_rules){ 0 });
	table.large_nbytes = large_nbytes;
	source_prepare(&source, path_of("f"), (struct given){ .kind = GIVEN_PATH });
	assert_int_equal(source_examine(&table, &source), 0);
	assert_int_equal(source_read_at(&table, &source, 0, back, N), 0);
	assert_memory_equal(back, data, N);
	source_close(&table, &source);
	source_table_destroy(&table);
	guarded_free(back, N);
}

static void large_cold_source_stays_out_of_the_cache(void **state)
{
	struct file file = open_cold(0);

	(void)state;
	for (int refuses = 0; refuses < 2; refuses++) {
		faults.refuses_direct = refuses;
		read_source(N);
		assert_false(direct_is_cached(&file, 0, N));
	}
	read_source(N + 1);
	assert_true(direct_is_cached(&file, 0, N));
	read_source(N);
	assert_true(direct_is_cached(&file, 0, N));
	file_close(&file);
}

/* Of several ranges that are looked at, and longer than what any kernel reads ahead. */
enum { LONG_N = (136 << 20) + 4321 };

/* As a merge does: the first record of each block, then the blocks. */
static void read_little_by_little(uint64_t large_nbytes)
{
	static unsigned char back[SMALL_N];
	struct source_table table;
	struct source source;

	source_table_init(&table, &faulty_calls, &(struct format_rules){ 0 });
	table.large_nbytes = large_nbytes;
	source_prepare(&source, path_of("f"), (struct given){ .kind = GIVEN_PATH });
	assert_int_equal(source_examine(&table, &source), 0);
	for (uint64_t at = 0; at < LONG_N; at += SMALL_N)
		assert_int_equal(source_read_at(&table, &source, at, back, 8), 0);
	for (uint64_t at = 0; at < LONG_N; at += SMALL_N) {
		const uint64_t left = LONG_N - at, n = left < SMALL_N ? left : SMALL_N;

		assert_int_equal(source_read_at(&table, &source, at, back, n), 0);
		if (at + n <= N)
			assert_memory_equal(back, data + at, n);
	}
	source_close(&table, &source);
	source_table_destroy(&table);
}

static void large_cold_source_stays_out_also_if_little_is_read_at_a_time(void **state)
{
	struct file file = open_cold(0);

	(void)state;
	assert_int_equal(truncate(path_of("f"), LONG_N), 0);
	read_little_by_little(LONG_N);
	for (uint64_t at = 0; at < LONG_N; at += LONG_N / 16)
		assert_false(direct_is_cached(&file, at, LONG_N / 16));
	read_little_by_little(LONG_N + 1);
	assert_true(direct_is_cached(&file, 0, LONG_N));
	read_little_by_little(LONG_N);
	assert_true(direct_is_cached(&file, 0, LONG_N));
	file_close(&file);
}

static void failing_read_of_a_little_of_a_large_source_is_an_error(void **state)
{
	struct file file = open_cold(0);
	struct source_table table;
	struct source source;
	unsigned char back[8];

	(void)state;
	source_table_init(&table, &faulty_calls, &(struct format_rules){ 0 });
	table.large_nbytes = 1;
	source_prepare(&source, path_of("f"), (struct given){ .kind = GIVEN_PATH });
	assert_int_equal(source_examine(&table, &source), 0);
	faults.transfer_errno = EIO;
	assert_int_equal(source_read_at(&table, &source, 0, back, sizeof back), -EIO);
	faults.transfer_errno = 0;
	source_close(&table, &source);
	source_table_destroy(&table);
	file_close(&file);
}

static void what_was_written_long_ago_is_forgotten(void **state)
{
	enum { LONG = 64 << 20 };
	struct file file = open_cold(0);
	unsigned char *back = guarded_alloc(N);

	(void)state;
	assert_int_equal(file_read_at(&file, 0, back, N), 0);
	file_write_behind(&file, LONG - N, N);
	assert_true(direct_is_cached(&file, 0, N));
	file_write_behind(&file, LONG, N);
	assert_false(direct_is_cached(&file, 0, N));
	guarded_free(back, N);
	file_close(&file);
}

static int with_queue(void **state)
{
	return fixture_start(state) < 0 ? -1 : io_queue_open(4, &queue);
}

static int finish(void **state)
{
	io_queue_close(queue);
	queue = NULL;
	return fixture_finish(state);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
#define QUEUED(name)                                                                               \
	{                                                                                          \
#name ", queued", name, with_queue, finish, NULL                                                      \
	}
	const struct CMUnitTest tests[] = {
		FIXTURE(any_range_is_read_to_any_place),
		QUEUED(any_range_is_read_to_any_place),
		FIXTURE(end_of_the_file_is_read),
		QUEUED(end_of_the_file_is_read),
		FIXTURE(interrupted_and_failing_reads),
		QUEUED(interrupted_and_failing_reads),
		QUEUED(read_of_which_any_piece_fails_fails),
		FIXTURE(any_range_is_written_from_any_place),
		QUEUED(any_range_is_written_from_any_place),
		FIXTURE(what_was_read_is_known_to_be_cached),
		FIXTURE(large_cold_source_stays_out_of_the_cache),
		FIXTURE(large_cold_source_stays_out_also_if_little_is_read_at_a_time),
		FIXTURE(failing_read_of_a_little_of_a_large_source_is_an_error),
		FIXTURE(what_was_written_long_ago_is_forgotten),
	};

	fill_pattern(data, sizeof data, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
