/*
 * test_mapping - a mapping shows the file, and a truncated file does not end the process
 */
#include "io/file/mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N = 300 * 1000 };

static unsigned char data[N];

static struct file open_data(void)
{
	struct file file;

	process_setup(); /* cmocka installs its own handler for each test */
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(1 + i * 31 % 255);
	write_file(fixture_path("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_RDWR, 0, &file),
			 0);
	return file;
}

static struct mapping map_all(struct file *file)
{
	struct mapping mapping;

	assert_int_equal(mapping_open(file, 0, N, &mapping), 0);
	return mapping;
}

DIRECTORY_TEST(mapped_ranges_match_the_file)
{
	static const struct {
		uint64_t offset;
		size_t nbytes;
	} ranges[] = { { 0, N }, { 1, N - 1 }, { 4095, 2 }, { 4096, 4096 }, { N - 1, 1 } };
	struct file file = open_data();
	struct mapping mapping;

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		assert_int_equal(mapping_open(&file, ranges[i].offset, ranges[i].nbytes, &mapping),
				 0);
		mapping_populate(&mapping, 0, ranges[i].nbytes);
		assert_memory_equal(mapping.bytes, data + ranges[i].offset, ranges[i].nbytes);
		assert_false(mapping_is_damaged(&mapping));
		mapping_close(&mapping);
		mapping_close(&mapping);
	}
	file_close(&file);
}

DIRECTORY_TEST(mapping_outlives_its_descriptor)
{
	struct file file = open_data();
	struct mapping mapping = map_all(&file);

	file_close(&file);
	assert_memory_equal(mapping.bytes, data, N);
	mapping_close(&mapping);
}

DIRECTORY_TEST(truncated_mapping_is_zeros_and_damaged)
{
	struct file file = open_data();
	struct mapping cut = map_all(&file), all_mapped;

	write_file(fixture_path("g"), data, N);
	file_close(&file);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("g"), O_RDONLY, 0, &file),
			 0);
	all_mapped = map_all(&file);
	assert_int_equal(truncate(fixture_path("f"), 8192), 0);
	assert_int_equal(cut.bytes[8191], data[8191]);
	assert_false(mapping_is_damaged(&cut));
	errno = ENOTTY;
	assert_int_equal(cut.bytes[8192], 0);
	assert_int_equal(errno, ENOTTY);
	assert_true(mapping_is_damaged(&cut));
	assert_int_equal(cut.bytes[N - 1], 0);
	assert_false(mapping_is_damaged(&all_mapped));
	assert_memory_equal(all_mapped.bytes, data, N);
	mapping_close(&cut);
	mapping_close(&all_mapped);
	file_close(&file);
}

DIRECTORY_TEST(next_mapping_is_undamaged)
{
	struct file file = open_data();
	struct mapping mapping = map_all(&file);

	assert_int_equal(truncate(fixture_path("f"), 0), 0);
	assert_int_equal(mapping.bytes[0], 0);
	assert_true(mapping_is_damaged(&mapping));
	mapping_close(&mapping);
	assert_false(mapping_is_damaged(&mapping));
	file_close(&file);
	file = open_data();
	mapping = map_all(&file);
	assert_false(mapping_is_damaged(&mapping));
	mapping_close(&mapping);
	file_close(&file);
}

/* Return the signal that ends a process which runs `act` while a mapping is open. */
static int get_fatal_signal(void (*act)(struct file *file))
{
	static const struct rlimit no_core = { 0 };
	struct file file = open_data();
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGBUS, SIG_DFL);
		process_setup();
		map_all(&file);
		act(&file);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	file_close(&file);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_past_the_end(struct file *file)
{
	volatile const char *bytes = mmap(NULL, N, PROT_READ, MAP_SHARED, file->fd, 0);

	if (ftruncate(file->fd, 0) == 0)
		(void)bytes[0];
}

static void send_signal(struct file *file)
{
	(void)file;
	raise(SIGBUS);
}

DIRECTORY_TEST(other_bus_errors_still_kill)
{
	assert_int_equal(get_fatal_signal(read_past_the_end), SIGBUS);
	assert_int_equal(get_fatal_signal(send_signal), SIGBUS);
}

/* One writer; complete segments are unmapped. */
static int write_through(const struct file *file, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct mmap_writer writer;
	int r;

	mmap_writer_init(&writer);
	r = mmap_writer_write_at(&writer, file, offset, bytes, nbytes);
	mmap_writer_destroy(&writer);
	return r;
}

DIRECTORY_TEST(nothing_is_mapped_without_a_table)
{
	struct file file = open_data();
	struct syscalls calls = faulty_calls;
	struct mapping mapping;

	calls.mappings = NULL;
	file.calls = &calls;
	assert_int_equal(mapping_open(&file, 0, N, &mapping), -ENOTSUP);
	assert_int_equal(write_through(&file, 0, data, N), -ENOTSUP);
	file_close(&file);
}

DIRECTORY_TEST(mapping_tables_are_per_process)
{
	static struct mapping_table others;
	struct file file = open_data();
	struct mapping mapping = map_all(&file);
	const unsigned char *bytes = mapping.bytes;

	assert_false(mapping_table_handle_fault(&others, bytes));
	assert_false(mapping_is_damaged(&mapping));
	assert_true(mapping_table_handle_fault(&process_get()->guards, bytes + N - 1));
	assert_true(mapping_is_damaged(&mapping));
	assert_int_equal(bytes[0], 0);
	mapping_close(&mapping);
	assert_false(mapping_table_handle_fault(&process_get()->guards, bytes));
	file_close(&file);
}

DIRECTORY_TEST(open_mappings_are_limited)
{
	struct mapping mappings[MAPPING_MAX_OPEN], one_more;
	struct file file = open_data();

	for (int i = 0; i < MAPPING_MAX_OPEN; i++)
		mappings[i] = map_all(&file);
	assert_int_equal(mapping_open(&file, 0, N, &one_more), -EMFILE);
	mapping_close(&mappings[7]);
	assert_int_equal(mapping_open(&file, 0, N, &mappings[7]), 0);
	for (int i = 0; i < MAPPING_MAX_OPEN; i++)
		mapping_close(&mappings[i]);
	file_close(&file);
}

DIRECTORY_TEST(unmappable_files_are_refused)
{
	struct mapping mapping;
	struct file file;

	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("."), O_RDONLY, 0, &file),
			 0);
	for (int i = 0; i <= MAPPING_MAX_OPEN; i++)
		assert_int_equal(mapping_open(&file, 0, N, &mapping), -ENODEV);
	file_close(&file);
}

/* A file of LONG zero bytes, open for reading and writing. */
enum { LONG = (9 << 20) + 4321 };

static struct file open_long(void)
{
	struct file file;

	process_setup();
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("l"), O_RDWR | O_CREAT,
				   0600, &file),
			 0);
	assert_int_equal(file_truncate(&file, LONG), 0);
	return file;
}

DIRECTORY_TEST(mmap_writes_reach_the_file)
{
	static const struct {
		uint64_t offset;
		size_t nbytes;
	} ranges[] = { { 0, 1 },
		       { 1, 4095 },
		       { 5000, 1 },
		       { 12288, 8192 },
		       { (4 << 20) - 7, 14 },
		       { (5 << 20) + 1, 3 << 20 },
		       { LONG - 100, 100 },
		       { (1 << 20) + 3, 7 << 20 } };
	unsigned char *expected = calloc(1, LONG), *written = malloc(LONG);
	struct file file = open_long();

	assert_non_null(expected);
	assert_non_null(written);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		fill_pattern(written, ranges[i].nbytes, i);
		memcpy(expected + ranges[i].offset, written, ranges[i].nbytes);
		assert_int_equal(write_through(&file, ranges[i].offset, written, ranges[i].nbytes),
				 0);
		assert_true(file_contains(fixture_path("l"), expected, LONG));
	}
	file_close(&file);
	free(expected);
	free(written);
}

/* Count the mapped segments. */
static unsigned count_mapped_segments(const struct mmap_writer *writer)
{
	unsigned n = 0;

	for (int i = 0; i < MMAP_WRITER_MAX_SEGMENTS; i++)
		n += writer->segments[i].mapping.bytes != NULL;
	return n;
}

DIRECTORY_TEST(segment_stays_mapped_until_written)
{
	struct file file = open_long();
	unsigned char *written = malloc(LONG);
	struct mmap_writer writer;

	assert_non_null(written);
	fill_pattern(written, LONG, 7);
	mmap_writer_init(&writer);
	for (size_t n_written = 0, n; n_written < LONG; n_written += n) {
		n = LONG - n_written < 1000003 ? LONG - n_written : 1000003;
		assert_int_equal(
			mmap_writer_write_at(&writer, &file, n_written, written + n_written, n), 0);
		assert_int_equal(count_mapped_segments(&writer),
				 (n_written + n) % MMAP_SEGMENT_NBYTES != 0);
	}
	mmap_writer_destroy(&writer);
	assert_true(file_contains(fixture_path("l"), written, LONG));
	file_close(&file);
	free(written);
}

/* More distant segments than can be mapped at a time, each written in two halves. */
DIRECTORY_TEST(more_offsets_than_segments_work)
{
	enum { N_OFFSETS = MMAP_WRITER_MAX_SEGMENTS + 9, HALF = 3000 };
	struct file file = open_long();
	unsigned char *written = calloc(1, 2 * HALF), *seen = malloc(2 * HALF);
	struct mmap_writer writer;

	assert_true(written && seen);
	fill_pattern(written, 2 * HALF, 9);
	assert_int_equal(file_truncate(&file, (uint64_t)N_OFFSETS * MMAP_SEGMENT_NBYTES), 0);
	mmap_writer_init(&writer);
	for (uint64_t half = 0; half < 2; half++)
		for (uint64_t i = 0; i < N_OFFSETS; i++)
			assert_int_equal(
				mmap_writer_write_at(&writer, &file,
						     i * MMAP_SEGMENT_NBYTES + 77 + half * HALF,
						     written + half * HALF, HALF),
				0);
	assert_int_equal(count_mapped_segments(&writer), MMAP_WRITER_MAX_SEGMENTS);
	mmap_writer_destroy(&writer);
	for (uint64_t i = 0; i < N_OFFSETS; i++) {
		assert_int_equal(pread(file.fd, seen, 2 * HALF,
				       (off_t)(i * MMAP_SEGMENT_NBYTES + 77)),
				 2 * HALF);
		assert_memory_equal(seen, written, 2 * HALF);
	}
	file_close(&file);
	free(written);
	free(seen);
}

/* There are no pages behind the end of the file. */
DIRECTORY_TEST(mmap_write_past_the_end_fails)
{
	struct file file = open_long();
	unsigned char *written = calloc(1, LONG);

	assert_non_null(written);
	assert_true(write_through(&file, LONG - 100, written, 8192) < 0);
	assert_true(write_through(&file, 2 * LONG, written, LONG) < 0);
	assert_int_equal(file_truncate(&file, 8192), 0);
	assert_true(write_through(&file, 0, written, LONG) < 0);
	file_close(&file);
	free(written);
}

DIRECTORY_TEST(read_only_file_is_not_mapped_writable)
{
	struct file file;

	write_file(fixture_path("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_WRONLY, 0, &file),
			 0);
	assert_int_equal(write_through(&file, 0, data, N), -EACCES);
	file_close(&file);
}
