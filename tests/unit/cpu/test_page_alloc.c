/*
 * test_page_alloc - a large allocation tries both sizes of pages
 */
#include "src/device/cpu/page_alloc.h"

#include <sys/mman.h>

#include "tests/support/unit_test.h"

enum { PART_NBYTES = 64 << 20, N_PARTS = 4 };

static bool is_resident(void *page)
{
	unsigned char resident = 0;

	assert_int_equal(mincore(page, 1, &resident), 0);
	return resident & 1;
}

TEST(the_first_pages_of_each_64_MiB_are_timed)
{
	const size_t nbytes = (size_t)PART_NBYTES * N_PARTS;
	struct page_alloc allocator;
	char *memory;

	page_alloc_init(&allocator);
	memory = page_alloc_map(&allocator, nbytes);
	assert_non_null(memory);
	/* Otherwise the kernel is older than 5.14 and cannot time pages. */
	if (allocator.adaptive.methods[METHOD_DEFAULT].nbytes > 0) {
		for (size_t i = 0; i < N_PARTS; i++) {
			assert_true(is_resident(memory + i * PART_NBYTES));
			assert_false(is_resident(memory + i * PART_NBYTES + PART_NBYTES / 2));
		}
		assert_true(allocator.adaptive.methods[METHOD_SECOND].nbytes > 0);
	}
	page_alloc_unmap(memory, nbytes);
	page_alloc_destroy(&allocator);
}
