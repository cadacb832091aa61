/*
 * test_direct_io - direct reads return the same bytes at any alignment and leave no page cache
 */
#include "io/file/direct_io.h"

#include "io/input/source.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N = (8 << 20) + 1234, SMALL_N = 100 * 1000 };

static _Alignas(DIRECT_ALIGN_NBYTES) unsigned char data[N];
static struct io_queue *queue; /* or NULL */

/*
 * Write a file and drop it from the page cache. Skips the test where the file system is in memory.
 */
static struct file open_uncached(int flags)
{
	struct file file, cached;

	write_file(fixture_path("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_RDWR, 0, &cached),
			 0);
	assert_int_equal(file_sync(&cached), 0);
	assert_int_equal(posix_fadvise(cached.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	file_close(&cached);
	if (file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_RDONLY | flags, 0, &file) < 0)
		skip();
	if (direct_is_cached(&file, 0, N))
		skip();
	return file;
}

DIRECTORY_TEST(unaligned_reads_are_exact)
{
	struct file file = open_uncached(O_DIRECT);
	uint64_t x = 1;

	for (int i = 0; i < 500; i++) {
		size_t offset, nbytes, shift, rest;
		unsigned char *memory;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		offset = (x >> 20) % (N - SMALL_N);
		nbytes = 1 + (x >> 40) % SMALL_N;
		shift = i % 3 ? x >> 50 : 0;
		if (i % 5 == 0)
			offset -= offset % DIRECT_ALIGN_NBYTES;
		rest = i % 2 ? (x >> 30) % DIRECT_ALIGN_NBYTES : 0;
		memory = guarded_alloc(shift + nbytes + rest);
		assert_int_equal(direct_read_at(queue, &file, offset, memory + shift, nbytes), 0);
		assert_memory_equal(memory + shift, data + offset, nbytes);
		for (size_t j = shift + nbytes; j < shift + nbytes + rest; j++)
			assert_int_equal(memory[j], 0xa5);
		guarded_free(memory, shift + nbytes + rest);
	}
	file_close(&file);
}

DIRECTORY_TEST(end_of_the_file_is_read)
{
	struct file file = open_uncached(O_DIRECT);
	unsigned char *back = guarded_alloc(N);

	assert_int_equal(direct_read_at(queue, &file, 0, back, N), 0);
	assert_memory_equal(back, data, N);
	assert_int_equal(direct_read_at(queue, &file, N - 10, back, 10), 0);
	assert_memory_equal(back, data + N - 10, 10);
	assert_int_equal(direct_read_at(queue, &file, N - 10, back, 11), -EINVAL);
	assert_int_equal(direct_read_at(queue, &file, 1, back, N), -EINVAL);
	guarded_free(back, N);
	file_close(&file);
}

DIRECTORY_TEST(read_ranges_are_cached)
{
	struct file file = open_uncached(0);
	unsigned char *back = guarded_alloc(N);

	assert_int_equal(file_read_at(&file, 0, back, N), 0);
	assert_true(direct_is_cached(&file, 0, N));
	guarded_free(back, N);
	file_close(&file);
}

DIRECTORY_TEST(unaligned_writes_are_exact_or_fail)
{
	struct file direct = open_uncached(O_DIRECT), cached;
	unsigned char *back = guarded_alloc(N);
	uint64_t x = 1, at = 0;

	file_close(&direct);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_RDWR | O_TRUNC, 0,
				   &cached),
			 0);
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
	faults.transfer_errno = EIO;
	assert_int_equal(direct_write_at(queue, &direct, &cached, 0, data, N), -EIO);
	guarded_free(back, N);
	file_close(&direct);
	file_close(&cached);
}

/* Open the file as a source that is large from large_nbytes on. */
static void open_source(uint64_t large_nbytes, struct source_table *ret_table,
			struct source *ret_source)
{
	source_table_init(ret_table, &faulty_calls, &(struct format_rules){ 0 });
	ret_table->large_nbytes = large_nbytes;
	source_prepare(ret_source, fixture_path("f"), (struct endpoint){ .kind = ENDPOINT_PATH });
	assert_int_equal(source_probe(ret_table, ret_source), 0);
}

static void read_source(uint64_t large_nbytes)
{
	unsigned char *back = guarded_alloc(N);
	struct source_table table;
	struct source source;

	open_source(large_nbytes, &table, &source);
	assert_int_equal(source_read_at(&table, &source, 0, back, N), 0);
	assert_memory_equal(back, data, N);
	source_close(&table, &source);
	source_table_destroy(&table);
	guarded_free(back, N);
}

DIRECTORY_TEST(large_uncached_source_stays_uncached)
{
	struct file file = open_uncached(0);

	for (int refuses = 0; refuses < 2; refuses++) {
		faults.rejects_direct = refuses;
		read_source(N);
		assert_false(direct_is_cached(&file, 0, N));
	}
	read_source(N + 1);
	assert_true(direct_is_cached(&file, 0, N));
	read_source(N);
	assert_true(direct_is_cached(&file, 0, N));
	file_close(&file);
}

/* Longer than several drop ranges, and than the read-ahead of any kernel. */
enum { LONG_FILE_NBYTES = (136 << 20) + 4321 };

/* Like a merge: the first record of each block, then the blocks. */
static void read_in_small_steps(uint64_t large_nbytes)
{
	static unsigned char back[SMALL_N];
	struct source_table table;
	struct source source;

	open_source(large_nbytes, &table, &source);
	for (uint64_t at = 0; at < LONG_FILE_NBYTES; at += SMALL_N)
		assert_int_equal(source_read_at(&table, &source, at, back, 8), 0);
	for (uint64_t at = 0; at < LONG_FILE_NBYTES; at += SMALL_N) {
		const uint64_t remaining = LONG_FILE_NBYTES - at,
			       n = remaining < SMALL_N ? remaining : SMALL_N;

		assert_int_equal(source_read_at(&table, &source, at, back, n), 0);
		if (at + n <= N)
			assert_memory_equal(back, data + at, n);
	}
	source_close(&table, &source);
	source_table_destroy(&table);
}

DIRECTORY_TEST(small_reads_leave_large_source_uncached)
{
	struct file file = open_uncached(0);

	assert_int_equal(truncate(fixture_path("f"), LONG_FILE_NBYTES), 0);
	read_in_small_steps(LONG_FILE_NBYTES);
	for (uint64_t at = 0; at < LONG_FILE_NBYTES; at += LONG_FILE_NBYTES / 16)
		assert_false(direct_is_cached(&file, at, LONG_FILE_NBYTES / 16));
	read_in_small_steps(LONG_FILE_NBYTES + 1);
	assert_true(direct_is_cached(&file, 0, LONG_FILE_NBYTES));
	read_in_small_steps(LONG_FILE_NBYTES);
	assert_true(direct_is_cached(&file, 0, LONG_FILE_NBYTES));
	file_close(&file);
}

DIRECTORY_TEST(write_behind_drops_old_pages)
{
	enum { LONG = 64 << 20 };
	struct file file = open_uncached(0);
	unsigned char *back = guarded_alloc(N);

	assert_int_equal(file_read_at(&file, 0, back, N), 0);
	file_start_writeback(&file, LONG - N, N);
	assert_true(direct_is_cached(&file, 0, N));
	file_start_writeback(&file, LONG, N);
	assert_false(direct_is_cached(&file, 0, N));
	guarded_free(back, N);
	file_close(&file);
}

static int with_queue(void **state)
{
	return fixture_start(state) < 0 ? -1 : io_queue_open(&queue);
}

static int finish(void **state)
{
	io_queue_close(queue);
	queue = NULL;
	return fixture_finish(state);
}

static int prepare(void **state)
{
	(void)state;
	fill_pattern(data, sizeof data, 1);
	return 0;
}

GROUP_FIXTURE(prepare, NULL)
TEST_AGAIN(unaligned_reads_are_exact, with_queue, finish)
TEST_AGAIN(end_of_the_file_is_read, with_queue, finish)
TEST_AGAIN(unaligned_writes_are_exact_or_fail, with_queue, finish)
