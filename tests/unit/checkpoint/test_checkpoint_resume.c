/*
 * test_checkpoint_resume - what of a checkpoint that is there is believed
 */
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/manifest_records.h"
#include "src/checkpoint/written_extents.h"

#include "tests/support/io_fixture.h"
#include "tests/support/parsed_options.h"

enum { N_RECORDS = 1000 };

static struct layout layout;
static struct input *input;
static char input_path[512], output_path[512], directory[512];

static const char *path_in_state(enum checkpoint_file file)
{
	static char path[2][600];

	snprintf(path[file], sizeof path[file], "%s/%s", directory, checkpoint_file_names[file]);
	return path[file];
}

static int start(void **state)
{
	static const uint64_t numbers[N_RECORDS];
	const char *path = input_path;
	struct key key;
	int r = fixture_start(state);

	if (r < 0)
		return r;
	strcpy(input_path, fixture_path("input"));
	strcpy(output_path, fixture_path("output"));
	strcpy(directory, fixture_path("state"));
	write_file(input_path, numbers, sizeof numbers);
	r = key_parse_type("u64", &key);
	if (r == 0)
		r = layout_make_key_only(&key, &layout);
	return r < 0 ? r : input_open(&faulty_calls, &path, 1, sizeof(uint64_t), &input);
}

static int finish(void **state)
{
	input_close(input);
	unlink(path_in_state(CHECKPOINT_MANIFEST));
	unlink(path_in_state(CHECKPOINT_RUNS));
	return fixture_finish(state);
}

/* Open the checkpoint of a sort, and leave it there. */
static int open_and_abandon(struct options *options)
{
	const struct sort_spec spec = options_spec(options);
	struct checkpoint *checkpoint;
	const int r = checkpoint_open(&faulty_calls, &spec, &layout, input, &checkpoint);

	if (r == 0)
		checkpoint_close(checkpoint);
	return r;
}

/* The record may be in the page cache alone: what it replaces is given up for it. */
static void manifest_is_synced_before_resuming(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);

	(void)state;
	assert_int_equal(open_and_abandon(&options), 0);
	faults.fsync_errno = EIO;
	assert_int_equal(open_and_abandon(&options), -EIO);
	faults.fsync_errno = 0;
	assert_int_equal(open_and_abandon(&options), 0);
	options_free(&options);
}

/* The marks of both files, the first record, and the names of the files and of the directory. */
static void new_checkpoint_is_durable(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);

	(void)state;
	faults.n_syncs = 0;
	assert_int_equal(open_and_abandon(&options), 0);
	assert_int_equal(faults.n_syncs, 5);
	options_free(&options);
}

/* What is there may be the end of a record, and the first one would stand behind it. */
static void manifest_must_be_truncatable(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);

	(void)state;
	faults.ftruncate_errno = EIO;
	assert_int_equal(open_and_abandon(&options), -EIO);
	faults.ftruncate_errno = 0;
	assert_int_equal(open_and_abandon(&options), 0);
	options_free(&options);
}

static void append(enum checkpoint_record type, const struct payload_slice *slices, size_t n)
{
	struct manifest manifest = { .path = path_in_state(CHECKPOINT_MANIFEST),
				     .begin = CHECKPOINT_MANIFEST_BEGIN };

	assert_int_equal(
		file_open(&faulty_calls, AT_FDCWD, manifest.path, O_RDWR, 0, &manifest.file), 0);
	assert_int_equal(file_size(&manifest.file, &manifest.end), 0);
	assert_int_equal(checkpoint_append_record(&manifest, type, slices, n), 0);
	file_close(&manifest.file);
}

/* A finished part of the output, of no records, when no run is there. */
static void append_restore_point(void)
{
	const struct saved_partitions partitions = { .n_partitions = 1, .key_nbytes = 16 };
	const struct saved_restore_point point = { .key_nbytes = 16, .edge_nbytes = 16 };
	const struct payload_slice partition_extents[] = { { &partitions, sizeof partitions },
							   { &(uint64_t){ 0 }, sizeof(uint64_t) },
							   { "no key for the 1st", 16 } };
	const struct payload_slice slices[] = { { &point, sizeof point },
						{ "0123456789abcdef0123456789abcdef"
						  "0123456789abcdef",
						  48 } };

	append(RECORD_PARTITIONS, partition_extents, 3);
	append(RECORD_RESTORE_POINT, slices, 2);
}

/* The output is the file as it is, of n parts and nothing around them. */
static void append_done_of(const char *path, const struct output_extent *output_extents, size_t n)
{
	struct stat status;
	int r = stat(path, &status);
	const struct saved_output output = { status.st_dev, status.st_ino };
	const struct saved_done done = { .output_nbytes = (uint64_t)status.st_size,
					 .modified_seconds = status.st_mtim.tv_sec,
					 .modified_nanos = status.st_mtim.tv_nsec,
					 .n_extents = n };
	const struct payload_slice slices[] = { { &done, sizeof done },
						{ output_extents, n * sizeof *output_extents } };

	assert_int_equal(r, 0);
	append(RECORD_OUTPUT, &(struct payload_slice){ &output, sizeof output }, 1);
	append(RECORD_DONE, slices, 2);
}

static void append_done(const char *path)
{
	struct output_extent extent;

	written_extents_describe(0, "complete", 8, &extent);
	append_done_of(path, &extent, 1);
}

static bool is_complete(struct options *options)
{
	const struct sort_spec spec = options_spec(options);
	struct checkpoint *checkpoint;
	bool is;

	assert_int_equal(checkpoint_open(&faulty_calls, &spec, &layout, input, &checkpoint), 0);
	is = checkpoint_is_complete(checkpoint);
	checkpoint_close(checkpoint);
	return is;
}

static void output_that_has_changed_is_not_complete(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	(void)state;
	write_file(output_path, "complete", 8);
	assert_int_equal(open_and_abandon(&options), 0);
	append_done(output_path);
	assert_true(is_complete(&options));
	assert_int_equal(utimensat(AT_FDCWD, output_path, times, 0), 0);
	assert_false(is_complete(&options)); /* and begins anew */
	append_done(output_path);
	write_file(output_path, "complete, and more", 18);
	assert_int_equal(utimensat(AT_FDCWD, output_path, times, 0), 0);
	assert_false(is_complete(&options));
	options_free(&options);
}

/* Neither its size nor its times have changed: the disk has lost a part of it. */
static void complete_output_with_other_bytes_is_damaged(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);
	struct output_extent extent;

	(void)state;
	write_file(output_path, "complete", 8);
	assert_int_equal(open_and_abandon(&options), 0);
	written_extents_describe(0, "was this", 8, &extent);
	append_done_of(output_path, &extent, 1);
	assert_int_equal(open_and_abandon(&options), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "is not what was written"));
	options_free(&options);
}

static void output_is_resumed_before_all_runs_exist(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options all = PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);

	(void)state;
	assert_int_equal(open_and_abandon(&all), 0);
	append_restore_point();
	assert_int_equal(open_and_abandon(&all), 0);
	options_free(&all);
}

/* With -u what was dropped is only known if all runs were stored when the output was begun. */
static void output_of_unique_records_without_all_runs_is_damaged(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options unique =
		PARSE_VALID("-u", "-t", "u64", "--checkpoint", checkpoint, in, "-o", out);

	(void)state;
	assert_int_equal(open_and_abandon(&unique), 0);
	append_restore_point();
	assert_int_equal(open_and_abandon(&unique), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "its output does not fit the sort"));
	options_free(&unique);
}

/* Their times did not tell, and what is stored of them is the same. */
static void changed_inputs_are_reported_with_advice(void **state)
{
	char *const checkpoint = directory, *const in = input_path, *const out = output_path;
	struct options options =
		PARSE_VALID("-t", "u64", "--checkpoint", checkpoint, in, "-o", out);
	const struct sort_spec spec = options_spec(&options);
	struct checkpoint *opened;
	const struct checkpoint_hooks *hooks;

	(void)state;
	assert_int_equal(checkpoint_open(&faulty_calls, &spec, &layout, input, &opened), 0);
	hooks = checkpoint_get_hooks(opened);
	assert_int_equal(hooks->report_mismatch(hooks->context, 99, 501, 500), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), directory));
	assert_non_null(strstr(captured_messages_error(), "the inputs have changed since"));
	assert_non_null(strstr(captured_messages_error(), "501 records from number 100 on"));
	assert_non_null(
		strstr(captured_messages_error(), "; to start again, remove gsort-manifest"));
	checkpoint_close(opened);
	options_free(&options);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(manifest_is_synced_before_resuming),
		FIXTURE(new_checkpoint_is_durable),
		FIXTURE(manifest_must_be_truncatable),
		FIXTURE(output_is_resumed_before_all_runs_exist),
		FIXTURE(output_of_unique_records_without_all_runs_is_damaged),
		FIXTURE(output_that_has_changed_is_not_complete),
		FIXTURE(complete_output_with_other_bytes_is_damaged),
		FIXTURE(changed_inputs_are_reported_with_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
