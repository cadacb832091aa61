/*
 * test_sync_thread - recorded runs are durable, also after a failure
 */
#include "src/checkpoint/manifest.h"

#include "io/spill/run_file.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/checkpoint_state.h"
#include "src/run/run.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

static struct checkpoint_dir files;
static struct spill *spill;
static struct sync_thread *sync_thread;

static int start(void **state)
{
	int r = fixture_start(state);

	if (r < 0)
		return r;
	checkpoint_dir_init(&files, &faulty_calls, fixture_directory);
	r = checkpoint_dir_open(&files);
	if (r == 0)
		r = spill_open_persistent(&files.runs, &files.path, 0, 0, SPILL_UNLIMITED, &spill);
	files.runs.fd = -1;
	faults.n_syncs = 0;
	return r < 0 ? r : sync_thread_open(&files.manifest, spill, &sync_thread);
}

static int finish(void **state)
{
	spill_close(spill);
	checkpoint_dir_close(&files);
	return fixture_finish(state);
}

static unsigned n_durable, n_lost;

static void count_end(void *context, bool durable)
{
	(void)context;
	n_durable += durable;
	n_lost += !durable;
}

static struct sync_request *create_sync_request(void)
{
	struct sync_request *request = calloc(1, sizeof *request);

	assert_non_null(request);
	*request = (struct sync_request){ .type = RECORD_RUN,
					  .payload = strdup("payload"),
					  .nbytes = 8,
					  .on_complete = count_end };
	return request;
}

/* Return the number of syncs for one record. */
static unsigned syncs_for_record(void)
{
	n_durable = 0;
	assert_int_equal(sync_thread_add(sync_thread, create_sync_request()), 0);
	assert_int_equal(sync_thread_close(sync_thread, true), 0);
	assert_int_equal(n_durable, 1);
	return faults.n_syncs;
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(record_of_runs_is_not_before_the_runs)
{
	struct spill_extent extent;

	assert_int_equal(spill_write(spill, "a run", 5, &extent), 0);
	assert_int_equal(syncs_for_record(), 2);
}

/* Only the first sync fails, that of the runs; syncing the manifest does not make up for it. */
FIXTURE_TEST(record_of_lost_runs_is_not_written)
{
	struct spill_extent extent;

	n_lost = 0;
	assert_int_equal(spill_write(spill, "a run", 5, &extent), 0);
	faults.first_fsync_errno = EIO;
	assert_int_equal(sync_thread_add(sync_thread, create_sync_request()), 0);
	assert_int_equal(sync_thread_close(sync_thread, true), -EIO);
	assert_int_equal(n_lost, 1);
	assert_int_equal(files.manifest.end, files.manifest.begin);
}

/* Called by the sync thread before it has noted its failure. */
static void add_another(void *context, bool durable)
{
	(void)context;
	assert_false(durable);
	faults.fsync_errno = 0;
	assert_int_equal(sync_thread_add(sync_thread, create_sync_request()), 0);
}

/* A later record may depend on the lost one. */
FIXTURE_TEST(nothing_is_recorded_after_a_failure)
{
	struct sync_request *first = create_sync_request();

	n_durable = n_lost = 0;
	first->on_complete = add_another;
	faults.fsync_errno = EIO;
	assert_int_equal(sync_thread_add(sync_thread, first), 0);
	assert_int_equal(sync_thread_close(sync_thread, true), -EIO);
	assert_int_equal(n_durable, 0);
	assert_int_equal(n_lost, 1);
}

/* A process that finishes removes the manifest's name when another one has just opened it. */
static int openat_and_unlink(int directory, const char *path, int flags, mode_t mode)
{
	const int fd = faulty_openat(directory, path, flags, mode);

	if (fd >= 0 && strcmp(path, checkpoint_file_names[CHECKPOINT_MANIFEST]) == 0)
		unlinkat(directory, path, 0);
	return fd;
}

FIXTURE_TEST(unlinked_manifest_is_not_resumed)
{
	struct syscalls job = faulty_calls;
	struct checkpoint_dir late;

	assert_int_equal(sync_thread_close(sync_thread, true), 0);
	job.openat = openat_and_unlink;
	checkpoint_dir_init(&late, &job, fixture_path("other"));
	assert_int_equal(checkpoint_dir_open(&late), -EBUSY);
	assert_non_null(
		strstr(captured_messages_error(), "another gsort is using this checkpoint"));
	checkpoint_dir_close(&late);
}

/* A run of 8 pages in the persistent spill. */
static struct run *make_run(void)
{
	enum { N = 8 * SPILL_ALIGN_NBYTES / sizeof(uint64_t) };
	static const uint64_t items[N];
	const encoded_key_t first_keys[1] = { 0 };
	struct run_file *file;
	struct run *run;

	assert_int_equal(run_file_open(spill, NULL, sizeof *items, N, &file), 0);
	assert_int_equal(run_file_write(file, 0, items, NULL, N, first_keys), 0);
	run_file_finish(file);
	assert_int_equal(run_open_spilled(file, SPILLED_ITEMS, &run), 0);
	return run;
}

/* In a persistent spill, only replaced runs are freed. */
FIXTURE_TEST(replaced_run_releases_its_space)
{
	struct run *kept, *replaced;

	assert_int_equal(sync_thread_close(sync_thread, true), 0);
	kept = make_run();
	replaced = make_run();
	assert_int_equal(spill_used_nbytes(spill), 16 * SPILL_ALIGN_NBYTES);
	run_remove(replaced);
	assert_int_equal(spill_used_nbytes(spill), 8 * SPILL_ALIGN_NBYTES);
	run_close(kept);
	assert_int_equal(spill_used_nbytes(spill), 8 * SPILL_ALIGN_NBYTES);
}
