/*
 * test_run_file.c - a run is read as it was written, in order, or not at all
 */
#include <pthread.h>

#include "src/base/thread.h"
#include "tests/support/run_file_fixture.h"
#include "tests/support/unit_test.h"

/* One window is in memory, the others are in the file. */
static int start_in_memory(void **state)
{
	return start_with_memory(state, SPILL_ALIGN_NBYTES);
}

static int start_auto(void **state)
{
	return start_compressing(state, "auto");
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(windows_come_back_in_order)
{
	struct run_file *run = make_finished_run(3);
	const struct run_block *blocks = run_file_index(run)->blocks;

	assert_int_equal(run_file_index(run)->n_items, 3 * WINDOW_N_ITEMS);
	assert_int_equal(run_file_index(run)->n_blocks, 3 * WINDOW_N_BLOCKS);
	for (uint64_t i = 0; i < 3 * WINDOW_N_BLOCKS; i++) {
		const uint64_t in_window = i % WINDOW_N_BLOCKS * BLOCK_N_ITEMS;

		assert_int_equal(blocks[i].first_item,
				 i / WINDOW_N_BLOCKS * WINDOW_N_ITEMS + in_window);
		assert_true(blocks[i].first_key == i / WINDOW_N_BLOCKS * 1000 + in_window);
	}
	for (uint64_t first = 0; first < 3 * WINDOW_N_BLOCKS; first++)
		for (uint64_t n = 1; first + n <= 3 * WINDOW_N_BLOCKS; n++)
			assert_blocks_read(run, first, n);
	run_file_close(run);
}

/* Windows of compressible and incompressible blocks. */
TEST_WITH(mixed_blocks_come_back, start_delta, finish)
{
	enum { N = 4000, IN_BLOCK = 500 };
	uint64_t *items = malloc(N * sizeof *items), *back = guarded_alloc(N * sizeof *items);
	const encoded_key_t first_keys[N / IN_BLOCK] = { 0 };
	struct run_file *run;

	fill_pattern(items, N * sizeof *items, 1);
	for (uint64_t i = 0; i < N; i++)
		if (i / IN_BLOCK % 4 < 2)
			items[i] = i;
	assert_int_equal(run_file_open(spill, compression, sizeof *items, IN_BLOCK, &run), 0);
	for (uint64_t w = 0; w < 2; w++)
		assert_int_equal(run_file_write(run, w, items, NULL, N, first_keys), 0);
	run_file_finish(run);
	for (uint64_t i = 0; i < 2 * N / IN_BLOCK; i++)
		assert_int_equal(run_file_index(run)->blocks[i].codec == CODEC_RAW, i % 4 >= 2);
	for (uint64_t w = 0; w < 2; w++) {
		assert_int_equal(
			run_file_read(run, w * N / IN_BLOCK, N / IN_BLOCK, READ_ITEMS, back), 0);
		assert_memory_equal(back, items, N * sizeof *items);
	}
	assert_true(run_stored_nbytes(run) < 2 * N * sizeof *items * 6 / 10);
	run_file_close(run);
	assert_int_equal(spill_used_nbytes(spill), 0);
	guarded_free(back, N * sizeof *items);
	free(items);
}

TEST_WITH(probe_of_a_codec_reads_only_the_window, start_auto, finish)
{
	uint64_t *items = guarded_alloc(BLOCK_N_ITEMS * sizeof *items);
	const encoded_key_t first_key = 0;
	struct run_file *run = open_run();

	assert_int_equal(run_file_write(run, 0, items, NULL, BLOCK_N_ITEMS, &first_key), 0);
	run_file_close(run);
	guarded_free(items, BLOCK_N_ITEMS * sizeof *items);
}

TEST_WITH(stored_bytes_are_counted, start_delta, finish)
{
	struct run_file *run = make_finished_run(3);
	const struct compression_totals totals = compression_totals(compression);

	assert_int_equal(totals.items_nbytes, 3 * WINDOW_N_ITEMS * sizeof(uint64_t));
	assert_int_equal(totals.stored_nbytes, run_stored_nbytes(run));
	assert_true(totals.stored_nbytes < totals.items_nbytes);
	run_file_close(run);
}

FIXTURE_TEST(run_without_items_is_fine)
{
	struct run_file *run = open_run();

	assert_int_equal(run_file_write(run, 0, NULL, NULL, 0, NULL), 0);
	run_file_finish(run);
	assert_int_equal(run_file_index(run)->n_blocks, 0);
	assert_int_equal(run_file_index(run)->n_items, 0);
	run_file_close(run);
}

/*
 * Windows of one page: 0 is in memory at [0, 4096), 1 in the file at [4096, 8192), behind 2. Only
 * their offsets are adjacent.
 */
TEST_WITH(neighbours_in_two_files_are_not_read_as_one, start_in_memory, finish)
{
	enum { PAGE_ITEMS = SPILL_ALIGN_NBYTES / sizeof(uint64_t) };
	static const uint64_t order[] = { 0, 2, 1 };
	uint64_t items[PAGE_ITEMS], *back = guarded_alloc(3 * sizeof items);
	const encoded_key_t first_key = 0;
	const struct run_block *blocks;
	struct run_file *run;

	assert_int_equal(run_file_open(spill, NULL, sizeof *items, PAGE_ITEMS, &run), 0);
	for (int i = 0; i < 3; i++) {
		for (uint64_t j = 0; j < PAGE_ITEMS; j++)
			items[j] = order[i] * PAGE_ITEMS + j;
		assert_int_equal(run_file_write(run, order[i], items, NULL, PAGE_ITEMS, &first_key),
				 0);
	}
	run_file_finish(run);
	blocks = run_file_index(run)->blocks;
	assert_true(blocks[0].file != blocks[1].file);
	assert_int_equal(blocks[0].offset + SPILL_ALIGN_NBYTES, blocks[1].offset);
	assert_int_equal(run_file_read(run, 0, 3, READ_ITEMS, back), 0);
	for (uint64_t j = 0; j < 3 * PAGE_ITEMS; j++)
		assert_int_equal(back[j], j);
	run_file_close(run);
	guarded_free(back, 3 * sizeof items);
}

struct writer {
	struct run_file *run;
	uint64_t first, step;
};

static void *write_windows(void *arg)
{
	const struct writer *writer = arg;

	for (uint64_t w = writer->first; w < 300; w += writer->step)
		if (write_window(writer->run, w) < 0)
			abort();
	return NULL;
}

FIXTURE_TEST(several_threads_write_one_run)
{
	struct run_file *run = open_run();
	struct writer writers[3];
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++) {
		writers[i] = (struct writer){ .run = run, .first = i, .step = 3 };
		assert_int_equal(thread_start(write_windows, &writers[i], 0, &threads[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	run_file_finish(run);
	assert_blocks_read(run, 0, 300 * WINDOW_N_BLOCKS);
	run_file_close(run);
}

FIXTURE_TEST(groups_are_larger_than_a_transfer)
{
	/* 5 MiB in blocks of 1 MiB. */
	const uint32_t n_items = run_file_block_n_items(1 << 20, 8);
	const size_t nbytes = 5 * (size_t)n_items * 8;
	const encoded_key_t first_keys[5] = { 0 };
	unsigned char *items = malloc(nbytes), *back = guarded_alloc(nbytes);
	struct run_file *run;

	fill_pattern(items, nbytes, 1);
	assert_int_equal(run_file_open(spill, compression, 8, n_items, &run), 0);
	assert_int_equal(run_file_write(run, 0, items, NULL, 5 * (uint64_t)n_items, first_keys), 0);
	run_file_finish(run);
	assert_int_equal(faults.n_transfers, 2);
	assert_int_equal(run_file_read(run, 0, 5, READ_ITEMS, back), 0);
	assert_int_equal(faults.n_transfers, 4);
	assert_memory_equal(back, items, nbytes);
	run_file_close(run);
	guarded_free(back, nbytes);
	free(items);
}

/* A failed write must not be ignored. */
FIXTURE_TEST(failing_group_ends_the_window)
{
	enum { N_ITEMS = 1 << 20, N_BLOCKS = (N_ITEMS + BLOCK_N_ITEMS - 1) / BLOCK_N_ITEMS };
	uint64_t *items = calloc(N_ITEMS, sizeof *items);
	encoded_key_t *first_keys = calloc(N_BLOCKS, sizeof *first_keys);
	struct run_file *run = open_run();

	assert_true(items && first_keys);
	faults.transfer_errno = ENOSPC;
	assert_int_equal(run_file_write(run, 0, items, NULL, N_ITEMS, first_keys), -ENOSPC);
	faults.transfer_errno = 0;
	run_file_close(run);
	free(items);
	free(first_keys);
}

FIXTURE_TEST(exchanged_blocks_are_refused)
{
	struct run_file *run = make_finished_run(1);
	const struct run_block *blocks = run_file_index(run)->blocks;
	const size_t nbytes = blocks[0].stored_nbytes < blocks[1].stored_nbytes ?
				      blocks[0].stored_nbytes :
				      blocks[1].stored_nbytes;
	unsigned char a[BLOCK_N_ITEMS * 8];
	uint64_t items[WINDOW_N_ITEMS];

	assert_int_equal(pread(faults.tmpfile_fd, a, nbytes, (off_t)blocks[0].offset), nbytes);
	assert_int_equal(pwrite(faults.tmpfile_fd, a, nbytes, (off_t)blocks[1].offset), nbytes);
	assert_int_equal(run_file_read(run, 0, WINDOW_N_BLOCKS, READ_ITEMS, items), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "block 1 of 4"));
	run_file_close(run);
}

/* A window is one page, which is released with its last block. */
FIXTURE_TEST(discarded_blocks_leave_the_rest)
{
	struct run_file *run = make_finished_run(2);

	assert_int_equal(spill_used_nbytes(spill), 2 * SPILL_ALIGN_NBYTES);
	run_file_discard(run, 0, 3);
	assert_int_equal(spill_used_nbytes(spill), 2 * SPILL_ALIGN_NBYTES);
	assert_blocks_read(run, 3, 5);
	run_file_discard(run, 3, 3);
	assert_int_equal(spill_used_nbytes(spill), SPILL_ALIGN_NBYTES);
	assert_blocks_read(run, 6, 2);
	run_file_close(run);
	assert_int_equal(spill_used_nbytes(spill), 0);
}

FIXTURE_TEST(large_blocks_fill_whole_pages)
{
	for (uint32_t item_nbytes = 1; item_nbytes <= 16; item_nbytes++) {
		const uint32_t n = run_file_block_n_items(1 << 20, item_nbytes);

		assert_int_equal((uint64_t)n * item_nbytes % SPILL_ALIGN_NBYTES, 0);
		assert_true((uint64_t)n * item_nbytes > (1 << 20) - 16 * SPILL_ALIGN_NBYTES);
		assert_true((uint64_t)n * item_nbytes <= 1 << 20);
	}
	assert_int_equal(run_file_block_n_items(100, 7), 14);
	assert_int_equal(run_file_block_n_items(3, 7), 1);
	assert_true((uint64_t)run_file_block_n_items(UINT64_MAX, 16) * 16 < UINT32_MAX);
}

TEST_AGAIN(windows_come_back_in_order, start_in_memory, finish)
TEST_AGAIN(several_threads_write_one_run, start_in_memory, finish)
TEST_AGAIN(windows_come_back_in_order, start_delta, finish)
TEST_AGAIN(windows_come_back_in_order, start_zstd, finish)
TEST_AGAIN(run_without_items_is_fine, start_delta, finish)
TEST_AGAIN(run_without_items_is_fine, start_zstd, finish)
TEST_AGAIN(several_threads_write_one_run, start_delta, finish)
TEST_AGAIN(several_threads_write_one_run, start_zstd, finish)
TEST_AGAIN(exchanged_blocks_are_refused, start_delta, finish)
TEST_AGAIN(exchanged_blocks_are_refused, start_zstd, finish)
TEST_AGAIN(discarded_blocks_leave_the_rest, start_delta, finish)
TEST_AGAIN(discarded_blocks_leave_the_rest, start_zstd, finish)
TEST_AGAIN(mixed_blocks_come_back, start_zstd, finish)
TEST_AGAIN(stored_bytes_are_counted, start_zstd, finish)
TEST_AGAIN(several_threads_write_one_run, start_auto, finish)
