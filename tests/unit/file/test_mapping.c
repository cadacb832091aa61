/*
 * test_mapping - a mapping shows the file, and a file that is cut ends no process
 */
#include "io/file/mmap_writer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = 300 * 1000 };

static unsigned char data[N];

static struct file open_data(void)
{
	struct file file;

	process_lend(); /* cmocka has a handler of its own for each test */
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(1 + i * 31 % 255);
	write_file(path_of("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_RDWR, 0, &file), 0);
	return file;
}

static struct mapping map_all(struct file *file)
{
	struct mapping mapping;

	assert_int_equal(mapping_open(file, 0, N, &mapping), 0);
	return mapping;
}

static void any_range_is_that_of_the_file(void **state)
{
	static const struct {
		uint64_t offset;
		size_t nbytes;
	} ranges[] = { { 0, N }, { 1, N - 1 }, { 4095, 2 }, { 4096, 4096 }, { N - 1, 1 } };
	struct file file = open_data();
	struct mapping mapping;

	(void)state;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		assert_int_equal(mapping_open(&file, ranges[i].offset, ranges[i].nbytes, &mapping),
				 0);
		assert_int_equal(mapping.nbytes, ranges[i].nbytes);
		mapping_populate(&mapping, 0, ranges[i].nbytes);
		assert_memory_equal(mapping.bytes, data + ranges[i].offset, ranges[i].nbytes);
		assert_false(mapping_is_damaged(&mapping));
		mapping_close(&mapping);
		mapping_close(&mapping);
	}
	file_close(&file);
}

static void a_closed_descriptor_leaves_it(void **state)
{
	struct file file = open_data();
	struct mapping mapping = map_all(&file);

	(void)state;
	file_close(&file);
	assert_memory_equal(mapping.bytes, data, N);
	mapping_close(&mapping);
}

static void what_was_cut_off_is_zeros_and_said(void **state)
{
	struct file file = open_data();
	struct mapping cut = map_all(&file), whole;

	(void)state;
	write_file(path_of("g"), data, N);
	file_close(&file);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("g"), O_RDONLY, 0, &file), 0);
	whole = map_all(&file);
	assert_int_equal(truncate(path_of("f"), 8192), 0);
	assert_int_equal(cut.bytes[8191], data[8191]);
	assert_false(mapping_is_damaged(&cut));
	errno = ENOTTY;
	assert_int_equal(cut.bytes[8192], 0);
	assert_int_equal(errno, ENOTTY);
	assert_true(mapping_is_damaged(&cut));
	assert_int_equal(cut.bytes[N - 1], 0);
	assert_false(mapping_is_damaged(&whole));
	assert_memory_equal(whole.bytes, data, N);
	mapping_close(&cut);
	mapping_close(&whole);
	file_close(&file);
}

static void what_takes_its_place_is_undamaged(void **state)
{
	struct file file = open_data();
	struct mapping mapping = map_all(&file);

	(void)state;
	assert_int_equal(truncate(path_of("f"), 0), 0);
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

/* The signal that ends a process which does `act` while a mapping is open. */
static int signal_of(void (*act)(struct file *file))
{
	static const struct rlimit no_core = { 0 };
	struct file file = open_data();
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGBUS, SIG_DFL);
		process_lend();
		map_all(&file);
		act(&file);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	file_close(&file);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void look_past_the_end(struct file *file)
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

static void other_bus_errors_are_as_ever(void **state)
{
	(void)state;
	assert_int_equal(signal_of(look_past_the_end), SIGBUS);
	assert_int_equal(signal_of(send_signal), SIGBUS);
}

/* By one writer, whose pieces are let go. */
static int write_through(const struct file *file, uint64_t offset, const void *bytes, size_t nbytes)
{
	struct mapped_pieces pieces;
	int r;

	mapped_pieces_init(&pieces);
	r = mapped_pieces_write_at(&pieces, file, offset, bytes, nbytes);
	mapped_pieces_destroy(&pieces);
	return r;
}

static void without_guards_nothing_is_mapped(void **state)
{
	struct file file = open_data();
	struct syscalls calls = faulty_calls;
	struct mapping mapping;

	(void)state;
	calls.guards = NULL;
	file.calls = &calls;
	assert_int_equal(mapping_open(&file, 0, N, &mapping), -ENOTSUP);
	assert_int_equal(write_through(&file, 0, data, N), -ENOTSUP);
	file_close(&file);
}

static void processes_guard_their_own(void **state)
{
	static struct mapping_guards others;
	struct file file = open_data();
	struct mapping mapping = map_all(&file);
	const unsigned char *bytes = mapping.bytes;

	(void)state;
	assert_false(mapping_guards_catch(&others, bytes));
	assert_false(mapping_is_damaged(&mapping));
	assert_true(mapping_guards_catch(&process_lent()->guards, bytes + N - 1));
	assert_true(mapping_is_damaged(&mapping));
	assert_int_equal(bytes[0], 0);
	mapping_close(&mapping);
	assert_false(mapping_guards_catch(&process_lent()->guards, bytes));
	file_close(&file);
}

static void there_are_not_more_than_can_be_guarded(void **state)
{
	struct mapping mappings[MAPPING_MOST], one_more;
	struct file file = open_data();

	(void)state;
	for (int i = 0; i < MAPPING_MOST; i++)
		mappings[i] = map_all(&file);
	assert_int_equal(mapping_open(&file, 0, N, &one_more), -EMFILE);
	mapping_close(&mappings[7]);
	assert_int_equal(mapping_open(&file, 0, N, &mappings[7]), 0);
	for (int i = 0; i < MAPPING_MOST; i++)
		mapping_close(&mappings[i]);
	file_close(&file);
}

static void what_cannot_be_mapped_is_refused(void **state)
{
	struct mapping mapping;
	struct file file;

	(void)state;
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("."), O_RDONLY, 0, &file), 0);
	for (int i = 0; i <= MAPPING_MOST; i++)
		assert_int_equal(mapping_open(&file, 0, N, &mapping), -ENODEV);
	file_close(&file);
}

/* Room for LONG bytes, which are 0, and open for reading and writing. */
enum { LONG = (9 << 20) + 4321 };

static struct file open_long(void)
{
	struct file file;

	process_lend();
	assert_int_equal(
		file_open(&faulty_calls, AT_FDCWD, path_of("l"), O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(file_truncate(&file, LONG), 0);
	return file;
}

static void what_is_written_through_mappings_is_in_the_file(void **state)
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

	(void)state;
	assert_non_null(expected);
	assert_non_null(written);
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		fill_pattern(written, ranges[i].nbytes, i);
		memcpy(expected + ranges[i].offset, written, ranges[i].nbytes);
		assert_int_equal(write_through(&file, ranges[i].offset, written, ranges[i].nbytes),
				 0);
		assert_true(file_holds(path_of("l"), expected, LONG));
	}
	file_close(&file);
	free(expected);
	free(written);
}

/* How many pieces are mapped. */
static unsigned n_mapped(const struct mapped_pieces *pieces)
{
	unsigned n = 0;

	for (int i = 0; i < MAPPED_PIECES_MOST; i++)
		n += pieces->all[i].mapping.bytes != NULL;
	return n;
}

static void a_piece_stays_mapped_until_it_is_written(void **state)
{
	struct file file = open_long();
	unsigned char *written = malloc(LONG);
	struct mapped_pieces pieces;

	(void)state;
	assert_non_null(written);
	fill_pattern(written, LONG, 7);
	mapped_pieces_init(&pieces);
	for (size_t done = 0, n; done < LONG; done += n) {
		n = LONG - done < 1000003 ? LONG - done : 1000003;
		assert_int_equal(mapped_pieces_write_at(&pieces, &file, done, written + done, n),
				 0);
		assert_int_equal(n_mapped(&pieces), (done + n) % MAPPED_PIECE_NBYTES != 0);
	}
	mapped_pieces_destroy(&pieces);
	assert_true(file_holds(path_of("l"), written, LONG));
	file_close(&file);
	free(written);
}

/* Places far apart, more than can be mapped at a time, and each in two halves. */
static void more_places_than_pieces_are_written(void **state)
{
	enum { PLACES = MAPPED_PIECES_MOST + 9, HALF = 3000 };
	struct file file = open_long();
	unsigned char *written = calloc(1, 2 * HALF), *seen = malloc(2 * HALF);
	struct mapped_pieces pieces;

	(void)state;
	assert_true(written && seen);
	fill_pattern(written, 2 * HALF, 9);
	assert_int_equal(file_truncate(&file, (uint64_t)PLACES * MAPPED_PIECE_NBYTES), 0);
	mapped_pieces_init(&pieces);
	for (uint64_t half = 0; half < 2; half++)
		for (uint64_t i = 0; i < PLACES; i++)
			assert_int_equal(
				mapped_pieces_write_at(&pieces, &file,
						       i * MAPPED_PIECE_NBYTES + 77 + half * HALF,
						       written + half * HALF, HALF),
				0);
	assert_int_equal(n_mapped(&pieces), MAPPED_PIECES_MOST);
	mapped_pieces_destroy(&pieces);
	for (uint64_t i = 0; i < PLACES; i++) {
		assert_int_equal(pread(file.fd, seen, 2 * HALF,
				       (off_t)(i * MAPPED_PIECE_NBYTES + 77)),
				 2 * HALF);
		assert_memory_equal(seen, written, 2 * HALF);
	}
	file_close(&file);
	free(written);
	free(seen);
}

/* Where there is no file, no page can be had. */
static void writing_where_there_is_no_file_is_an_error(void **state)
{
	struct file file = open_long();
	unsigned char *written = calloc(1, LONG);

	(void)state;
	assert_non_null(written);
	assert_true(write_through(&file, LONG - 100, written, 8192) < 0);
	assert_true(write_through(&file, 2 * LONG, written, LONG) < 0);
	assert_int_equal(file_truncate(&file, 8192), 0);
	assert_true(write_through(&file, 0, written, LONG) < 0);
	file_close(&file);
	free(written);
}

static void what_may_not_be_written_is_refused(void **state)
{
	struct file file;

	(void)state;
	write_file(path_of("f"), data, N);
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_WRONLY, 0, &file), 0);
	assert_int_equal(write_through(&file, 0, data, N), -EACCES);
	file_close(&file);
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE(any_range_is_that_of_the_file),
		FIXTURE(a_closed_descriptor_leaves_it),
		FIXTURE(what_was_cut_off_is_zeros_and_said),
		FIXTURE(what_takes_its_place_is_undamaged),
		FIXTURE(other_bus_errors_are_as_ever),
		FIXTURE(without_guards_nothing_is_mapped),
		FIXTURE(processes_guard_their_own),
		FIXTURE(there_are_not_more_than_can_be_guarded),
		FIXTURE(what_cannot_be_mapped_is_refused),
		FIXTURE(what_is_written_through_mappings_is_in_the_file),
		FIXTURE(a_piece_stays_mapped_until_it_is_written),
		FIXTURE(more_places_than_pieces_are_written),
		FIXTURE(writing_where_there_is_no_file_is_an_error),
		FIXTURE(what_may_not_be_written_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
