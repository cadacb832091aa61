/*
 * test_checkpoint - state, fingerprint and directory of a checkpoint
 */
#include "src/checkpoint/checkpoint_state.h"

#include "src/checkpoint/fingerprint.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

static struct checkpoint_state saved;

static int visit(enum checkpoint_record type, const void *payload, size_t nbytes)
{
	return checkpoint_state_visit(&saved, &(struct manifest_record){ type, payload, nbytes });
}

static int visit_header(void)
{
	return visit(RECORD_HEADER, "words", 6);
}

/* Record a run of one block. */
static int visit_saved_run(const struct saved_run *run, const struct run_block *block)
{
	const size_t nbytes = sizeof *run + sizeof *block;
	struct saved_run *payload = malloc(nbytes);
	int r;

	assert_non_null(payload);
	*payload = *run;
	payload->blocks[0] = *block;
	r = visit(RECORD_RUN, payload, nbytes);
	free(payload);
	return r;
}

/* Record a run of one block of items of 8 bytes. */
static int visit_run(size_t first, size_t n_replaced, uint64_t n_records,
		     const struct run_block *block)
{
	const struct saved_run run = { .first = first,
				       .n_replaced = n_replaced,
				       .origin.totals.read.n_records = n_records,
				       .n_items = block->n_items,
				       .item_nbytes = 8,
				       .n_blocks = 1 };

	return visit_saved_run(&run, block);
}

static int visit_good_run(size_t first, size_t n_replaced, uint64_t n_records)
{
	const struct run_block block = { .n_items = 10, .stored_nbytes = 80 };

	return visit_run(first, n_replaced, n_records, &block);
}

/* The windows have room for these blocks, whatever -S is now. */
TEST(stored_blocks_fit_in_the_plan)
{
	static const uint32_t lengths[] = { 7, 50, 9, 20 };
	struct run_block blocks[4] = { { 0 } };
	struct checkpoint_run runs[2] = { { .index = { blocks, .n_blocks = 1 } },
					  { .index = { blocks + 1, .n_blocks = 3 } } };
	const struct checkpoint_state runs_state = { .runs = runs, .n_runs = 2 };

	for (int i = 0; i < 4; i++)
		blocks[i].n_items = lengths[i];
	assert_int_equal(checkpoint_state_max_block_items(&runs_state), 50);
}

static int visit_done(void)
{
	const struct saved_done done = { .inode = 1 };

	return visit(RECORD_DONE, &done, sizeof done);
}

static int start(void **state)
{
	int r = fixture_start(state);

	return r < 0 ? r : visit_header();
}

static int finish(void **state)
{
	checkpoint_state_free(&saved);
	return fixture_finish(state);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(run_replaces_its_inputs)
{
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(visit_good_run(i, 0, i), 0);
	assert_int_equal(visit_good_run(1, 3, 42), 0);
	assert_int_equal(saved.n_runs, 3);
	assert_int_equal(saved.runs[0].origin.totals.read.n_records, 0);
	assert_int_equal(saved.runs[1].origin.totals.read.n_records, 42);
	assert_int_equal(saved.runs[2].origin.totals.read.n_records, 4);
}

FIXTURE_TEST(replacing_missing_runs_is_refused)
{
	assert_int_equal(visit_good_run(0, 0, 1), 0);
	assert_int_equal(visit_good_run(0, 2, 1), -EBADMSG);
	assert_int_equal(visit_good_run(2, 0, 1), -EBADMSG);
	assert_int_equal(saved.n_runs, 1);
}

FIXTURE_TEST(invalid_blocks_are_refused)
{
	const struct run_block blocks[] = {
		{ .n_items = 10, .stored_nbytes = 81 },
		{ .n_items = 10, .stored_nbytes = 79 },
		{ .n_items = 0, .stored_nbytes = 0 },
		{ .n_items = 10, .stored_nbytes = 80, .file = 1 },
		{ .n_items = 10, .stored_nbytes = 80, .codec = 200 },
		{ .n_items = 10, .stored_nbytes = 80, .first_item = 1 },
		{ .n_items = 10, .stored_nbytes = 80, .offset = UINT64_MAX - 10 },
	};

	for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
		assert_int_equal(visit_run(0, 0, 10, &blocks[i]), -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

FIXTURE_TEST(runs_of_impossible_items_are_refused)
{
	const uint32_t nbytes = 2 * LAYOUT_MAX_RECORD_NBYTES + 1;
	const struct run_block block = { .n_items = 1, .stored_nbytes = nbytes };
	const struct saved_run run = { .n_items = 1, .item_nbytes = nbytes, .n_blocks = 1 };

	assert_int_equal(visit_saved_run(&run, &block), -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

FIXTURE_TEST(only_the_first_record_is_the_header)
{
	assert_int_equal(visit_header(), -EBADMSG);
	checkpoint_state_free(&saved);
	assert_int_equal(visit_good_run(0, 0, 1), -EBADMSG);
}

FIXTURE_TEST(short_or_unknown_records_are_refused)
{
	assert_int_equal(visit(RECORD_DONE, "short", 5), -EBADMSG);
	assert_false(saved.is_done);
	assert_int_equal(visit(RECORD_RUN, "", 0), -EBADMSG);
	assert_int_equal(visit((enum checkpoint_record)99, "?", 1), -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

FIXTURE_TEST(unpublished_output_is_not_done)
{
	assert_int_equal(visit_done(), 0);
	assert_true(saved.is_done);
	assert_int_equal(visit_good_run(0, 0, 1), 0);
	assert_false(saved.is_done);
	assert_int_equal(saved.n_runs, 1);
}

static struct fingerprint fingerprint_of(const char *text, size_t nbytes)
{
	return (struct fingerprint){ (char *)text, nbytes };
}

#define DESCRIPTION(unique, state)                                                                 \
	fingerprint_of("-u\0" unique "\0state of input v\0" state,                                 \
		       sizeof("-u\0" unique "\0state of input v\0" state))

TEST(input_replaced_by_the_output_is_accepted)
{
	const struct fingerprint old = DESCRIPTION("0", "device 1, inode 2, old");
	const struct fingerprint output = DESCRIPTION("0", "device 1, inode 3, new");
	const struct fingerprint third = DESCRIPTION("0", "device 1, inode 33, new");
	struct fingerprint_difference difference;
	char accepted[80];

	fingerprint_format_file((struct file_id){ .device = 1, .inode = 3 }, accepted);
	assert_false(fingerprint_differs(&old, &output, accepted, &difference));
	assert_true(fingerprint_differs(&old, &third, accepted, &difference));
}

/* --- Files --- */

TEST_WITH(moved_checkpoint_is_detected, fixture_start, fixture_finish)
{
	struct checkpoint_dir moved;
	char runs[4096];

	assert_int_equal(mkdir(fixture_path("dir"), 0700), 0);
	checkpoint_dir_init(&moved, &faulty_calls, fixture_path("dir"));
	assert_int_equal(checkpoint_dir_open(&moved), 0);
	assert_true(checkpoint_dir_is_intact(&moved));
	assert_int_equal(rename(fixture_path("dir"), fixture_path("elsewhere")), 0);
	assert_false(checkpoint_dir_is_intact(&moved));
	assert_int_equal(mkdir(fixture_path("dir"), 0700), 0);
	assert_false(checkpoint_dir_is_intact(&moved));
	assert_int_equal(rename(fixture_path("elsewhere"), fixture_path("dir")), 0);
	assert_true(checkpoint_dir_is_intact(&moved));
	snprintf(runs, sizeof runs, "%s/gsort-runs", fixture_path("dir"));
	assert_int_equal(unlink(runs), 0);
	assert_false(checkpoint_dir_is_intact(&moved));
	checkpoint_dir_remove(&moved);
	checkpoint_dir_close(&moved);
	assert_int_equal(rmdir(fixture_path("dir")), 0);
}

/* --- Whose files these are --- */

/* Open a directory in which a file of the checkpoint has this text. */
static int open_with(enum checkpoint_file i, const char *text, struct checkpoint_dir *ret_files)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/%s", fixture_path("dir"), checkpoint_file_names[i]);
	if (mkdir(fixture_path("dir"), 0700) < 0)
		abort();
	write_file(path, text, strlen(text));
	checkpoint_dir_init(ret_files, &faulty_calls, fixture_path("dir"));
	return checkpoint_dir_open(ret_files);
}

/* The directory contains only this file; remove it. */
static void remove_only(enum checkpoint_file i, const char *text)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", fixture_path("dir"), checkpoint_file_names[i]);
	assert_true(file_contains(path, text, strlen(text)));
	unlink(path);
	assert_int_equal(rmdir(fixture_path("dir")), 0);
}

TEST_WITH(file_with_partial_magic_is_adopted, fixture_start, fixture_finish)
{
	static const char *const texts[] = { "", "gsort " };
	struct checkpoint_dir opened;

	for (int i = 0; i < CHECKPOINT_N_FILES; i++)
		for (int j = 0; j < 2; j++) {
			assert_int_equal(open_with(i, texts[j], &opened), 0);
			checkpoint_dir_remove(&opened);
			checkpoint_dir_close(&opened);
			assert_int_equal(rmdir(fixture_path("dir")), 0);
		}
}

/* The owner could replace the files. */
TEST_WITH(directory_of_another_user_is_refused, fixture_start, fixture_finish)
{
	struct checkpoint_dir opened;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(fixture_path("dir"), 0777), 0);
	assert_int_equal(chown(fixture_path("dir"), 1234, 1234), 0);
	checkpoint_dir_init(&opened, &faulty_calls, fixture_path("dir"));
	assert_int_equal(checkpoint_dir_open(&opened), -EPERM);
	checkpoint_dir_close(&opened);
	assert_int_equal(rmdir(fixture_path("dir")), 0);
}

TEST_WITH(directory_of_ranks_in_a_missing_directory_is_named, fixture_start, fixture_finish)
{
	struct checkpoint_dir opened;

	assert_int_equal(checkpoint_dir_init_rank(&opened, &faulty_calls,
						  fixture_path("missing/dir"), 1),
			 0);
	assert_int_equal(checkpoint_dir_open(&opened), -ENOENT);
	assert_non_null(strstr(captured_messages_error(), "/missing/dir: cannot create directory"));
	checkpoint_dir_close(&opened);
}

TEST_WITH(file_of_the_same_name_is_not_removed, fixture_start, fixture_finish)
{
	struct checkpoint_dir opened;
	char path[4096];

	assert_int_equal(open_with(CHECKPOINT_RUNS, "", &opened), 0);
	snprintf(path, sizeof path, "%s/gsort-runs", fixture_path("dir"));
	assert_int_equal(unlink(path), 0);
	write_file(path, "theirs", 6);
	checkpoint_dir_remove(&opened);
	checkpoint_dir_close(&opened);
	remove_only(CHECKPOINT_RUNS, "theirs");
}

TEST_WITH(exceeded_limit_allows_no_writes, fixture_start, fixture_finish)
{
	struct spill_extent extent;
	struct spill *limited;
	struct file file;
	uint64_t nbytes;
	char page[4096] = { 0 };
	const char *directory = fixture_directory;

	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path("kept"), O_RDWR | O_CREAT,
				   0600, &file),
			 0);
	assert_int_equal(spill_open_persistent(&file, &directory, 40960, 40960, 8192, &limited), 0);
	assert_int_equal(spill_free_nbytes(limited, &nbytes), 0);
	assert_int_equal(nbytes, 0);
	assert_int_equal(spill_write(limited, page, sizeof page, &extent), -ENOSPC);
	spill_close(limited);
}
