/*
 * test_run_spilled.c - parts of a stored run are read and freed without the others
 */
#include "src/run/run.h"
#include "tests/support/run_file_fixture.h"
#include "tests/support/unit_test.h"

enum { WINDOWS = 5 };

static struct layout layout;

static struct run_file *make_stored(void)
{
	struct key key;

	assert_int_equal(key_parse_type("u64", &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	return make_finished_run(WINDOWS);
}

static struct run *open_stored(void)
{
	struct run *run;

	assert_int_equal(run_open_spilled(make_stored(), SPILLED_ITEMS, &run), 0);
	return run;
}

static struct run *open_test_subrun(struct run *run, uint64_t begin, uint64_t end)
{
	struct run *subrun;

	assert_int_equal(run_open_subrun(&layout, run, begin, end, &subrun), 0);
	return subrun;
}

static void read_all(struct run *run)
{
	static uint64_t items[WINDOWS * WINDOW_N_ITEMS];
	struct digest digest = { 0 };

	assert_int_equal(run_read(run, 0, run->n_blocks, items, &digest), 0);
	for (uint64_t i = 1; i < run->n_items; i++)
		assert_true(items[i - 1] < items[i]);
}

/* Many blocks are in one page, in which the run is cut. */
TEST_WITH(subruns_release_disjoint_blocks, start, finish)
{
	struct run *run = open_stored();

	for (uint64_t cut = 1; cut < 2 * WINDOW_N_ITEMS; cut++) {
		struct run *first = open_test_subrun(run, 0, cut);
		struct run *second = open_test_subrun(run, cut, 3 * WINDOW_N_ITEMS);

		read_all(second);
		run_discard_before(second, second->n_blocks);
		spill_used_nbytes(spill); /* waits until it is freed */
		read_all(first);
		run_close(first);
		run_close(second);
		run_close(run);
		run = open_stored();
	}
	run_close(run);
}

/* The first key of a part that begins within a block is read. */
TEST_WITH(run_whose_part_cannot_be_opened_is_freed, start, finish)
{
	struct run_file *file = make_stored();
	struct run *part;

	faults.transfer_errno = EIO;
	assert_int_equal(run_open_spilled_part(&layout, file, BLOCK_N_ITEMS + 1, WINDOW_N_ITEMS,
					       &part),
			 -EIO);
	assert_int_equal(spill_used_nbytes(spill), 0);
}
