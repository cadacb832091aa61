/*
 * test_hole_punch - as many ranges as there is room for are pending; test_spill has the rest
 */
#include "io/spill/hole_punch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/support/unit_test.h"

/* Counts how often each of many ranges of ten bytes was punched. */
enum { MANY = 4000, MAX_HOLES = 1024, DISTANCE = 20 };

struct ranges {
	atomic_uint n_punched;
	atomic_uint times[MANY];
};

static void count_hole(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct ranges *hole_totals = context;

	if (file != 7 || nbytes != 10 || offset % DISTANCE || offset / DISTANCE >= MANY)
		abort();
	atomic_fetch_add(&hole_totals->times[offset / DISTANCE], 1);
	atomic_fetch_add(&hole_totals->n_punched, 1);
}

/* When MAX_HOLES are pending, each addition punches another one at once. */
TEST(separate_holes_fit_in_the_list)
{
	static const struct hole_punch_limits unlimited = { UINT64_MAX, UINT64_MAX };
	struct ranges hole_totals = { 0 };
	struct hole_punch *puncher;

	assert_int_equal(hole_punch_open(count_hole, &hole_totals, &puncher), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		hole_punch_add(puncher, 7, i * DISTANCE, 10, unlimited);
		assert_int_equal(hole_totals.n_punched, i < MAX_HOLES ? 0 : i - MAX_HOLES + 1);
	}
	assert_true(hole_punch_drain(puncher, 0));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hole_totals.times[i], 1);
	hole_punch_close(puncher);
}
