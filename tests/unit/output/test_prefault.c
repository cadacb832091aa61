/*
 * test_prefault - pages of a file are cached before it is written, and no write is lost
 */
#include "io/output/preallocate.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/output/file_writer.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

/* Neither end is at the border of a page. */
enum { BASE = 12345, N = 5 * MMAP_SEGMENT_NBYTES + 54321, N_FULL_SEGMENTS = 4, WRITERS = 3 };

static struct file file;
static struct preallocation preallocation;

/* Returns false if the file system cannot preallocate. */
static bool open_file(void)
{
	uint64_t free_nbytes;

	process_setup(); /* cmocka installs a SIGBUS handler for each test */
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("f"), O_RDWR | O_CREAT,
				   0600, &file),
			 0);
	assert_int_equal(ftruncate(file.fd, BASE), 0);
	preallocate_init(&preallocation);
	assert_int_equal(preallocate_start(&preallocation, &file, BASE, N, &free_nbytes), 0);
	return preallocation.is_supported;
}

static struct prefault *start(void)
{
	struct prefault *prefault;

	assert_int_equal(prefault_start(&(struct prefault_file){ &file, &preallocation }, 1,
					WRITERS, 2, &prefault),
			 0);
	return prefault;
}

static void close_file(void)
{
	preallocate_destroy(&preallocation);
	file_close(&file);
}

/* The cached bytes of the full segments behind the base. */
static size_t resident_nbytes(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = MMAP_SEGMENT_NBYTES / page;
	unsigned char there[MMAP_SEGMENT_NBYTES / 4096];
	size_t n = 0;

	for (size_t i = 1; i <= N_FULL_SEGMENTS; i++) {
		void *segment = mmap(NULL, MMAP_SEGMENT_NBYTES, PROT_READ, MAP_SHARED, file.fd,
				     (off_t)(i * MMAP_SEGMENT_NBYTES));

		assert_ptr_not_equal(segment, MAP_FAILED);
		assert_int_equal(mincore(segment, MMAP_SEGMENT_NBYTES, there), 0);
		for (size_t j = 0; j < n_pages; j++)
			n += there[j] & 1 ? page : 0;
		munmap(segment, MMAP_SEGMENT_NBYTES);
	}
	return n;
}

/* The kernel may have dropped some of them already. */
DIRECTORY_TEST(all_full_segments_are_cached)
{
	struct prefault *prefault;
	uint64_t nbytes;

	if (!open_file())
		skip();
	prefault = start();
	do {
		sched_yield();
		assert_int_equal(file_size(&file, &nbytes), 0);
	} while (nbytes < UINT64_C(5) * MMAP_SEGMENT_NBYTES ||
		 resident_nbytes() <= N_FULL_SEGMENTS * MMAP_SEGMENT_NBYTES / 2);
	prefault_stop(prefault);
	assert_true(nbytes <= BASE + N);
	close_file();
}

/* One file has no full segment, and they begin at different offsets. */
DIRECTORY_TEST(segments_of_several_files_are_prefaulted)
{
	enum { FILES = 4, BIT = 4096 };
	static const uint64_t bases[FILES] = { 0, 0, 1, 0 },
			      nbytes[FILES] = { UINT64_C(2) * MMAP_SEGMENT_NBYTES + BIT, BIT,
						UINT64_C(2) * MMAP_SEGMENT_NBYTES,
						UINT64_C(3) * MMAP_SEGMENT_NBYTES },
			      ends[FILES] = { UINT64_C(2) * MMAP_SEGMENT_NBYTES, BIT,
					      UINT64_C(2) * MMAP_SEGMENT_NBYTES,
					      UINT64_C(3) * MMAP_SEGMENT_NBYTES };
	struct preallocation reservations[FILES];
	struct prefault_file prefault_files[FILES];
	struct file files[FILES];
	struct prefault *prefault;
	uint64_t free_nbytes, is;

	if (!open_file())
		skip();
	close_file();
	for (int i = 0; i < FILES; i++) {
		const char name[] = { (char)('a' + i), 0 };

		assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path(name),
					   O_RDWR | O_CREAT, 0600, &files[i]),
				 0);
		assert_int_equal(ftruncate(files[i].fd, (off_t)bases[i]), 0);
		preallocate_init(&reservations[i]);
		assert_int_equal(preallocate_start(&reservations[i], &files[i], bases[i], nbytes[i],
						   &free_nbytes),
				 0);
		prefault_files[i] = (struct prefault_file){ &files[i], &reservations[i] };
	}
	assert_int_equal(prefault_start(prefault_files, FILES, WRITERS, 2, &prefault), 0);
	for (int i = 0; i < FILES; i++) {
		do {
			sched_yield();
			assert_int_equal(file_size(&files[i], &is), 0);
		} while (is < ends[i]);
		assert_true(is <= bases[i] + nbytes[i]);
	}
	for (int i = 0; i < FILES; i++)
		prefault_stop(prefault);
	for (int i = 0; i < FILES; i++) {
		preallocate_destroy(&reservations[i]);
		file_close(&files[i]);
	}
}

DIRECTORY_TEST(concurrent_writes_are_kept)
{
	const size_t step = 100 * 1000;
	unsigned char *data = malloc(N), *is = malloc(N);
	struct prefault *prefault;
	struct file_writer writer;

	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(1 + i * 31 % 255);
	if (!open_file())
		skip();
	file_writer_init(&writer, &file, &faulty_calls);
	file_writer_set_n_writers(&writer, WRITERS);
	prefault = start();
	for (size_t i = 0; i < N; i += step) {
		const size_t n = i + step < N ? step : N - i;

		assert_int_equal(file_writer_write_at(&writer, BASE + i, data + i, n,
						      preallocate_range(&preallocation, i, i + n)),
				 0);
	}
	prefault_stop(prefault);
	file_writer_destroy(&writer);
	assert_int_equal(file_read_at(&file, BASE, is, N), 0);
	assert_memory_equal(is, data, N);
	free(is);
	free(data);
	close_file();
}
