/*
 * test_page_alloc - memory in huge pages or small ones is memory all the same
 */
#include "src/device/cpu/page_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* last: it makes a macro of fail */

enum { HUGE_PAGE = 2 << 20, MOST_PIECES = 6 };

static const size_t sizes[] = { 1,         4096,          HUGE_PAGE - 1,
				HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE,
				9999999 };

static int start(void **state)
{
	static struct pages pages;

	pages_init(&pages);
	*state = &pages;
	return 0;
}

static int finish(void **state)
{
	pages_destroy(*state);
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
		unsigned char *pieces[MOST_PIECES];

		for (int i = 0; i < MOST_PIECES; i++) {
			pieces[i] = pages_map(*state, sizes[s]);
			assert_non_null(pieces[i]);
			assert_zeroed(pieces[i], sizes[s]);
			memset(pieces[i], i + 1, sizes[s]);
		}
		for (int i = 0; i < MOST_PIECES; i++) {
			assert_int_equal(pieces[i][0], i + 1);
			assert_int_equal(pieces[i][sizes[s] - 1], i + 1);
			pages_unmap(pieces[i], sizes[s]);
		}
	}
}

static void large_pieces_begin_where_huge_pages_do(void **state)
{
	unsigned char *memory = pages_map(*state, 3 * HUGE_PAGE);

	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % HUGE_PAGE, 0);
	pages_unmap(memory, 3 * HUGE_PAGE);
}

static void both_ways_are_tried(void **state)
{
	const struct pages *pages = *state;

	for (int i = 0; i < 4; i++)
		pages_unmap(pages_map(*state, HUGE_PAGE), HUGE_PAGE);
	assert_true(pages->ways.of[WAY_USUAL].n_begun > 0);
	assert_true(pages->ways.of[WAY_OTHER].n_begun > 0);
}

static void too_much_is_refused(void **state)
{
	assert_null(pages_map(*state, SIZE_MAX / 4));
	pages_unmap(NULL, HUGE_PAGE);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(pieces_of_any_size_are_zeroed_and_apart),
		FIXTURE(large_pieces_begin_where_huge_pages_do),
		FIXTURE(both_ways_are_tried),
		FIXTURE(too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
