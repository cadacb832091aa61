/*
 * test_prefault - pages of a file are there before it is written, and nobody's bytes are lost
 */
#include "io/output/prefault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/output/file_writer.h"
#include "src/base/thread.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

/* Not at pages' borders, neither in front nor behind. */
enum { BASE = 12345, N = 5 * MAPPED_PIECE_NBYTES + 54321, N_WHOLE = 4, WRITERS = 3 };

static unsigned char data[N];

static struct file file;
static struct reservation reservation;

/* False: this file system does not reserve. */
static bool open_file(void)
{
	uint64_t free_nbytes;

	process_lend(); /* cmocka has a handler of its own for each test */
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(1 + i * 31 % 255);
	assert_int_equal(
		file_open(&faulty_calls, AT_FDCWD, path_of("f"), O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(ftruncate(file.fd, BASE), 0);
	reservation_init(&reservation);
	assert_int_equal(reservation_start(&reservation, &file, BASE, N, &free_nbytes), 0);
	return reservation.is_real;
}

static int start(unsigned n_threads, struct early_pages **ret_early)
{
	return early_pages_start(&(struct early_file){ &file, &reservation }, 1, WRITERS, n_threads,
				 ret_early);
}

static void close_file(void)
{
	reservation_destroy(&reservation);
	file_close(&file);
}

/* Of the whole pieces behind the base, bytes that are in the page cache. */
static size_t resident_nbytes(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = MAPPED_PIECE_NBYTES / page;
	unsigned char there[MAPPED_PIECE_NBYTES / 4096];
	size_t n = 0;

	for (size_t i = 1; i <= N_WHOLE; i++) {
		void *piece = mmap(NULL, MAPPED_PIECE_NBYTES, PROT_READ, MAP_SHARED, file.fd,
				   (off_t)(i * MAPPED_PIECE_NBYTES));

		assert_ptr_not_equal(piece, MAP_FAILED);
		assert_int_equal(mincore(piece, MAPPED_PIECE_NBYTES, there), 0);
		for (size_t j = 0; j < n_pages; j++)
			n += there[j] & 1 ? page : 0;
		munmap(piece, MAPPED_PIECE_NBYTES);
	}
	return n;
}

/* A kernel may have taken back some of them already. */
static void all_whole_pieces_come_into_the_cache(void **state)
{
	struct early_pages *early;
	uint64_t nbytes;

	(void)state;
	if (!open_file())
		skip();
	assert_int_equal(start(2, &early), 0);
	early_pages_wait(early);
	early_pages_stop(early);
	assert_int_equal(file_size(&file, &nbytes), 0);
	assert_true(nbytes >= UINT64_C(5) * MAPPED_PIECE_NBYTES && nbytes <= BASE + N);
	assert_true(resident_nbytes() > N_WHOLE * MAPPED_PIECE_NBYTES / 2);
	close_file();
}

/* Of which one has no whole piece, and each begins at another place. */
static void pieces_of_several_files_are_made_ready_and_no_more(void **state)
{
	enum { FILES = 4, BIT = 4096 };
	static const uint64_t bases[FILES] = { 0, 0, 1, 0 },
			      nbytes[FILES] = { UINT64_C(2) * MAPPED_PIECE_NBYTES + BIT, BIT,
						UINT64_C(2) * MAPPED_PIECE_NBYTES,
						UINT64_C(3) * MAPPED_PIECE_NBYTES },
			      ends[FILES] = { UINT64_C(2) * MAPPED_PIECE_NBYTES, BIT,
					      UINT64_C(2) * MAPPED_PIECE_NBYTES,
					      UINT64_C(3) * MAPPED_PIECE_NBYTES };
	struct reservation reservations[FILES];
	struct early_file early_files[FILES];
	struct file files[FILES];
	struct early_pages *early;
	uint64_t free_nbytes, is;

	(void)state;
	if (!open_file())
		skip();
	close_file();
	for (int i = 0; i < FILES; i++) {
		const char name[] = { (char)('a' + i), 0 };

		assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of(name), O_RDWR | O_CREAT,
					   0600, &files[i]),
				 0);
		assert_int_equal(ftruncate(files[i].fd, (off_t)bases[i]), 0);
		reservation_init(&reservations[i]);
		assert_int_equal(reservation_start(&reservations[i], &files[i], bases[i], nbytes[i],
						   &free_nbytes),
				 0);
		early_files[i] = (struct early_file){ &files[i], &reservations[i] };
	}
	assert_int_equal(early_pages_start(early_files, FILES, WRITERS, 2, &early), 0);
	early_pages_wait(early);
	for (int i = 0; i < FILES; i++)
		early_pages_stop(early);
	for (int i = 0; i < FILES; i++) {
		assert_int_equal(file_size(&files[i], &is), 0);
		assert_in_range(is, ends[i], bases[i] + nbytes[i]);
		reservation_destroy(&reservations[i]);
		file_close(&files[i]);
	}
}

static void *make_ready(void *context)
{
	struct early_pages *early;

	(void)context;
	assert_int_equal(start(3, &early), 0);
	early_pages_wait(early);
	early_pages_stop(early);
	return NULL;
}

static void what_others_write_meanwhile_stays(void **state)
{
	const size_t step = 100 * 1000;
	unsigned char *is = malloc(N);
	struct file_writer writer;
	pthread_t thread;

	(void)state;
	if (!open_file())
		skip();
	file_writer_init(&writer, &file, &faulty_calls);
	file_writer_divide(&writer, WRITERS);
	assert_int_equal(thread_start(make_ready, NULL, 0, &thread), 0);
	for (size_t i = 0; i < N; i += step) {
		const size_t n = i + step < N ? step : N - i;

		assert_int_equal(file_writer_write_at(&writer, BASE + i, data + i, n,
						      reservation_reach(&reservation, i, i + n)),
				 0);
	}
	pthread_join(thread, NULL);
	file_writer_destroy(&writer);
	assert_int_equal(file_read_at(&file, BASE, is, N), 0);
	assert_memory_equal(is, data, N);
	free(is);
	close_file();
}

/* Nothing more than that: whoever writes will see. */
static void what_cannot_be_reserved_is_left(void **state)
{
	struct early_pages *early;
	uint64_t before, after;

	(void)state;
	if (!open_file())
		skip();
	assert_int_equal(file_size(&file, &before), 0);
	faults.preallocate_errno = ENOSPC;
	assert_int_equal(start(2, &early), 0);
	early_pages_wait(early);
	early_pages_stop(early);
	assert_int_equal(file_size(&file, &after), 0);
	assert_int_equal(after, before);
	close_file();
}

static void less_than_a_piece_is_nothing_to_do(void **state)
{
	struct early_pages *early;
	uint64_t free_nbytes;

	(void)state;
	open_file();
	reservation_destroy(&reservation);
	reservation_init(&reservation);
	assert_int_equal(reservation_start(&reservation, &file, BASE, 1000, &free_nbytes), 0);
	assert_int_equal(start(2, &early), 0);
	early_pages_wait(early);
	early_pages_stop(early);
	early_pages_stop(NULL);
	close_file();
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE(all_whole_pieces_come_into_the_cache),
		FIXTURE(pieces_of_several_files_are_made_ready_and_no_more),
		FIXTURE(what_others_write_meanwhile_stays),
		FIXTURE(what_cannot_be_reserved_is_left),
		FIXTURE(less_than_a_piece_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
