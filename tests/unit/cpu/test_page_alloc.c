/*
 * test_page_alloc - memory in huge pages or small ones is memory all the same
 */
#include "src/device/cpu/page_alloc.h"

#include <stdint.h>
#include <string.h>

#include "tests/support/unit_test.h"

enum { HUGE_PAGE = 2 << 20, MAX_PIECES = 6 };

static const size_t sizes[] = { 1,         4096,          HUGE_PAGE - 1,
				HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE,
				9999999 };

static int start(void **state)
{
	static struct page_alloc allocator;

	page_alloc_init(&allocator);
	*state = &allocator;
	return 0;
}

static int finish(void **state)
{
	page_alloc_destroy(*state);
	return 0;
}

static void assert_zeroed(const unsigned char *memory, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i += 512)
		assert_int_equal(memory[i], 0);
	assert_int_equal(memory[nbytes - 1], 0);
}

static void pieces_of_any_size_are_zeroed_and_apart(void **state)
{
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		unsigned char *blocks[MAX_PIECES];

		for (int i = 0; i < MAX_PIECES; i++) {
			blocks[i] = page_alloc_map(*state, sizes[s]);
			assert_non_null(blocks[i]);
			assert_zeroed(blocks[i], sizes[s]);
			memset(blocks[i], i + 1, sizes[s]);
		}
		for (int i = 0; i < MAX_PIECES; i++) {
			assert_int_equal(blocks[i][0], i + 1);
			assert_int_equal(blocks[i][sizes[s] - 1], i + 1);
			page_alloc_unmap(blocks[i], sizes[s]);
		}
	}
}

static void large_pieces_begin_where_huge_pages_do(void **state)
{
	unsigned char *memory = page_alloc_map(*state, 3 * HUGE_PAGE);

	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % HUGE_PAGE, 0);
	page_alloc_unmap(memory, 3 * HUGE_PAGE);
}

static void both_page_sizes_are_tried(void **state)
{
	const struct page_alloc *allocator = *state;

	for (int i = 0; i < 4; i++)
		page_alloc_unmap(page_alloc_map(*state, HUGE_PAGE), HUGE_PAGE);
	assert_true(allocator->adaptive.methods[METHOD_DEFAULT].n_started > 0);
	assert_true(allocator->adaptive.methods[METHOD_SECOND].n_started > 0);
}

static void too_much_is_refused(void **state)
{
	assert_null(page_alloc_map(*state, SIZE_MAX / 4));
	page_alloc_unmap(NULL, HUGE_PAGE);
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)

static const struct CMUnitTest tests[] = {
	FIXTURE(pieces_of_any_size_are_zeroed_and_apart),
	FIXTURE(large_pieces_begin_where_huge_pages_do),
	FIXTURE(both_page_sizes_are_tried),
	FIXTURE(too_much_is_refused),
};

UNIT_TESTS(page_alloc, tests, NULL, NULL)
