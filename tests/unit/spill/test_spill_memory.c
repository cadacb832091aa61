/*
 * test_spill_memory.c - temporary data is stored in memory first
 */
#include <pthread.h>
#include <sys/resource.h>

#include "io/spill/memory_tier.h"
#include "src/base/thread.h"
#include "tests/support/spill_fixture.h"
#include "tests/support/unit_test.h"

/* Open a spill with memory for n_extents of N bytes. */
static struct spill *open_with_memory(const char *const *directory, unsigned n_extents,
				      uint64_t limit_nbytes)
{
	struct spill *spill;

	assert_int_equal(spill_open(&faulty_calls, directory, 1, limit_nbytes,
				    (uint64_t)n_extents * N_IN_PAGES, &spill),
			 0);
	return spill;
}

static bool is_in_memory(struct spill *spill, struct spill_extent extent)
{
	return strcmp(spill_directory(spill, extent.file), "memory") == 0;
}

DIRECTORY_TEST(memory_is_filled_before_a_file_is_opened)
{
	const char *const directory = "/nowhere";
	struct spill *spill = open_with_memory(&directory, 3, SPILL_UNLIMITED);
	struct spill_extent extents[3];

	for (int i = 0; i < 3; i++) {
		extents[i] = store_bytes(spill, N);
		assert_true(is_in_memory(spill, extents[i]));
		assert_true(extents[i].offset % SPILL_ALIGN_NBYTES == 0);
	}
	for (int i = 0; i < 3; i++)
		assert_stored(spill, extents[i]);
	assert_int_equal(spill_write(spill, spill_bytes, 1, &extents[0]), -ENOENT);
	spill_close(spill);
}

DIRECTORY_TEST(overflow_of_memory_goes_to_files)
{
	const char *const directory = fixture_directory;
	struct spill *spill = open_with_memory(&directory, 1, SPILL_UNLIMITED);
	struct spill_extent extents[3];

	for (int i = 0; i < 3; i++)
		extents[i] = store_bytes(spill, N);
	assert_true(is_in_memory(spill, extents[0]));
	assert_false(is_in_memory(spill, extents[1]));
	for (int i = 0; i < 3; i++)
		assert_stored(spill, extents[i]);
	assert_int_equal(spill_used_nbytes(spill), 2 * N_IN_PAGES);
	spill_close(spill);
}

DIRECTORY_TEST(memory_does_not_count_against_the_limit)
{
	const char *const directory = fixture_directory;
	struct spill *spill = open_with_memory(&directory, 2, N_IN_PAGES);
	struct spill_extent extent;
	uint64_t nbytes;

	assert_int_equal(spill_free_nbytes(spill, &nbytes), 0);
	assert_int_equal(nbytes, 3 * N_IN_PAGES);
	for (int i = 0; i < 3; i++)
		store_bytes(spill, N);
	assert_int_equal(spill_write(spill, spill_bytes, 1, &extent), -ENOSPC);
	spill_close(spill);
}

/* The range [first, first + nbytes) of an extent. */
static struct spill_extent part(struct spill_extent extent, uint64_t first, uint64_t nbytes)
{
	extent.offset += first;
	extent.nbytes = nbytes;
	return extent;
}

DIRECTORY_TEST(discarded_pages_of_memory_are_used_again)
{
	const char *const directory = "/nowhere";
	struct spill *spill = open_with_memory(&directory, 2, SPILL_UNLIMITED);
	const struct spill_extent a = store_bytes(spill, N), b = store_bytes(spill, N);
	unsigned char back[SPILL_ALIGN_NBYTES];
	struct spill_extent extent;

	spill_discard(spill, part(a, 0, 8 * SPILL_ALIGN_NBYTES));
	assert_stored(spill, store_bytes(spill, 8 * SPILL_ALIGN_NBYTES));
	assert_int_equal(spill_write(spill, spill_bytes, 1, &extent), -ENOENT);
	assert_int_equal(spill_read(spill, part(a, 8 * SPILL_ALIGN_NBYTES, sizeof back), back), 0);
	assert_memory_equal(back, spill_bytes + 8 * SPILL_ALIGN_NBYTES, sizeof back);
	spill_discard(spill, part(a, 8 * SPILL_ALIGN_NBYTES, N - 8 * SPILL_ALIGN_NBYTES));
	assert_stored(spill, store_bytes(spill, 17 * SPILL_ALIGN_NBYTES));
	assert_stored(spill, b);
	spill_close(spill);
}

static long resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long n = 0;

	assert_int_equal(fscanf(file, "%*d %ld", &n), 1);
	fclose(file);
	return n;
}

DIRECTORY_TEST(discarded_memory_returns_to_the_system)
{
	const char *const directory = "/nowhere";
	struct spill *spill = open_with_memory(&directory, 100, SPILL_UNLIMITED);
	struct spill_extent extents[100];
	long n_pages;

	for (int i = 0; i < 100; i++)
		extents[i] = store_bytes(spill, N);
	n_pages = resident_pages();
	for (int i = 0; i < 50; i++)
		spill_discard(spill, part(extents[i], 0, 20 * SPILL_ALIGN_NBYTES));
	assert_true(n_pages - resident_pages() > 50 * 18);
	for (int i = 50; i < 100; i++)
		spill_discard(spill, extents[i]);
	assert_true(n_pages - resident_pages() > 50 * (18 + 23));
	spill_close(spill);
}

/* Sanitizers do not run with a limit on the address space. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CAN_LIMIT_MEMORY 0
#else
#define CAN_LIMIT_MEMORY 1
#endif

DIRECTORY_TEST(failed_allocation_falls_back_to_files)
{
	const char *const directory = fixture_directory;
	struct spill *spill;
	struct spill_extent extent;
	struct rlimit before, none;

	if (!CAN_LIMIT_MEMORY)
		skip();
	spill = open_with_memory(&directory, 1, SPILL_UNLIMITED);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	extent = store_bytes(spill, N);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_false(is_in_memory(spill, extent));
	assert_stored(spill, extent);
	extent = store_bytes(spill, N);
	assert_true(is_in_memory(spill, extent));
	spill_close(spill);
}

static uint64_t address_nbytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long n = 0;

	assert_int_equal(fscanf(file, "%lu", &n), 1);
	fclose(file);
	return n * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Allocate all memory in blocks of at least that size, as a linked list. */
static void *exhaust_heap(size_t min_nbytes)
{
	void *list = NULL;

	for (size_t nbytes = 1 << 16; nbytes >= min_nbytes; nbytes /= 2)
		for (void **next; (next = malloc(nbytes)); list = next)
			*next = list;
	return list;
}

static void free_list(void *list)
{
	while (list) {
		void *next = *(void **)list;

		free(list);
		list = next;
	}
}

/* The extent can be mapped, but the table of extents cannot grow. */
DIRECTORY_TEST(unrecorded_extent_leaves_no_mapping)
{
	struct memory_tier *tier;
	struct rlimit before, limit;
	uint64_t nbytes, offset;
	void *list;
	int r;

	if (!CAN_LIMIT_MEMORY)
		skip();
	assert_int_equal(memory_tier_open(10 * N_IN_PAGES, &tier), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	nbytes = address_nbytes();
	limit = (struct rlimit){ .rlim_cur = nbytes, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	list = exhaust_heap(64);
	limit.rlim_cur += N_IN_PAGES;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	r = memory_tier_write(tier, spill_bytes, N, &offset);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	free_list(list);
	assert_int_equal(r, -ENOMEM);
	assert_true(address_nbytes() <= nbytes);
	assert_int_equal(memory_tier_free_nbytes(tier), 10 * N_IN_PAGES);
	assert_int_equal(memory_tier_write(tier, spill_bytes, N, &offset), 0);
	memory_tier_close(tier);
}

/* Store, read back and discard; some extents fit in memory. */
static void *use_memory(void *spill)
{
	for (int i = 0; i < 200; i++) {
		const struct spill_extent extent = store_bytes(spill, N);

		assert_stored(spill, extent);
		spill_discard(spill, extent);
	}
	return NULL;
}

DIRECTORY_TEST(threads_share_memory)
{
	const char *const directory = fixture_directory;
	struct spill *spill = open_with_memory(&directory, 2, SPILL_UNLIMITED);
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(thread_start(use_memory, spill, 0, &threads[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(spill_used_nbytes(spill), 0);
	assert_true(is_in_memory(spill, store_bytes(spill, N)));
	assert_true(is_in_memory(spill, store_bytes(spill, N)));
	spill_close(spill);
}

DIRECTORY_TEST(memory_limit_may_be_raised_later)
{
	const char *const directory = fixture_directory;
	struct spill *spill = open_with_memory(&directory, 0, SPILL_UNLIMITED);

	assert_false(is_in_memory(spill, store_bytes(spill, N)));
	memory_tier_raise_limit(spill_memory(spill), N_IN_PAGES);
	assert_true(is_in_memory(spill, store_bytes(spill, N)));
	assert_int_equal(memory_tier_used_nbytes(spill_memory(spill)), N_IN_PAGES);
	assert_false(is_in_memory(spill, store_bytes(spill, N)));
	memory_tier_raise_limit(spill_memory(spill), 0);
	assert_int_equal(memory_tier_used_nbytes(spill_memory(spill)), N_IN_PAGES);
	spill_close(spill);
}

GROUP_FIXTURE(fill_spill_bytes, NULL)
