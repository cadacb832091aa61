/*
 * test_checkpoint - the parts of a checkpoint: its state, what is written, and who waits for what
 */
#include "src/checkpoint/manifest_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "src/checkpoint/fingerprint.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/checkpoint_internal.h"
#include "src/checkpoint/sync_thread.h"
#include "src/checkpoint/written_extents.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

static struct checkpoint_state saved;

static int visit(enum checkpoint_record type, const struct payload_part *parts, size_t n)
{
	size_t nbytes;
	void *payload = payload_join(parts, n, &nbytes);
	int r;

	assert_non_null(payload);
	r = checkpoint_state_visit(&saved, &(struct manifest_record){ type, payload, nbytes });
	free(payload);
	return r;
}

static int visit_header(void)
{
	struct saved_header header = { .output_name = ".gsort-0123456789abcdef" };
	const struct payload_part parts[] = { { &header, sizeof header }, { "words", 6 } };

	return visit(RECORD_HEADER, parts, 2);
}

/* A run of one block of so many items of 8 bytes. */
static int visit_run(size_t first, size_t n_replaced, uint64_t n_records,
		     const struct run_block *block)
{
	const struct saved_run run = { .first = first,
				       .n_replaced = n_replaced,
				       .origin.read.n_records = n_records,
				       .n_items = block->n_items,
				       .item_nbytes = 8,
				       .n_blocks = 1 };
	const struct payload_part parts[] = { { &run, sizeof run }, { block, sizeof *block } };

	return visit(RECORD_RUN, parts, 2);
}

static int visit_good_run(size_t first, size_t n_replaced, uint64_t n_records)
{
	const struct run_block block = { .n_items = 10, .stored_nbytes = 80 };

	return visit_run(first, n_replaced, n_records, &block);
}

/* Memory for windows is divided by it, whatever -S is now. */
static void blocks_of_stored_runs_have_room_in_the_plan(void **state)
{
	static const struct layout layout = { .resident_nbytes = 12 };
	static const uint32_t lengths[] = { 7, 50, 9, 20 };
	struct run_block blocks[4] = { { 0 } };
	struct checkpoint_run runs[2] = { { .blocks = blocks, .run.n_blocks = 1 },
					  { .blocks = blocks + 1, .run.n_blocks = 3 } };
	const struct checkpoint checkpoint = { .layout = &layout,
					       .state = { .runs = runs, .n_runs = 2 } };

	(void)state;
	for (int i = 0; i < 4; i++)
		blocks[i].n_items = lengths[i];
	assert_int_equal(checkpoint_block_nbytes(&checkpoint), 50 * 12);
}

/* Of keys of 16 bytes; more than 4 ranges are not. */
static int visit_ranges(const uint64_t *begins, uint64_t n)
{
	static const char keys[4 * 16] = "";
	const struct saved_ranges ranges = { n, 16 };
	const struct payload_part parts[] = { { &ranges, sizeof ranges },
					      { begins, n * sizeof *begins },
					      { keys, n * 16 } };

	return visit(RECORD_RANGES, parts, 3);
}

static int visit_point_of(uint64_t range, uint64_t offset, uint64_t nbytes)
{
	const struct output_part part = { .offset = offset, .nbytes = nbytes };
	const struct saved_point point = { .result.n_items = (offset + nbytes) / 8,
					   .range = range,
					   .key_nbytes = 16,
					   .edge_nbytes = 16,
					   .n_parts = 1 };
	const struct payload_part parts[] = { { &point, sizeof point },
					      { &part, sizeof part },
					      { "0123456789abcdef0123456789abcdef"
						"0123456789abcdef",
						48 } };

	return visit(RECORD_POINT, parts, 3);
}

/* Of a merge in one range. */
static int visit_point(uint64_t offset, uint64_t nbytes)
{
	const uint64_t begin = 0;

	if (saved.n_ranges == 0)
		assert_int_equal(visit_ranges(&begin, 1), 0);
	return visit_point_of(0, offset, nbytes);
}

static int visit_done(uint64_t offset, uint64_t nbytes)
{
	const struct output_part part = { .offset = offset, .nbytes = nbytes };
	const struct saved_done done = { .n_parts = 1 };
	const struct payload_part parts[] = { { &done, sizeof done }, { &part, sizeof part } };

	return visit(RECORD_DONE, parts, 2);
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

static void run_takes_the_place_of_those_it_replaces(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(visit_good_run(i, 0, i), 0);
	assert_int_equal(visit_good_run(1, 3, 42), 0);
	assert_int_equal(saved.n_runs, 3);
	assert_int_equal(saved.runs[0].run.origin.read.n_records, 0);
	assert_int_equal(saved.runs[1].run.origin.read.n_records, 42);
	assert_int_equal(saved.runs[2].run.origin.read.n_records, 4);
}

static void run_that_replaces_what_is_not_there_is_refused(void **state)
{
	(void)state;
	assert_int_equal(visit_good_run(0, 0, 1), 0);
	assert_int_equal(visit_good_run(0, 2, 1), -EBADMSG);
	assert_int_equal(visit_good_run(2, 0, 1), -EBADMSG);
	assert_int_equal(saved.n_runs, 1);
}

static void blocks_that_make_no_sense_are_refused(void **state)
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

	(void)state;
	for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
		assert_int_equal(visit_run(0, 0, 10, &blocks[i]), -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

static void runs_of_impossible_items_are_refused(void **state)
{
	const uint32_t nbytes = 2 * LAYOUT_MOST_RECORD_NBYTES + 1;
	const struct run_block block = { .n_items = 1, .stored_nbytes = nbytes };
	const struct saved_run run = { .n_items = 1, .item_nbytes = nbytes, .n_blocks = 1 };
	const struct payload_part parts[] = { { &run, sizeof run }, { &block, sizeof block } };

	(void)state;
	assert_int_equal(visit(RECORD_RUN, parts, 2), -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

static void first_record_is_the_header_and_no_other_is(void **state)
{
	(void)state;
	assert_int_equal(visit_header(), -EBADMSG);
	checkpoint_state_free(&saved);
	assert_int_equal(visit_good_run(0, 0, 1), -EBADMSG);
}

static void parts_of_the_output_have_no_gap(void **state)
{
	(void)state;
	assert_int_equal(visit_point(0, 800), 0);
	assert_int_equal(visit_point(800, 80), 0);
	assert_int_equal(saved.ranges[0].point.result.n_items, 110);
	assert_int_equal(visit_point(888, 80), -EBADMSG);
}

static void each_range_has_points_and_parts_of_its_own(void **state)
{
	static const uint64_t begins[] = { 0, 800, 800, 1600 };

	(void)state;
	assert_int_equal(visit_point_of(0, 0, 80), -EBADMSG);
	assert_int_equal(visit_ranges(begins, 4), 0);
	assert_false(checkpoint_state_has_points(&saved));
	assert_int_equal(visit_point_of(3, 1600, 80), 0);
	assert_int_equal(visit_point_of(0, 0, 800), 0);
	assert_int_equal(visit_point_of(2, 800, 160), 0);
	assert_true(checkpoint_state_has_points(&saved));
	assert_int_equal(checkpoint_state_nbytes(&saved), 80 + 800 + 160);
	assert_int_equal(checkpoint_state_end(&saved), 1680);
	assert_int_equal(visit_point_of(4, 1680, 80), -EBADMSG);
}

static void part_that_reaches_into_the_next_range_is_refused(void **state)
{
	static const uint64_t begins[] = { 0, 800, 1600 };

	(void)state;
	assert_int_equal(visit_ranges(begins, 3), 0);
	assert_int_equal(visit_point_of(1, 800, 808), -EBADMSG);
	assert_int_equal(visit_point_of(0, 800, 8), -EBADMSG);
}

static void ranges_are_others_only_while_nothing_is_written(void **state)
{
	static const uint64_t begins[] = { 0, 800, 1600 }, others[] = { 0, 1600 };

	(void)state;
	assert_int_equal(visit_ranges(begins, 3), 0);
	assert_int_equal(visit_ranges(others, 2), 0);
	assert_int_equal(saved.n_ranges, 2);
	assert_int_equal(visit_point_of(1, 1600, 8), 0);
	assert_int_equal(visit_ranges(begins, 3), -EBADMSG);
	assert_int_equal(saved.n_ranges, 2);
}

static void ranges_that_make_no_sense_are_refused(void **state)
{
	static const uint64_t behind[] = { 8, 800 }, down[] = { 0, 800, 792 };

	(void)state;
	assert_int_equal(visit_ranges(behind, 2), -EBADMSG);
	assert_int_equal(visit_ranges(down, 3), -EBADMSG);
	assert_int_equal(visit_ranges(down, 0), -EBADMSG);
	assert_int_equal(visit(RECORD_RANGES,
			       &(struct payload_part){ &(struct saved_ranges){ 1, UINT64_MAX },
						       sizeof(struct saved_ranges) },
			       1),
			 -EBADMSG);
}

static void records_too_short_or_of_no_type_are_refused(void **state)
{
	const struct saved_point point = { .key_nbytes = 16, .edge_nbytes = 16 };
	const struct payload_part parts[] = { { &point, sizeof point },
					      { "0123456789abcdef0123456789abcde", 31 } };

	(void)state;
	assert_int_equal(visit(RECORD_POINT, parts, 2), -EBADMSG);
	assert_false(checkpoint_state_has_points(&saved));
	assert_int_equal(visit(RECORD_DONE, &(struct payload_part){ "short", 5 }, 1), -EBADMSG);
	assert_false(saved.is_done);
	assert_int_equal(visit(RECORD_RUN, &(struct payload_part){ "", 0 }, 1), -EBADMSG);
	assert_int_equal(visit((enum checkpoint_record)99, &(struct payload_part){ "?", 1 }, 1),
			 -EBADMSG);
	assert_int_equal(saved.n_runs, 0);
}

static void output_without_its_name_is_not_done(void **state)
{
	(void)state;
	assert_int_equal(visit_point(0, 800), 0);
	assert_int_equal(visit_done(800, 80), 0);
	assert_true(saved.is_done);
	assert_int_equal(saved.ranges[0].n_parts, 2);
	assert_int_equal(visit_point(800, 160), 0);
	assert_false(saved.is_done);
	assert_int_equal(checkpoint_state_nbytes(&saved), 960);
}

static void what_is_done_is_divided_among_the_ranges(void **state)
{
	static const uint64_t begins[] = { 0, 800, 800, 1600 };
	const struct output_part rest[] = {
		{ 80, 720, 0 }, { 800, 400, 0 }, { 1200, 400, 0 }, { 1600, 8, 0 }
	};
	const struct saved_done done = { .n_parts = 4 };
	const struct payload_part parts[] = { { &done, sizeof done }, { rest, sizeof rest } };

	(void)state;
	assert_int_equal(visit_ranges(begins, 4), 0);
	assert_int_equal(visit_point_of(0, 0, 80), 0);
	assert_int_equal(visit(RECORD_DONE, parts, 2), 0);
	assert_int_equal(saved.ranges[0].n_parts, 2);
	assert_int_equal(saved.ranges[1].n_parts, 0);
	assert_int_equal(saved.ranges[2].n_parts, 2);
	assert_int_equal(saved.ranges[3].n_parts, 1);
	assert_int_equal(checkpoint_state_end(&saved), 1608);
	checkpoint_state_forget_done(&saved);
	assert_int_equal(checkpoint_state_nbytes(&saved), 80);
}

static void output_is_written_up_to_the_first_gap(void **state)
{
	static const size_t order[] = { 1, 0, 3, 4, 2 };
	static const uint64_t ends[] = { 0, 200, 200, 200, 500 };
	struct written_parts written = { 0 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		const struct output_part part = { .offset = 100 * order[i], .nbytes = 100 };

		assert_int_equal(written_parts_add(&written, &part, 1), 0);
		assert_int_equal(written_parts_end(&written), ends[i]);
	}
	assert_int_equal(written_parts_before(&written, 300), 3);
	written_parts_free(&written);
}

static void range_is_written_from_where_it_begins(void **state)
{
	struct written_parts written = { .begin = 200 };
	const struct output_part parts[] = { { 300, 100, 0 }, { 200, 100, 0 } };

	(void)state;
	assert_int_equal(written_parts_end(&written), 200);
	assert_int_equal(written_parts_add(&written, &parts[0], 1), 0);
	assert_int_equal(written_parts_end(&written), 200);
	assert_int_equal(written_parts_add(&written, &parts[1], 1), 0);
	assert_int_equal(written_parts_end(&written), 400);
	written_parts_free(&written);
}

static int read_memory(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	memcpy(buffer, (char *)context + offset, nbytes);
	return 0;
}

static void changed_byte_of_the_output_is_found(void **state)
{
	enum { NBYTES = WRITTEN_PART_NBYTES * 2 + 5 };
	char *data = malloc(NBYTES);
	struct output_part parts[3];
	size_t bad;

	(void)state;
	assert_non_null(data);
	fill_pattern(data, NBYTES, 1);
	assert_int_equal(written_parts_count(NBYTES), 3);
	written_parts_describe(0, data, NBYTES, parts);
	assert_int_equal(written_parts_check(parts, 3, read_memory, data, &bad), 0);
	data[NBYTES - 1] ^= 1;
	assert_int_equal(written_parts_check(parts, 3, read_memory, data, &bad), -EBADMSG);
	assert_int_equal(bad, 2);
	free(data);
}

static struct description description_of(const char *text, size_t nbytes)
{
	return (struct description){ (char *)text, nbytes };
}

#define DESCRIPTION(unique, state)                                                                 \
	description_of("-u\0" unique "\0state of input v\0" state,                                 \
		       sizeof("-u\0" unique "\0state of input v\0" state))

static void difference_of_the_sort_is_named(void **state)
{
	const struct description old = DESCRIPTION("0", "device 1, inode 2, old");
	const struct description changed = DESCRIPTION("0", "device 1, inode 2, new");
	const struct description other = DESCRIPTION("1", "device 1, inode 2, old");
	struct difference difference;

	(void)state;
	assert_false(description_differs(&old, &old, ACCEPT_NONE, &difference));
	assert_false(description_differs(&old, &changed, ACCEPT_ALL, &difference));
	assert_true(description_differs(&old, &changed, ACCEPT_NONE, &difference));
	assert_string_equal(difference.name, "state of input v");
	assert_string_equal(difference.was, "device 1, inode 2, old");
	assert_string_equal(difference.is, "device 1, inode 2, new");
	assert_true(description_differs(&old, &other, ACCEPT_ALL, &difference));
	assert_string_equal(difference.name, "-u");
}

static void input_that_is_the_output_now_is_accepted(void **state)
{
	const struct description old = DESCRIPTION("0", "device 1, inode 2, old");
	const struct description output = DESCRIPTION("0", "device 1, inode 3, new");
	const struct description third = DESCRIPTION("0", "device 1, inode 33, new");
	struct difference difference;
	char accepted[80];

	(void)state;
	description_format_file((struct file_identity){ .device = 1, .inode = 3 }, accepted);
	assert_false(description_differs(&old, &output, accepted, &difference));
	assert_true(description_differs(&old, &third, accepted, &difference));
}

static bool lacks_memory;

FILE *__real_open_memstream(char **ret_text, size_t *ret_nbytes);
FILE *__wrap_open_memstream(char **ret_text, size_t *ret_nbytes);
FILE *__wrap_open_memstream(char **ret_text, size_t *ret_nbytes)
{
	if (!lacks_memory)
		return __real_open_memstream(ret_text, ret_nbytes);
	errno = ENOMEM;
	return NULL;
}

static bool closing_fails;

int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream)
{
	const int r = __real_fclose(stream);

	if (!closing_fails)
		return r;
	errno = ENOMEM;
	return EOF;
}

/* What is described is compared with what is saved: a part of it would be another sort. */
static void want_of_memory_for_a_description_is_an_error(void **state)
{
	const struct sort_spec spec = { .unique = true, .output_path = "output" };
	struct description description = { 0 };

	(void)state;
	messages_reset(true);
	lacks_memory = true;
	assert_int_equal(description_make(&spec, &description), -ENOMEM);
	lacks_memory = false;
	closing_fails = true;
	assert_int_equal(description_make(&spec, &description), -ENOMEM);
	closing_fails = false;
	assert_int_equal(messages_last_hint(), HINT_ABOUT_CHECKPOINT);
	assert_int_equal(description_make(&spec, &description), 0);
	free(description.text);
}

/* The value of the last entry: that of the input, if there is one. */
static const char *last_text(const struct description *description)
{
	const char *end = description->text + description->nbytes - 1;
	const char *before = memrchr(description->text, 0, (size_t)(end - description->text));

	return before + 1;
}

static void state_of_an_input_is_what_stat_says(void **state)
{
	const char *path = path_of("input");
	const struct sort_spec spec = { .inputs = &path, .n_inputs = 1, .output_path = "output" };
	const struct timespec times[] = { { .tv_sec = 1 }, { .tv_sec = 1234567, .tv_nsec = 89 } };
	struct description description;

	(void)state;
	write_file(path, "12345678", 8);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(description_make(&spec, &description), 0);
	assert_non_null(
		strstr(last_text(&description), ", 8 bytes from 0, modified 1234567.000000089, "));
	free(description.text);
}

/* --- Files and the saver --- */

static struct checkpoint_files files;
static struct spill *spill;

static int start_files(void **state)
{
	int r = fixture_start(state);

	if (r < 0)
		return r;
	checkpoint_files_init(&files, &faulty_calls, fixture_directory);
	r = checkpoint_files_open(&files);
	if (r == 0)
		r = spill_open_kept(&files.runs, &files.path, CHECKPOINT_RUNS_BEGIN, 0,
				    SPILL_UNLIMITED, &spill);
	files.runs.fd = -1;
	faults.n_syncs = 0;
	return r;
}

static int finish_files(void **state)
{
	spill_close(spill);
	checkpoint_files_close(&files);
	return fixture_finish(state);
}

/* How saves have ended. */
static struct {
	unsigned n_durable, n_lost;
	uint64_t nbytes; /* of the manifest when the last was durable */
} ended;

static void note_end(void *context, bool durable)
{
	(void)context;
	if (!durable)
		ended.n_lost++;
	else
		ended.n_durable++;
	ended.nbytes = files.manifest.end;
}

static struct save *make_save(void)
{
	struct save *save = calloc(1, sizeof *save);

	assert_non_null(save);
	save->type = RECORD_RUN;
	save->needs_runs = true;
	save->payload = strdup("payload");
	save->nbytes = 8;
	save->finish = note_end;
	return save;
}

static void what_is_saved_is_durable_when_it_says_so(void **state)
{
	struct saver *saver;

	(void)state;
	memset(&ended, 0, sizeof ended);
	assert_int_equal(saver_open(&files.manifest, spill, NULL, &saver), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(saver_add(saver, make_save()), 0);
	saver_close(saver, true);
	assert_int_equal(ended.n_durable, 10);
	assert_int_equal(ended.nbytes, files.manifest.begin + 10 * (32 + 16));
	assert_true(faults.n_syncs >= 2); /* of the runs and of the manifest */
}

static void record_is_not_written_when_its_data_is_not_durable(void **state)
{
	struct saver *saver;

	(void)state;
	memset(&ended, 0, sizeof ended);
	faults.fsync_errno = EIO;
	assert_int_equal(saver_open(&files.manifest, spill, NULL, &saver), 0);
	assert_int_equal(saver_add(saver, make_save()), 0);
	saver_close(saver, true);
	assert_int_equal(ended.n_durable, 0);
	assert_int_equal(ended.n_lost, 1);
	assert_int_equal(files.manifest.end, files.manifest.begin);
	assert_non_null(strstr(messages_last(), "stable storage"));
}

static void checkpoint_belongs_to_one_at_a_time(void **state)
{
	struct checkpoint_files others;

	(void)state;
	checkpoint_files_init(&others, &faulty_calls, fixture_directory);
	assert_int_equal(checkpoint_files_open(&others), -EBUSY);
	assert_non_null(strstr(messages_last(), "another gsort is using this checkpoint"));
	checkpoint_files_close(&others);
}

static void checkpoint_that_was_moved_away_is_missed(void **state)
{
	struct checkpoint_files moved;
	char runs[4096];

	(void)state;
	assert_int_equal(mkdir(path_of("dir"), 0700), 0);
	checkpoint_files_init(&moved, &faulty_calls, path_of("dir"));
	assert_int_equal(checkpoint_files_open(&moved), 0);
	assert_true(checkpoint_files_are_there(&moved));
	assert_int_equal(rename(path_of("dir"), path_of("elsewhere")), 0);
	assert_false(checkpoint_files_are_there(&moved));
	assert_int_equal(mkdir(path_of("dir"), 0700), 0);
	assert_false(checkpoint_files_are_there(&moved));
	assert_int_equal(rename(path_of("elsewhere"), path_of("dir")), 0);
	assert_true(checkpoint_files_are_there(&moved));
	snprintf(runs, sizeof runs, "%s/gsort-runs", path_of("dir"));
	assert_int_equal(unlink(runs), 0);
	assert_false(checkpoint_files_are_there(&moved));
	checkpoint_files_remove(&moved);
	checkpoint_files_close(&moved);
	assert_int_equal(rmdir(path_of("dir")), 0);
}

static void link_is_not_followed(void **state)
{
	struct checkpoint_files linked;
	const char *target = path_of("target");

	(void)state;
	write_file(target, "theirs", 6);
	assert_int_equal(mkdir(path_of("dir"), 0700), 0);
	assert_int_equal(symlink(target, path_of("dir/gsort-manifest")), 0);
	checkpoint_files_init(&linked, &faulty_calls, path_of("dir"));
	assert_int_equal(checkpoint_files_open(&linked), -EEXIST);
	checkpoint_files_close(&linked);
	assert_true(file_holds(target, "theirs", 6));
	unlink(path_of("dir/gsort-manifest"));
}

/* --- Whose files these are --- */

/* A directory with this as one of a checkpoint's files, which is to be opened. */
static int open_with(enum checkpoint_file i, const char *text, struct checkpoint_files *ret_files)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/%s", path_of("dir"), checkpoint_file_names[i]);
	if (mkdir(path_of("dir"), 0700) < 0)
		abort();
	write_file(path, text, strlen(text));
	checkpoint_files_init(ret_files, &faulty_calls, path_of("dir"));
	return checkpoint_files_open(ret_files);
}

/* What is in the directory is one file, this one; it goes, too. */
static void remove_only(enum checkpoint_file i, const char *text)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", path_of("dir"), checkpoint_file_names[i]);
	assert_true(file_holds(path, text, strlen(text)));
	unlink(path);
	assert_int_equal(rmdir(path_of("dir")), 0);
}

static void file_without_the_mark_is_left_alone(void **state)
{
	static const char *const texts[] = { "x", "gsort rums\n",
					     "theirs, and longer than a mark" };
	struct checkpoint_files opened;

	(void)state;
	for (int i = 0; i < CHECKPOINT_N_FILES; i++)
		for (int j = 0; j < 3; j++) {
			messages_reset(true);
			assert_int_equal(open_with(i, texts[j], &opened), -EEXIST);
			assert_non_null(strstr(messages_last(), checkpoint_file_names[i]));
			assert_null(strstr(messages_last(), "remove"));
			checkpoint_files_abandon(&opened);
			checkpoint_files_close(&opened);
			remove_only(i, texts[j]);
		}
}

static void file_that_was_killed_before_its_mark_is_taken(void **state)
{
	static const char *const texts[] = { "", "gsort " };
	struct checkpoint_files opened;

	(void)state;
	for (int i = 0; i < CHECKPOINT_N_FILES; i++)
		for (int j = 0; j < 2; j++) {
			assert_int_equal(open_with(i, texts[j], &opened), 0);
			checkpoint_files_remove(&opened);
			checkpoint_files_close(&opened);
			assert_int_equal(rmdir(path_of("dir")), 0);
		}
}

static void file_that_has_taken_the_name_is_not_removed(void **state)
{
	struct checkpoint_files opened;
	char path[4096];

	(void)state;
	assert_int_equal(open_with(CHECKPOINT_RUNS, "", &opened), 0);
	snprintf(path, sizeof path, "%s/gsort-runs", path_of("dir"));
	assert_int_equal(unlink(path), 0);
	write_file(path, "theirs", 6);
	checkpoint_files_remove(&opened);
	checkpoint_files_close(&opened);
	remove_only(CHECKPOINT_RUNS, "theirs");
}

static void limit_that_is_passed_already_allows_nothing(void **state)
{
	struct spill_extent extent;
	struct spill *limited;
	struct file file;
	uint64_t nbytes;
	char page[4096] = { 0 };
	const char *directory = fixture_directory;

	(void)state;
	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, path_of("kept"), O_RDWR | O_CREAT, 0600,
				   &file),
			 0);
	assert_int_equal(spill_open_kept(&file, &directory, 40960, 40960, 8192, &limited), 0);
	assert_int_equal(spill_free_nbytes(limited, &nbytes), 0);
	assert_int_equal(nbytes, 0);
	assert_int_equal(spill_write(limited, page, sizeof page, &extent), -ENOSPC);
	assert_int_equal(messages_last_hint(), HINT_HIGHER_LIMIT);
	spill_close(limited);
}

/* --- Files that outlive the process --- */

static struct output *open_kept(uint64_t nbytes)
{
	const struct output_kept kept = { .name = ".gsort-kept", .nbytes = nbytes, .end = nbytes };
	struct output *output;

	assert_int_equal(output_open_kept(&faulty_calls, path_of("output"), OUTPUT_SIZE_UNKNOWN,
					  &kept, &output),
			 0);
	return output;
}

static void kept_output_is_taken_up(void **state)
{
	struct output *output = open_kept(0);

	(void)state;
	assert_int_equal(output_write_at(output, 0, "finished", 8), 0);
	assert_int_equal(output_write_at(output, 8, "lost", 4), 0);
	hidden_names_remove(&process_lent()->names);
	output_abort(output);
	assert_int_equal(access(path_of("output"), F_OK), -1);

	output = open_kept(8);
	assert_true(file_holds(path_of(".gsort-kept"), "finished", 8));
	assert_int_equal(output_write_at(output, 8, " now", 4), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_holds(path_of("output"), "finished now", 12));
	assert_int_equal(count_names(), 1);
}

static void kept_output_is_removed_when_it_is_of_no_use(void **state)
{
	struct output *output = open_kept(0);

	(void)state;
	output_forget(output);
	output_abort(output);
	assert_int_equal(count_names(), 0);
}

static void kept_output_is_not_what_somebody_put_there(void **state)
{
	const struct output_kept kept = { .name = ".gsort-kept" };
	struct output *output;

	(void)state;
	write_file(path_of("theirs"), "theirs", 6);
	assert_int_equal(symlink(path_of("theirs"), path_of(".gsort-kept")), 0);
	assert_int_equal(output_open_kept(&faulty_calls, path_of("output"), OUTPUT_SIZE_UNKNOWN,
					  &kept, &output),
			 -ELOOP);
	unlink(path_of(".gsort-kept"));
	assert_int_equal(link(path_of("theirs"), path_of(".gsort-kept")), 0);
	assert_int_equal(output_open_kept(&faulty_calls, path_of("output"), OUTPUT_SIZE_UNKNOWN,
					  &kept, &output),
			 -EEXIST);
	assert_true(file_holds(path_of("theirs"), "theirs", 6));
}

static void failed_commit_leaves_a_kept_output(void **state)
{
	struct output *output = open_kept(0);

	(void)state;
	assert_int_equal(output_write_at(output, 0, "finished", 8), 0);
	faults.rename_errno = EIO;
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EIO);
	assert_true(file_holds(path_of(".gsort-kept"), "finished", 8));
}

static void failed_commit_removes_a_kept_output_that_is_of_no_use(void **state)
{
	struct output *output = open_kept(0);

	(void)state;
	assert_int_equal(output_write_at(output, 0, "finished", 8), 0);
	output_forget(output);
	faults.rename_errno = EIO;
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EIO);
	assert_int_equal(count_names(), 0);
}

/* The time is in the checkpoint, and says whether somebody has changed the output since. */
static void settled_output_keeps_its_time_of_modification(void **state)
{
	const struct output_kept kept = { .name = ".gsort-kept" };
	struct output *output;
	struct stat settled, named;
	struct timespec now;

	(void)state;
	assert_int_equal(
		output_open_kept(&faulty_calls, path_of("output"), 1 << 20, &kept, &output), 0);
	assert_int_equal(output_write_at(output, 0, "finished", 8), 0);
	assert_int_equal(output_settle(output, &settled), 0);
	assert_int_equal(settled.st_size, 8);
	do /* until a change would have another time, which is a tick of this clock */
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == settled.st_mtim.tv_sec && now.tv_nsec <= settled.st_mtim.tv_nsec);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(stat(path_of("output"), &named), 0);
	assert_memory_equal(&named.st_mtim, &settled.st_mtim, sizeof named.st_mtim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(run_takes_the_place_of_those_it_replaces, start,
						finish),
		cmocka_unit_test_setup_teardown(run_that_replaces_what_is_not_there_is_refused,
						start, finish),
		cmocka_unit_test_setup_teardown(blocks_that_make_no_sense_are_refused, start,
						finish),
		cmocka_unit_test_setup_teardown(runs_of_impossible_items_are_refused, start,
						finish),
		cmocka_unit_test_setup_teardown(first_record_is_the_header_and_no_other_is, start,
						finish),
		cmocka_unit_test_setup_teardown(parts_of_the_output_have_no_gap, start, finish),
		cmocka_unit_test_setup_teardown(records_too_short_or_of_no_type_are_refused, start,
						finish),
		cmocka_unit_test_setup_teardown(output_without_its_name_is_not_done, start, finish),
		cmocka_unit_test_setup_teardown(each_range_has_points_and_parts_of_its_own, start,
						finish),
		cmocka_unit_test_setup_teardown(part_that_reaches_into_the_next_range_is_refused,
						start, finish),
		cmocka_unit_test_setup_teardown(ranges_are_others_only_while_nothing_is_written,
						start, finish),
		cmocka_unit_test_setup_teardown(ranges_that_make_no_sense_are_refused, start,
						finish),
		cmocka_unit_test_setup_teardown(what_is_done_is_divided_among_the_ranges, start,
						finish),
		cmocka_unit_test(range_is_written_from_where_it_begins),
		cmocka_unit_test(output_is_written_up_to_the_first_gap),
		cmocka_unit_test(changed_byte_of_the_output_is_found),
		cmocka_unit_test_setup_teardown(difference_of_the_sort_is_named, fixture_start,
						fixture_finish),
		cmocka_unit_test(blocks_of_stored_runs_have_room_in_the_plan),
		cmocka_unit_test(input_that_is_the_output_now_is_accepted),
		cmocka_unit_test(want_of_memory_for_a_description_is_an_error),
		cmocka_unit_test_setup_teardown(state_of_an_input_is_what_stat_says, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(what_is_saved_is_durable_when_it_says_so,
						start_files, finish_files),
		cmocka_unit_test_setup_teardown(record_is_not_written_when_its_data_is_not_durable,
						start_files, finish_files),
		cmocka_unit_test_setup_teardown(checkpoint_belongs_to_one_at_a_time, start_files,
						finish_files),
		cmocka_unit_test_setup_teardown(checkpoint_that_was_moved_away_is_missed,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(link_is_not_followed, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(file_without_the_mark_is_left_alone, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(file_that_was_killed_before_its_mark_is_taken,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(file_that_has_taken_the_name_is_not_removed,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(limit_that_is_passed_already_allows_nothing,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(kept_output_is_taken_up, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(kept_output_is_removed_when_it_is_of_no_use,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(kept_output_is_not_what_somebody_put_there,
						fixture_start, fixture_finish),
		cmocka_unit_test_setup_teardown(failed_commit_leaves_a_kept_output, fixture_start,
						fixture_finish),
		cmocka_unit_test_setup_teardown(
			failed_commit_removes_a_kept_output_that_is_of_no_use, fixture_start,
			fixture_finish),
		cmocka_unit_test_setup_teardown(settled_output_keeps_its_time_of_modification,
						fixture_start, fixture_finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
