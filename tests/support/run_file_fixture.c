/*
 * run_file_fixture.c - spilled runs of known items (see run_file_fixture.h)
 */
#include "tests/support/run_file_fixture.h"

struct spill *spill;
struct compression *compression;

int start_with_memory(void **state, uint64_t memory_nbytes)
{
	static const char *const directories[] = { fixture_directory };
	int r = fixture_start(state);

	return r < 0 ? r :
		       spill_open(&faulty_calls, directories, 1, SPILL_UNLIMITED, memory_nbytes,
				  &spill);
}

int start(void **state)
{
	return start_with_memory(state, 0);
}

int start_compressing(void **state, const char *mode)
{
	struct compression_params choice;

	if (compression_parse(mode, &choice) < 0 ||
	    compression_open(&choice, true, &compression) < 0)
		return -1;
	return start(state);
}

int start_delta(void **state)
{
	return start_compressing(state, "delta");
}

int start_zstd(void **state)
{
	return start_compressing(state, "zstd");
}

int finish(void **state)
{
	spill_close(spill);
	compression_close(compression);
	compression = NULL;
	return fixture_finish(state);
}

struct run_file *open_run(void)
{
	struct run_file *run;

	assert_int_equal(run_file_open(spill, compression, sizeof(uint64_t), BLOCK_N_ITEMS, &run),
			 0);
	return run;
}

int write_window(struct run_file *run, uint64_t window)
{
	uint64_t items[WINDOW_N_ITEMS];
	encoded_key_t first_keys[WINDOW_N_BLOCKS];

	for (uint64_t i = 0; i < WINDOW_N_ITEMS; i++)
		items[i] = window * 1000 + i;
	for (uint64_t i = 0; i < WINDOW_N_BLOCKS; i++)
		first_keys[i] = items[i * BLOCK_N_ITEMS];
	return run_file_write(run, window, items, NULL, WINDOW_N_ITEMS, first_keys);
}

struct run_file *make_finished_run(uint64_t n_windows)
{
	struct run_file *run = open_run();

	for (uint64_t window = n_windows; window-- > 0;)
		assert_int_equal(write_window(run, window), 0);
	run_file_finish(run);
	return run;
}

void assert_blocks_read(struct run_file *run, uint64_t first, uint64_t n)
{
	const struct run_block *blocks = run_file_index(run)->blocks;
	size_t nbytes = 0;
	uint64_t *items, *item;

	for (uint64_t i = first; i < first + n; i++)
		nbytes += blocks[i].n_items * sizeof *items;
	item = items = guarded_alloc(nbytes);
	assert_int_equal(run_file_read(run, first, n, READ_ITEMS, items), 0);
	for (uint64_t i = first; i < first + n; i++)
		for (uint64_t j = 0; j < blocks[i].n_items; j++)
			assert_int_equal(*item++, i / WINDOW_N_BLOCKS * 1000 +
							  i % WINDOW_N_BLOCKS * BLOCK_N_ITEMS + j);
	guarded_free(items, nbytes);
}

uint64_t run_stored_nbytes(const struct run_file *run)
{
	uint64_t nbytes = 0;

	for (uint64_t i = 0; i < run_file_index(run)->n_blocks; i++)
		nbytes += run_file_index(run)->blocks[i].stored_nbytes;
	return nbytes;
}
