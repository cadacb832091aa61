/*
 * test_checkpoint_resume - which checkpoints are resumed
 */
#include "src/checkpoint/checkpoint.h"

#include <stdio.h>
#include <sys/stat.h>

#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/checkpoint_state.h"
#include "src/checkpoint/fingerprint.h"

#include "tests/support/io_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

enum { N_RECORDS = 1000 };

static struct layout layout;
static struct input *input;
static char input_path[512], output_path[512], directory[512];
static struct options options;

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
	options =
		PARSE_VALID("-t", "u64", "--checkpoint", directory, input_path, "-o", output_path);
	r = key_parse_type("u64", &key);
	if (r == 0)
		r = layout_make_key_only(&key, &layout);
	return r < 0 ? r : input_open(&faulty_calls, &path, 1, sizeof(uint64_t), &input);
}

static int finish(void **state)
{
	input_close(input);
	options_free(&options);
	unlink(path_in_state(CHECKPOINT_MANIFEST));
	unlink(path_in_state(CHECKPOINT_RUNS));
	return fixture_finish(state);
}

static int open_checkpoint(struct checkpoint **ret_checkpoint)
{
	return checkpoint_open(&faulty_calls, &options.spec, &layout, input,
			       sizeof(uint64_t) * N_RECORDS, ret_checkpoint);
}

/* Open the checkpoint of a sort, and leave it there. */
static int open_and_abandon(void)
{
	struct checkpoint *checkpoint;
	const int r = open_checkpoint(&checkpoint);

	if (r == 0)
		checkpoint_close(checkpoint);
	return r;
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

/* The record may be only in the page cache, but what it replaces is discarded. */
FIXTURE_TEST(manifest_is_synced_before_resuming)
{
	assert_int_equal(open_and_abandon(), 0);
	faults.fsync_errno = EIO;
	assert_int_equal(open_and_abandon(), -EIO);
	faults.fsync_errno = 0;
	assert_int_equal(open_and_abandon(), 0);
}

/* Both magics, the first record, and the names of the files and the directory are synced. */
FIXTURE_TEST(new_checkpoint_is_durable)
{
	faults.n_syncs = 0;
	assert_int_equal(open_and_abandon(), 0);
	assert_int_equal(faults.n_syncs, 5);
}

/* Its inputs may no longer be there after that. */
FIXTURE_TEST(finished_sort_is_recorded_durably_before_it_is_published)
{
	struct checkpoint *checkpoint;
	struct output *output;

	assert_int_equal(open_checkpoint(&checkpoint), 0);
	assert_int_equal(output_open(&faulty_calls, output_path, 0, &output), 0);
	faults.fsync_errno = EIO;
	assert_int_equal(checkpoint_record_done(checkpoint, output), -EIO);
	faults.fsync_errno = 0;
	output_abort(output);
	checkpoint_close(checkpoint);
}

/* Publish an output, and leave the checkpoint as if the process was killed then. */
static void publish_and_abandon(void)
{
	struct checkpoint *checkpoint;
	struct output *output;

	assert_int_equal(open_checkpoint(&checkpoint), 0);
	assert_int_equal(output_open(&faulty_calls, options.spec.output_path, 8, &output), 0);
	assert_int_equal(output_write_at(output, 0, "complete", 8), 0);
	assert_int_equal(checkpoint_record_done(checkpoint, output), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	checkpoint_close(checkpoint);
}

FIXTURE_TEST(complete_sort_is_repeated_only_if_its_output_has_changed)
{
	struct checkpoint *checkpoint;

	publish_and_abandon();
	assert_int_equal(open_checkpoint(&checkpoint), 0);
	assert_true(checkpoint_is_complete(checkpoint));
	checkpoint_close(checkpoint);
	write_file(output_path, "changed", 7);
	assert_int_equal(open_checkpoint(&checkpoint), 0);
	assert_false(checkpoint_is_complete(checkpoint));
	checkpoint_close(checkpoint);
}

/* Its orphans would not be found. */
FIXTURE_TEST(sort_whose_output_directory_was_replaced_is_not_resumed)
{
	char place[512], path[520];

	strcpy(place, fixture_path("place"));
	snprintf(path, sizeof path, "%s/output", place);
	options_free(&options);
	options = PARSE_VALID("-t", "u64", "--checkpoint", directory, input_path, "-o", path);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(open_and_abandon(), 0);
	assert_int_equal(open_and_abandon(), 0);
	assert_int_equal(rename(place, fixture_path("elsewhere")), 0);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(open_and_abandon(), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "location of the output"));
}

static void reopen_inputs(void)
{
	input_close(input);
	assert_int_equal(input_open(&faulty_calls, options.spec.inputs, options.spec.n_inputs,
				    sizeof(uint64_t), &input),
			 0);
}

/* The records of the other inputs are in it already. */
FIXTURE_TEST(changed_output_that_is_one_of_several_inputs_is_refused)
{
	char other[512];

	strcpy(other, fixture_path("other"));
	write_file(other, "12345678", 8);
	options_free(&options);
	options = PARSE_VALID("-t", "u64", "--checkpoint", directory, input_path, other, "-o",
			      input_path);
	reopen_inputs();
	publish_and_abandon();
	write_file(input_path, "changed!!", 8);
	reopen_inputs();
	assert_int_equal(open_and_abandon(), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "also an input, has changed since"));
}

/* Otherwise the first record would follow the rest of an incomplete one. */
FIXTURE_TEST(manifest_must_be_truncatable)
{
	faults.ftruncate_errno = EIO;
	assert_int_equal(open_and_abandon(), -EIO);
	faults.ftruncate_errno = 0;
	assert_int_equal(open_and_abandon(), 0);
}

static void append_header(const void *payload, size_t nbytes)
{
	struct manifest manifest = { .path = path_in_state(CHECKPOINT_MANIFEST),
				     .begin = CHECKPOINT_MANIFEST_BEGIN };

	assert_int_equal(
		file_open(&faulty_calls, AT_FDCWD, manifest.path, O_RDWR, 0, &manifest.file), 0);
	assert_int_equal(file_size(&manifest.file, &manifest.end), 0);
	assert_int_equal(manifest_append(&manifest, &(struct manifest_record){ RECORD_HEADER,
									       payload, nbytes }),
			 0);
	file_close(&manifest.file);
}

/* Replace the description in the manifest by one that begins with a name, as older formats do. */
static void forge_header(const char *name, size_t name_nbytes)
{
	const struct sort_spec spec = options.spec;
	struct fingerprint fingerprint;
	char *text;

	assert_int_equal(fingerprint_create(&spec, false, &fingerprint), 0);
	text = malloc(name_nbytes + fingerprint.nbytes);
	assert_non_null(text);
	memcpy(text, name, name_nbytes);
	memcpy(text + name_nbytes, fingerprint.text, fingerprint.nbytes);
	assert_int_equal(truncate(path_in_state(CHECKPOINT_MANIFEST), CHECKPOINT_MANIFEST_BEGIN),
			 0);
	append_header(text, name_nbytes + fingerprint.nbytes);
	free(text);
	free(fingerprint.text);
}

/* Otherwise a forged manifest could cause any temp file beside the output to be removed. */
FIXTURE_TEST(manifest_that_names_a_file_is_refused)
{
	static const char name[] = ".gsort-0123456789abcdef";

	assert_int_equal(open_and_abandon(), 0);
	forge_header(name, sizeof name);
	assert_int_equal(open_and_abandon(), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "is of another sort"));
	forge_header("", 0);
	assert_int_equal(open_and_abandon(), 0);
}

static struct orphan_owner orphan_owner_of(void)
{
	const struct sort_spec spec = options.spec;
	struct checkpoint *checkpoint;
	struct orphan_owner owner;

	assert_int_equal(checkpoint_open(&faulty_calls, &spec, &layout, input,
					 sizeof(uint64_t) * N_RECORDS, &checkpoint),
			 0);
	checkpoint_get_orphan_owner(checkpoint, &owner);
	checkpoint_close(checkpoint);
	return owner;
}

/* The temp files of a start are removed by later starts of the same sort only. */
FIXTURE_TEST(orphans_belong_to_one_checkpoint)
{
	struct orphan_owner first, again, other;

	first = orphan_owner_of();
	again = orphan_owner_of();
	assert_int_equal(strlen(first.digits), FILE_UNIQUE_DIGITS);
	assert_string_equal(first.digits, again.digits);
	/* the old file keeps its inode */
	assert_int_equal(rename(path_in_state(CHECKPOINT_MANIFEST), fixture_path("aside")), 0);
	other = orphan_owner_of();
	assert_string_not_equal(first.digits, other.digits);
	unlink(fixture_path("aside"));
}
