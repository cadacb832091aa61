/*
 * test_run_file_packed.c - packed blocks of a device are stored and read unchanged
 */
#include "src/record/delta_pack.h"
#include "tests/support/run_file_fixture.h"
#include "tests/support/unit_test.h"

/* Write a window like write_window(), packed as by a device. */
static int write_packed_window(struct run_file *run, uint64_t w)
{
	uint64_t items[WINDOW_N_ITEMS];
	unsigned char packed[sizeof items];
	uint32_t nbytes[WINDOW_N_BLOCKS];
	encoded_key_t first_keys[WINDOW_N_BLOCKS];
	size_t used = 0;

	for (uint64_t i = 0; i < WINDOW_N_ITEMS; i++)
		items[i] = w * 1000 + i;
	for (uint64_t i = 0; i < WINDOW_N_BLOCKS; i++) {
		const size_t n = i + 1 < WINDOW_N_BLOCKS ? BLOCK_N_ITEMS :
							   WINDOW_N_ITEMS % BLOCK_N_ITEMS;

		first_keys[i] = items[i * BLOCK_N_ITEMS];
		nbytes[i] = (uint32_t)delta_encode(&items[i * BLOCK_N_ITEMS], n, sizeof *items,
						   packed + used, sizeof packed - used);
		if (i == 1) { /* incompressible */
			nbytes[i] = BLOCK_N_ITEMS * sizeof *items;
			memcpy(packed + used, &items[i * BLOCK_N_ITEMS], nbytes[i]);
		}
		used += nbytes[i];
	}
	return run_file_write(run, w, packed, nbytes, WINDOW_N_ITEMS, first_keys);
}

static struct run_file *finished_packed_run(uint64_t n_windows)
{
	struct run_file *run = open_run();

	for (uint64_t w = n_windows; w-- > 0;)
		assert_int_equal(write_packed_window(run, w), 0);
	run_file_finish(run);
	return run;
}

TEST_WITH(what_a_device_has_packed_comes_back, start_delta, finish)
{
	struct run_file *run = finished_packed_run(2);
	const struct compression_totals totals = compression_totals(compression);

	for (uint64_t i = 0; i < 2 * WINDOW_N_BLOCKS; i++)
		assert_int_equal(run_file_index(run)->blocks[i].codec,
				 i % WINDOW_N_BLOCKS == 1 ? CODEC_RAW : CODEC_DELTA);
	assert_blocks_read(run, 0, 2 * WINDOW_N_BLOCKS);
	assert_int_equal(totals.items_nbytes, 2 * WINDOW_N_ITEMS * sizeof(uint64_t));
	assert_int_equal(totals.stored_nbytes, run_stored_nbytes(run));
	assert_string_equal(totals.codec, "delta");
	run_file_close(run);
	assert_int_equal(spill_used_nbytes(spill), 0);
}

/* Read packed blocks and unpack them. */
static void assert_reads_packed(struct run_file *run, uint64_t first, uint64_t n)
{
	size_t nbytes = 0;
	unsigned char *packed, *block;

	for (uint64_t i = first; i < first + n; i++)
		nbytes += run_file_block_nbytes(run, i, READ_PACKED);
	block = packed = guarded_alloc(nbytes);
	assert_int_equal(run_file_read(run, first, n, READ_PACKED, packed), 0);
	for (uint64_t i = first; i < first + n; i++) {
		const uint32_t n_items = run_file_index(run)->blocks[i].n_items;
		uint64_t items[BLOCK_N_ITEMS];

		if (run_file_block_nbytes(run, i, READ_PACKED) == n_items * sizeof *items)
			memcpy(items, block, n_items * sizeof *items);
		else
			assert_int_equal(delta_decode(block,
						      run_file_block_nbytes(run, i, READ_PACKED),
						      items, n_items, sizeof *items),
					 0);
		for (uint64_t j = 0; j < n_items; j++)
			assert_int_equal(items[j], i / WINDOW_N_BLOCKS * 1000 +
							   i % WINDOW_N_BLOCKS * BLOCK_N_ITEMS + j);
		block += run_file_block_nbytes(run, i, READ_PACKED);
	}
	guarded_free(packed, nbytes);
}

TEST_WITH(blocks_in_delta_can_be_read_packed, start_delta, finish)
{
	struct run_file *packed = finished_packed_run(3), *run = make_finished_run(3);

	for (uint64_t first = 0; first < 3 * WINDOW_N_BLOCKS; first++)
		for (uint64_t n = 1; first + n <= 3 * WINDOW_N_BLOCKS; n++) {
			assert_reads_packed(packed, first, n);
			assert_reads_packed(run, first, n);
		}
	run_file_close(packed);
	run_file_close(run);
}

TEST_WITH(damaged_packed_block_is_refused, start_delta, finish)
{
	struct run_file *run = finished_packed_run(2);
	const struct run_block *block = &run_file_index(run)->blocks[6];
	const off_t at = (off_t)(block->offset + block->stored_nbytes - 1);
	unsigned char packed[2 * WINDOW_N_ITEMS * sizeof(uint64_t)], byte = 1;

	assert_int_equal(pwrite(faults.tmpfile_fd, &byte, 1, at), 1);
	assert_int_equal(run_file_read(run, 0, 2 * WINDOW_N_BLOCKS, READ_PACKED, packed), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "block 6 of 8"));
	captured_messages_reset(true);
	assert_int_equal(run_file_fail_packed(run, 3), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "block 3 of 8"));
	run_file_close(run);
}

TEST_AGAIN(blocks_in_delta_can_be_read_packed, start_zstd, finish)
TEST_AGAIN(damaged_packed_block_is_refused, start_zstd, finish)
