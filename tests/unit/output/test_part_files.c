/*
 * test_part_files.c - a directory of part files appears at once, or the old one is unchanged
 */
#include "io/output/part_files.h"

#include <sys/stat.h>

#include "io/output/undo.h"
#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

enum { MAX_PARTS = 8, EXCHANGE_FLAG = 2 /* RENAME_EXCHANGE */ };

static const struct orphan_owner nobody;

static struct syscalls calls;
static unsigned n_names,
	failing_name; /* calls that change names, and the one that fails; 0: none */
static bool fails_for_good, cannot_exchange, is_durable;
static void (*while_written)(void); /* or NULL */

static bool fails(void)
{
	n_names++;
	if (!failing_name || n_names < failing_name || (n_names > failing_name && !fails_for_good))
		return false;
	errno = EIO;
	return true;
}

static int fail_mkdirat(int directory, const char *name, mode_t mode)
{
	return fails() ? -1 : mkdirat(directory, name, mode);
}

static int fail_unlinkat(int directory, const char *name, int flags)
{
	return fails() ? -1 : unlinkat(directory, name, flags);
}

static int fail_linkat(int from, const char *name, int to, const char *as, int flags)
{
	return fails() ? -1 : linkat(from, name, to, as, flags);
}

static int fail_renameat(int from, const char *name, int to, const char *as)
{
	return fails() ? -1 : renameat(from, name, to, as);
}

static int fail_renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
	if (cannot_exchange && (flags & EXCHANGE_FLAG)) {
		errno = EINVAL;
		return -1;
	}
	return fails() ? -1 : renameat2(from, name, to, as, flags);
}

/* New files are reopened to give them the attributes of old ones. */
static int refuse_reopening(int directory, const char *name, int flags, mode_t mode)
{
	if ((flags & ~O_CLOEXEC) == (O_RDONLY | O_NOFOLLOW)) {
		errno = EMFILE;
		return -1;
	}
	return faulty_openat(directory, name, flags, mode);
}

static const char *given; /* the path of the directory x */

static int start(void **state)
{
	fixture_start(state);
	calls = faulty_calls;
	calls.mkdirat = fail_mkdirat;
	calls.unlinkat = fail_unlinkat;
	calls.linkat = fail_linkat;
	calls.renameat = fail_renameat;
	calls.renameat2 = fail_renameat2;
	n_names = failing_name = 0;
	while_written = NULL;
	given = "x";
	fails_for_good = cannot_exchange = is_durable = false;
	return 0;
}

/* --- writing --- */

static void make_manifest(unsigned n, char text[static 2048])
{
	int at = sprintf(
		text, "{\"gsort_part_manifest\": 1, \"content\": \"records\", \"record_bytes\": 1,"
		      " \"header_bytes\": 0, \"keys\": [], \"records\": 0, \"part_files\": [");

	for (unsigned i = 0; i < n; i++)
		at += sprintf(
			text + at,
			"%s{\"number\": %u, \"name\": \"part-%04u\", \"records\": 0, \"bytes\": 2,"
			" \"checksum\": \"0123456789abcdef\"}",
			i ? ", " : "", i, i);
	strcpy(text + at, "]}");
}

static bool has_text(const char *name, const char *text)
{
	return file_contains(fixture_path(name), text, strlen(text));
}

static int open_outputs(unsigned n, struct part_files **ret_files, struct output **outputs)
{
	const int r = part_files_open(&calls, fixture_path(given), n, "", &nobody, ret_files);

	if (r < 0)
		return r;
	return part_files_open_outputs(*ret_files, false, outputs);
}

/* Write part files that hold `letter` and their number, and a manifest. */
static int write_parts(unsigned n, char letter)
{
	struct output *outputs[MAX_PARTS + 1];
	struct part_files *files;
	char manifest[2048];
	int r = open_outputs(n, &files, outputs);

	if (r < 0)
		return r;
	make_manifest(n, manifest);
	for (unsigned i = 0; i <= n; i++) {
		char text[] = { letter, (char)('0' + i), '\0' };
		const char *content = i < n ? text : manifest;

		assert_int_equal(output_write_at(outputs[i], 0, content, strlen(content)), 0);
		assert_int_equal(output_complete(outputs[i], OUTPUT_UNSYNCED), 0);
	}
	if (while_written)
		while_written();
	r = part_files_commit(files, outputs, is_durable);
	part_files_close(files, false);
	return r;
}

static int refused(unsigned n)
{
	captured_messages_reset(true);
	return write_parts(n, 'z');
}

static unsigned count_files(const char *directory)
{
	DIR *stream = opendir(fixture_path(directory));
	unsigned n = 0;

	while (stream && readdir(stream))
		n++;
	if (stream)
		closedir(stream);
	return n ? n - 2 : 0;
}

static bool are_parts(unsigned n, char letter)
{
	char manifest[2048], name[32];
	bool are_right = count_files("x") == n + 1;

	make_manifest(n, manifest);
	for (unsigned i = 0; i < n; i++) {
		const char text[] = { letter, (char)('0' + i), '\0' };

		snprintf(name, sizeof name, "x/part-%04u", i);
		are_right = are_right && has_text(name, text);
	}
	return are_right && has_text("x/manifest.json", manifest);
}

/* The directory holds these part files and nothing else. */
static void assert_only_parts(unsigned n, char letter)
{
	assert_true(are_parts(n, letter));
	assert_int_equal(count_directory_entries(), 1);
}

/* --- appearing --- */

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, fixture_finish)

FIXTURE_TEST(directory_replaces_an_older_one)
{
	for (int i = 0; i < 4; i++) {
		cannot_exchange = i & 1;
		faults.rejects_tmpfile = i & 2;
		is_durable = i & 2;
		captured_messages_reset(true);
		assert_int_equal(write_parts(5, 'a'), 0);
		assert_only_parts(5, 'a');
		assert_int_equal(write_parts(2, 'b'), 0);
		assert_only_parts(2, 'b');
		assert_int_equal(write_parts(4, 'c'), 0);
		assert_only_parts(4, 'c');
		assert_string_equal(captured_messages_error(), "");
		assert_string_equal(captured_messages_warning(), "");
	}
}

FIXTURE_TEST(permissions_of_the_old_directory_are_kept)
{
	assert_int_equal(write_parts(2, 'a'), 0);
	assert_int_equal(chmod(fixture_path("x"), 0710), 0);
	assert_int_equal(chmod(fixture_path("x/part-0000"), 0600), 0);
	assert_int_equal(chmod(fixture_path("x/part-0001"), 0640), 0);
	assert_int_equal(write_parts(3, 'b'), 0);
	assert_only_parts(3, 'b');
	assert_int_equal(get_permissions(fixture_path("x")), 0710);
	assert_int_equal(get_permissions(fixture_path("x/part-0001")), 0640);
	assert_true(get_permissions(fixture_path("x/part-0002")) <= 0640);
}

FIXTURE_TEST(part_files_that_cannot_get_the_attributes_of_old_ones_do_not_replace_them)
{
	assert_int_equal(write_parts(2, 'a'), 0);
	calls.openat = refuse_reopening;
	assert_int_equal(write_parts(2, 'b'), -EMFILE);
	assert_only_parts(2, 'a');
}

FIXTURE_TEST(path_may_be_a_link_or_end_with_slashes)
{
	struct part_files *files;

	assert_int_equal(symlink("x", fixture_path("link")), 0);
	given = "link//";
	assert_int_equal(write_parts(2, 'a'), 0);
	assert_true(are_parts(2, 'a'));
	assert_int_equal(count_directory_entries(), 2);
	assert_int_equal(part_files_open(&calls, fixture_path("."), 1, "", &nobody, &files),
			 -EINVAL);
	assert_int_equal(part_files_open(&calls, fixture_path("x/.."), 1, "", &nobody, &files),
			 -EINVAL);
	assert_int_equal(part_files_open(&calls, "/", 1, "", &nobody, &files), -EINVAL);
}

/* --- failing --- */

/*
 * Let each call fail in turn, alone or with all that follow. The old directory is unchanged, or the
 * new one is there and what could not be removed is reported.
 */
static void try_each_failure(bool has_old)
{
	unsigned nth = 1;

	for (bool has_failed = true; has_failed; nth++) {
		int r;

		fixture_clear();
		failing_name = 0;
		if (has_old)
			assert_int_equal(write_parts(4, 'a'), 0);
		n_names = 0;
		failing_name = nth;
		captured_messages_reset(true);
		r = write_parts(3, 'b');
		has_failed = n_names >= nth;
		if (r == 0)
			assert_true(are_parts(3, 'b'));
		else if (has_old)
			assert_true(are_parts(4, 'a'));
		else
			assert_int_equal(access(fixture_path("x"), F_OK), -1);
		if (r < 0)
			assert_true(*captured_messages_error());
		if (count_directory_entries() > (r == 0 || has_old))
			assert_non_null(strstr(captured_messages_warning(), "cannot be removed"));
	}
	assert_true(nth > 6); /* at least a directory, three part files, a manifest and a rename */
}

FIXTURE_TEST(failed_call_leaves_the_old_or_the_new_directory)
{
	for (int i = 0; i < 16; i++) {
		fails_for_good = i & 1;
		cannot_exchange = i & 2;
		faults.rejects_tmpfile = i & 4;
		/* The old directory cannot be moved back: see below. */
		if (fails_for_good && cannot_exchange)
			continue;
		try_each_failure(i & 8);
	}
}

FIXTURE_TEST(old_directory_that_cannot_be_put_back_is_named)
{
	assert_int_equal(write_parts(2, 'a'), 0);
	cannot_exchange = fails_for_good = true;
	n_names = 0;
	failing_name =
		6; /* a directory, two part files, a manifest, and the move aside come first */
	captured_messages_reset(true);
	assert_int_equal(write_parts(2, 'b'), -EIO);
	assert_non_null(strstr(captured_messages_error(), "cannot be restored"));
	assert_int_equal(access(fixture_path("x"), F_OK), -1);
}

FIXTURE_TEST(old_directory_that_cannot_be_removed_is_named)
{
	assert_int_equal(write_parts(2, 'a'), 0);
	faults.unlink_errno = EIO;
	calls.unlinkat = faulty_calls.unlinkat;
	captured_messages_reset(true);
	assert_int_equal(write_parts(3, 'b'), 0);
	assert_true(are_parts(3, 'b'));
	assert_non_null(
		strstr(captured_messages_warning(), "the older directory, now .gsort-temp-"));
	assert_int_equal(count_directory_entries(), 2);
}

FIXTURE_TEST(unsynced_name_is_an_error_of_a_complete_directory)
{
	for (int i = 0; i < 2; i++) {
		is_durable = true;
		captured_messages_reset(true);
		faults.fsync_errno = EIO;
		assert_int_equal(write_parts(2, 'a'), -EIO);
		assert_int_equal(access(fixture_path("x"), F_OK), -1);
	}
}

/* --- directories that are not replaced --- */

static void add_file(void)
{
	write_text("x/mine", "precious");
}

static void add_directory(void)
{
	assert_int_equal(mkdir(fixture_path("x/part-0003"), 0700), 0);
}

static void lengthen_part(void)
{
	write_text("x/part-0002", "longer");
}

static void rewrite_part(void)
{
	write_text("x/part-0001", "??");
}

static void link_part(void)
{
	assert_int_equal(unlink(fixture_path("x/part-0002")), 0);
	assert_int_equal(symlink("part-0001", fixture_path("x/part-0002")), 0);
}

static void replace_manifest(void)
{
	write_text("x/manifest.json", "{\"name\": \"some other program's\"}");
}

static void remove_manifest(void)
{
	assert_int_equal(unlink(fixture_path("x/manifest.json")), 0);
}

static void name_part_otherwise(void)
{
	char manifest[2048];

	make_manifest(3, manifest);
	memcpy(strstr(manifest, "part-0001"), "precious!", 9);
	write_text("x/manifest.json", manifest);
	assert_int_equal(rename(fixture_path("x/part-0001"), fixture_path("x/precious!")), 0);
}

static void replace_directory(void)
{
	assert_int_equal(rename(fixture_path("x"), fixture_path("y")), 0);
	assert_int_equal(mkdir(fixture_path("x"), 0700), 0);
}

/* Otherwise a forged manifest could cause any file of the directory to be removed. */
FIXTURE_TEST(manifest_of_other_names_is_refused)
{
	assert_int_equal(write_parts(3, 'a'), 0);
	name_part_otherwise();
	assert_true(refused(2) < 0);
	assert_true(has_text("x/precious!", "a1"));
	assert_int_equal(count_directory_entries(), 1);
}

static void (*change)(void);

/* Change the old directory when the new one is synced, before it gets its name. */
static void change_before_rename(void)
{
	faults.on_fsync = NULL;
	change();
}

/* Wait for a tick of the clock of file times, so that the next change has another time. */
static void wait_for_tick(void)
{
	struct timespec before, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &before);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

FIXTURE_TEST(change_while_it_is_written_is_refused)
{
	static void (*const changes[])(void) = { add_file,     add_directory,    lengthen_part,
						 link_part,    replace_manifest, remove_manifest,
						 rewrite_part, replace_directory };
	enum { N_CHANGES = sizeof changes / sizeof changes[0] };

	for (size_t i = 0; i < 2 * N_CHANGES; i++) {
		fixture_clear();
		is_durable = false;
		assert_int_equal(write_parts(3, 'a'), 0);
		wait_for_tick();
		change = changes[i % N_CHANGES];
		is_durable = i >= N_CHANGES;
		while_written = is_durable ? NULL : change;
		faults.on_fsync = is_durable ? change_before_rename : NULL;
		assert_true(refused(2) < 0);
		assert_null(faults.on_fsync);
		while_written = NULL;
		assert_true(has_text(change == replace_directory ? "y/part-0000" : "x/part-0000",
				     "a0"));
		assert_int_equal(count_directory_entries(), 1 + (change == replace_directory));
	}
}

static void create_directory(void)
{
	assert_int_equal(mkdir(fixture_path("x"), 0700), 0);
	write_text("x/mine", "precious");
}

static void create_file(void)
{
	write_text("x", "precious");
}

FIXTURE_TEST(name_that_is_taken_while_it_is_written_is_refused)
{
	while_written = create_directory;
	assert_int_equal(refused(2), -EBUSY);
	assert_true(has_text("x/mine", "precious"));
	fixture_clear();
	while_written = create_file;
	assert_int_equal(refused(2), -EBUSY);
	assert_true(has_text("x", "precious"));
	assert_int_equal(count_directory_entries(), 1);
}

static void commit_at_the_same_time(void)
{
	while_written = NULL;
	assert_int_equal(write_parts(2, 'c'), 0);
}

FIXTURE_TEST(second_concurrent_commit_is_refused)
{
	for (int has_older = 0; has_older < 2; has_older++) {
		while_written = commit_at_the_same_time;
		assert_int_equal(write_parts(2, 'b'), -EBUSY);
		assert_only_parts(2, 'c');
		captured_messages_reset(true);
	}
}

/* --- signals and orphans --- */

FIXTURE_TEST(signal_handler_removes_the_hidden_directory)
{
	struct output *outputs[3];
	struct part_files *files;

	for (int i = 0; i < 2; i++) {
		faults.rejects_tmpfile = i;
		assert_int_equal(write_parts(2, 'a'), 0);
		assert_int_equal(open_outputs(2, &files, outputs), 0);
		assert_int_equal(count_directory_entries(), 2);
		undo_run(&process_get()->undo);
		assert_only_parts(2, 'a');
		for (unsigned j = 0; j < 3; j++)
			output_abort(outputs[j]);
		part_files_close(files, false);
	}
}

FIXTURE_TEST(orphan_is_reported_and_its_owner_removes_it)
{
	static const struct orphan_owner owner = { "0123456789abcdef" };
	struct part_files *files, *others;
	char name[TEMP_NAME_SIZE], path[64];

	orphans_make_temp_name(&owner, name);
	assert_int_equal(mkdir(fixture_path(name), 0700), 0);
	snprintf(path, sizeof path, "%s/part-0000", name);
	write_text(path, "half");
	assert_int_equal(write_parts(2, 'a'), 0);
	assert_non_null(strstr(captured_messages_warning(), name));
	assert_int_equal(part_files_open(&calls, fixture_path("x"), 2, "", &owner, &files), 0);
	assert_int_equal(access(fixture_path(name), F_OK), -1);
	/* A directory in use is no orphan. */
	captured_messages_reset(true);
	assert_int_equal(part_files_open(&calls, fixture_path("x"), 2, "", &owner, &others), 0);
	assert_string_equal(captured_messages_warning(), "");
	part_files_close(others, false);
	part_files_close(files, false);
	assert_only_parts(2, 'a');
}

/* --- ranks --- */

FIXTURE_TEST(rank_that_joins_and_fails_removes_what_is_unfinished)
{
	struct part_files *files, *joined;
	struct output *outputs[2], *joined_output;

	assert_int_equal(write_parts(2, 'a'), 0);
	assert_int_equal(part_files_open(&calls, fixture_path("x"), 1, "", &nobody, &files), 0);
	assert_int_equal(part_files_open_outputs(files, true, outputs), 0);
	assert_int_equal(part_files_open_existing(&calls, fixture_path("x"), 1, "",
						  part_files_temp_name(files), &joined),
			 0);
	assert_int_equal(part_files_join_output(joined, 0, output_shared_name(outputs[0]),
						&joined_output),
			 0);
	output_abort(joined_output);
	part_files_close(joined, false);
	assert_only_parts(2, 'a');
	output_abort(outputs[0]);
	output_abort(outputs[1]);
	part_files_close(files, false);
}

/* The creator has committed the directory meanwhile. */
FIXTURE_TEST(rank_that_fails_too_late_removes_nothing)
{
	struct output *outputs[2];
	struct part_files *files, *joined;

	assert_int_equal(write_parts(2, 'a'), 0);
	assert_int_equal(open_outputs(1, &files, outputs), 0);
	assert_int_equal(part_files_open_existing(&calls, fixture_path("x"), 1, "",
						  part_files_temp_name(files), &joined),
			 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(output_complete(outputs[i], OUTPUT_UNSYNCED), 0);
	assert_int_equal(part_files_commit(files, outputs, false), 0);
	part_files_close(joined, false);
	part_files_close(files, false);
	assert_int_equal(count_files("x"), 2);
	assert_int_equal(count_directory_entries(), 1);
}

FIXTURE_TEST(rank_that_sees_another_directory_is_refused)
{
	struct part_files *files;

	captured_messages_reset(true);
	assert_int_equal(part_files_open_existing(&calls, fixture_path("x"), 1, "",
						  ".gsort-temp-0123456789abcdef", &files),
			 -ENOENT);
	assert_non_null(strstr(captured_messages_error(), "all ranks must see the same directory"));
}
