/*
 * test_target_snapshot.c - files that other processes create or change during a sort are neither
 * published nor lost
 */
#include "io/output/undo.h"
#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

static void write_data(struct output *output)
{
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
}

/* Open an output whose new file has a temporary name. */
static struct output *open_named(const char *path, const char **ret_name)
{
	struct output *output;

	faults.rejects_tmpfile = true;
	*ret_name = NULL;
	output = open_output(path, N);
	for (size_t i = 0; i < UNDO_MAX_ENTRIES; i++)
		if (atomic_load(&process_get()->undo.entries[i].is_active))
			*ret_name = process_get()->undo.entries[i].name;
	return output;
}

/* The temporary name of replace_old(); the output's copy is freed with it. */
static char new_files_name[64];

/* Open and write an output that will replace an old file. */
static struct output *replace_old(const char *path)
{
	struct output *output;
	const char *name;

	captured_messages_reset(true);
	write_file(path, "old", 3);
	output = open_named(path, &name);
	snprintf(new_files_name, sizeof new_files_name, "%s", name);
	write_data(output);
	return output;
}

static void foreign_temp_file_is_not_published(void **state)
{
	const char *path = fixture_path("f"), *temp_name = new_files_name;
	struct output *output = replace_old(path);

	(void)state;
	write_file(fixture_path("foreign"), "foreign", 7);
	assert_int_equal(rename(fixture_path("foreign"), fixture_path(temp_name)), 0);
	assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), temp_name));
	assert_true(file_contains(path, "old", 3));
	assert_true(file_contains(fixture_path(temp_name), "foreign", 7));
	unlink(fixture_path(temp_name));
}

static void resized_temp_file_is_not_published(void **state)
{
	static const off_t sizes[] = { 0, N - 1, N + 1 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const char *path = fixture_path("f");
		struct output *output = replace_old(path);

		assert_int_equal(output_complete(output, OUTPUT_UNSYNCED), 0);
		assert_int_equal(truncate(fixture_path(new_files_name), sizes[i]), 0);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
		assert_non_null(strstr(captured_messages_error(), "changed by another process"));
		assert_true(file_contains(path, "old", 3));
		assert_int_equal(count_directory_entries(), 1);
	}
}

static char new_files_path[128];

/* Overwrite until the time of change differs: a tick of the system's clock. */
static void overwrite_the_new_file(void)
{
	const int fd = open(new_files_path, O_WRONLY | O_CLOEXEC);
	struct stat before, now;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &before), 0);
	do {
		assert_int_equal(pwrite(fd, "Z", 1, N / 2), 1);
		/* Any program can restore the time of modification. */
		assert_int_equal(
			futimens(fd, (struct timespec[]){ before.st_atim, before.st_mtim }), 0);
		assert_int_equal(fstat(fd, &now), 0);
	} while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	close(fd);
}

static void overwrite_at_first_fsync(void)
{
	faults.on_fsync = NULL;
	overwrite_the_new_file();
}

/* moment: 0 before output_complete(), 1 during its sync, 2 after it. */
static int commit_overwritten(struct output *output, int moment)
{
	struct stat status;
	int r;

	assert_int_equal(output_finalize(output, &status), 0);
	if (moment == 0)
		overwrite_the_new_file();
	if (moment == 1)
		faults.on_fsync = overwrite_at_first_fsync;
	r = output_complete(output, OUTPUT_SYNC_DATA);
	if (moment == 2)
		overwrite_the_new_file();
	if (r == 0)
		return output_commit(output, OUTPUT_SYNC_DATA);
	output_abort(output);
	return r;
}

static void overwritten_temp_file_is_not_published(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		const char *path = fixture_path("f"), *name;
		const bool has_old = i & 1;
		struct output *output;

		captured_messages_reset(true);
		if (has_old)
			write_file(path, "old", 3);
		output = open_named(path, &name);
		snprintf(new_files_path, sizeof new_files_path, "%s", fixture_path(name));
		write_data(output);
		assert_int_equal(commit_overwritten(output, i / 2), -EBUSY);
		assert_non_null(strstr(captured_messages_error(), "changed by another process"));
		assert_true(file_contains(path, "old", 3) == has_old);
		unlink(path);
		assert_int_equal(count_directory_entries(), 0);
	}
}

/* Setting attributes is not taken for a change by others. */
static void unmodified_temp_file_is_published(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *path = fixture_path("f");
		struct output *output;
		struct stat status;

		write_file(path, "", 0);
		assert_int_equal(chmod(path, 0640), 0);
		output = replace_old(path);
		if (i & 1)
			assert_int_equal(output_finalize(output, &status), 0);
		assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), 0);
		assert_true(file_contains(path, output_bytes, N));
		unlink(path);
	}
}

static void removed_temp_file_is_reported(void **state)
{
	const char *path = fixture_path("f");
	struct output *output = replace_old(path);
	char named[80];

	(void)state;
	snprintf(named, sizeof named, "the new file, %s,", new_files_name);
	unlink(fixture_path(new_files_name));
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -ENOENT);
	assert_non_null(strstr(captured_messages_error(), named));
	assert_non_null(strstr(captured_messages_error(), "removed by another process"));
	assert_true(file_contains(path, "old", 3));
	assert_int_equal(count_directory_entries(), 1);
}

/* Change the path of an output before its commit. */
static void assert_refused_after(void (*change)(void), const char *path)
{
	struct output *output;

	captured_messages_reset(true);
	output = open_output(path, N);
	write_data(output);
	change();
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), path));
}

static void turn_link(void)
{
	unlink(fixture_path("link"));
	assert_int_equal(symlink(fixture_path("other"), fixture_path("link")), 0);
}

static void remove_link(void)
{
	unlink(fixture_path("link"));
}

static void move_directory(void)
{
	assert_int_equal(rename(fixture_path("d"), fixture_path("e")), 0);
}

static void remake_directory(void)
{
	move_directory();
	assert_int_equal(mkdir(fixture_path("d"), 0777), 0);
}

static void retargeted_dangling_link_is_not_followed(void **state)
{
	void (*const changes[])(void) = { turn_link, remove_link };

	(void)state;
	for (int nameless = 0; nameless < 2; nameless++)
		for (int i = 0; i < 2; i++) {
			faults.rejects_tmpfile = !nameless;
			assert_int_equal(symlink(fixture_path("new"), fixture_path("link")), 0);
			assert_refused_after(changes[i], fixture_path("link"));
			assert_int_not_equal(access(fixture_path("new"), F_OK), 0);
			unlink(fixture_path("link"));
			assert_int_equal(count_directory_entries(), 0);
		}
}

static void moved_directory_is_refused(void **state)
{
	void (*const changes[])(void) = { move_directory, remake_directory };

	(void)state;
	for (int has_old = 0; has_old < 2; has_old++)
		for (int i = 0; i < 2; i++) {
			assert_int_equal(mkdir(fixture_path("d"), 0777), 0);
			if (has_old)
				write_file(fixture_path("d/f"), "old", 3);
			assert_refused_after(changes[i], fixture_path("d/f"));
			assert_true(file_contains(fixture_path("e/f"), "old", 3) == has_old);
			unlink(fixture_path("e/f"));
			assert_int_equal(rmdir(fixture_path("e")), 0);
			rmdir(fixture_path("d"));
		}
}

static void equivalent_path_by_other_links_is_accepted(void **state)
{
	struct output *output;

	(void)state;
	assert_int_equal(mkdir(fixture_path("d"), 0777), 0);
	assert_int_equal(symlink("d", fixture_path("link")), 0);
	output = open_output(fixture_path("link/f"), N);
	write_data(output);
	unlink(fixture_path("link"));
	assert_int_equal(symlink(fixture_path("d"), fixture_path("link")), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(fixture_path("d/f"), output_bytes, N));
	unlink(fixture_path("d/f"));
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)

static const struct CMUnitTest tests[] = {
	FIXTURE(foreign_temp_file_is_not_published),
	FIXTURE(resized_temp_file_is_not_published),
	FIXTURE(overwritten_temp_file_is_not_published),
	FIXTURE(unmodified_temp_file_is_published),
	FIXTURE(removed_temp_file_is_reported),
	FIXTURE(retargeted_dangling_link_is_not_followed),
	FIXTURE(moved_directory_is_refused),
	FIXTURE(equivalent_path_by_other_links_is_accepted),
};

UNIT_TESTS(target_snapshot, tests, fill_output_bytes, NULL)
