/*
 * test_target_check - nobody who changes names meanwhile gets his file for the output's, or loses it
 */
#include "io/output/temp_names.h"
#include "tests/support/output_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

static void write_data(struct output *output)
{
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
}

/* An output whose new file has the name from the start, as a checkpoint's has. */
static struct output *open_kept_output(const char *path, const char *name)
{
	const struct output_kept kept = { .name = name };
	struct output *output;

	assert_int_equal(output_open_kept(&faulty_calls, path, N, &kept, &output), 0);
	return output;
}

/* An output whose new file has a name: kept or hidden. */
static struct output *open_named(bool is_kept, const char *path, const char **ret_name)
{
	struct output *output;

	faults.refuses_nameless = true;
	*ret_name = "kept"; /* unless it is the hidden one */
	if (is_kept)
		return open_kept_output(path, "kept");
	output = open_output(path, N);
	for (size_t i = 0; i < HIDDEN_NAMES_MOST; i++)
		if (atomic_load(&process_lent()->names.all[i].live))
			*ret_name = process_lent()->names.all[i].name;
	return output;
}

/* The name that the new file of replace_old() had; the output's own goes with it. */
static char new_files_name[64];

/* What is to take the place of `path`, which is old, and has been written. */
static struct output *replace_old(bool is_kept, const char *path)
{
	struct output *output;
	const char *name;

	messages_reset(true);
	write_file(path, "old", 3);
	output = open_named(is_kept, path, &name);
	snprintf(new_files_name, sizeof new_files_name, "%s", name);
	write_data(output);
	return output;
}

static void what_took_the_new_files_name_does_not_become_the_output(void **state)
{
	(void)state;
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		const char *path = path_of("f"), *hidden = new_files_name;
		struct output *output = replace_old(is_kept, path);

		write_file(path_of("foreign"), "foreign", 7);
		assert_int_equal(rename(path_of("foreign"), path_of(hidden)), 0);
		assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), -EBUSY);
		assert_non_null(strstr(messages_last(), hidden));
		assert_true(file_holds(path, "old", 3));
		assert_true(file_holds(path_of(hidden), "foreign", 7));
		unlink(path_of(hidden));
	}
}

static void new_file_of_another_size_does_not_become_the_output(void **state)
{
	static const off_t sizes[] = { 0, N - 1, N + 1 };

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		const char *path = path_of("f");
		struct output *output = replace_old(i % 2, path);

		assert_int_equal(output_complete(output, OUTPUT_UNSYNCED), 0);
		assert_int_equal(truncate(path_of(new_files_name), sizes[i / 2]), 0);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
		assert_non_null(strstr(messages_last(), "somebody else has changed it"));
		assert_true(file_holds(path, "old", 3));
		unlink(path_of("kept"));
		assert_int_equal(count_names(), 1);
	}
}

static char new_files_path[128];

/* As long as it takes until the time of change is another one: a tick of the system's clock. */
static void overwrite_the_new_file(void)
{
	const int fd = open(new_files_path, O_WRONLY | O_CLOEXEC);
	struct stat before, now;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &before), 0);
	do {
		assert_int_equal(pwrite(fd, "Z", 1, N / 2), 1);
		/* Any program can set that back. */
		assert_int_equal(
			futimens(fd, (struct timespec[]){ before.st_atim, before.st_mtim }), 0);
		assert_int_equal(fstat(fd, &now), 0);
	} while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	close(fd);
}

static void overwrite_at_first_fsync(void)
{
	faults.at_fsync = NULL;
	overwrite_the_new_file();
}

/* moment: before the file is complete; while it waits for the disk; when it is complete. */
static int commit_overwritten(struct output *output, int moment)
{
	struct stat status;
	int r;

	assert_int_equal(output_settle(output, &status), 0);
	if (moment == 0)
		overwrite_the_new_file();
	if (moment == 1)
		faults.at_fsync = overwrite_at_first_fsync;
	r = output_complete(output, OUTPUT_SYNC_DATA);
	if (moment == 2)
		overwrite_the_new_file();
	if (r == 0)
		return output_commit(output, OUTPUT_SYNC_DATA);
	output_abort(output);
	return r;
}

static void new_file_overwritten_behind_the_last_write_does_not_become_the_output(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		const char *path = path_of("f"), *name;
		const bool is_kept = i & 1, has_old = i & 2;
		struct output *output;

		messages_reset(true);
		if (has_old)
			write_file(path, "old", 3);
		output = open_named(is_kept, path, &name);
		snprintf(new_files_path, sizeof new_files_path, "%s", path_of(name));
		write_data(output);
		assert_int_equal(commit_overwritten(output, i / 4), -EBUSY);
		assert_non_null(strstr(messages_last(), "somebody else has changed it"));
		assert_true(file_holds(path, "old", 3) == has_old);
		unlink(path_of("kept"));
		unlink(path);
		assert_int_equal(count_names(), 0);
	}
}

/* What gsort itself does to it at the end is no change by others. */
static void new_file_that_nobody_changed_becomes_the_output(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const char *path = path_of("f");
		struct output *output;
		struct stat status;

		write_file(path, "", 0);
		assert_int_equal(chmod(path, 0640), 0);
		output = replace_old(i & 1, path);
		if (i & 2)
			assert_int_equal(output_settle(output, &status), 0);
		assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), 0);
		assert_true(file_holds(path, output_bytes, N));
		unlink(path);
	}
}

static void new_file_that_was_removed_is_named(void **state)
{
	(void)state;
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		const char *path = path_of("f");
		struct output *output = replace_old(is_kept, path);
		char named[80];

		snprintf(named, sizeof named, "%s beside it", new_files_name);
		unlink(path_of(new_files_name));
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -ENOENT);
		assert_non_null(strstr(messages_last(), named));
		assert_non_null(strstr(messages_last(), "somebody else has removed it"));
		assert_true(file_holds(path, "old", 3));
		assert_int_equal(count_names(), 1);
	}
}

/* An output by `path`, which then is no way there any more. */
static void assert_refused_after(void (*change)(void), const char *path)
{
	struct output *output;

	messages_reset(true);
	output = open_output(path, N);
	write_data(output);
	change();
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -EBUSY);
	assert_non_null(strstr(messages_last(), path));
}

static void turn_link(void)
{
	unlink(path_of("link"));
	assert_int_equal(symlink(path_of("other"), path_of("link")), 0);
}

static void remove_link(void)
{
	unlink(path_of("link"));
}

static void move_directory(void)
{
	assert_int_equal(rename(path_of("d"), path_of("e")), 0);
}

static void remake_directory(void)
{
	move_directory();
	assert_int_equal(mkdir(path_of("d"), 0777), 0);
}

static void link_to_nothing_that_was_turned_is_not_followed(void **state)
{
	void (*const changes[])(void) = { turn_link, remove_link };

	(void)state;
	for (int nameless = 0; nameless < 2; nameless++)
		for (int i = 0; i < 2; i++) {
			faults.refuses_nameless = !nameless;
			assert_int_equal(symlink(path_of("new"), path_of("link")), 0);
			assert_refused_after(changes[i], path_of("link"));
			assert_int_not_equal(access(path_of("new"), F_OK), 0);
			unlink(path_of("link"));
			assert_int_equal(count_names(), 0);
		}
}

static void directory_that_was_moved_is_not_the_outputs_any_more(void **state)
{
	void (*const changes[])(void) = { move_directory, remake_directory };

	(void)state;
	for (int has_old = 0; has_old < 2; has_old++)
		for (int i = 0; i < 2; i++) {
			assert_int_equal(mkdir(path_of("d"), 0777), 0);
			if (has_old)
				write_file(path_of("d/f"), "old", 3);
			assert_refused_after(changes[i], path_of("d/f"));
			assert_true(file_holds(path_of("e/f"), "old", 3) == has_old);
			unlink(path_of("e/f"));
			assert_int_equal(rmdir(path_of("e")), 0);
			rmdir(path_of("d"));
		}
}

/* Another spelling of the same way is no other way. */
static void same_way_by_other_links_is_taken(void **state)
{
	struct output *output;

	(void)state;
	assert_int_equal(mkdir(path_of("d"), 0777), 0);
	assert_int_equal(symlink("d", path_of("link")), 0);
	output = open_output(path_of("link/f"), N);
	write_data(output);
	unlink(path_of("link"));
	assert_int_equal(symlink(path_of("d"), path_of("link")), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_holds(path_of("d/f"), output_bytes, N));
	unlink(path_of("d/f"));
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(what_took_the_new_files_name_does_not_become_the_output),
		FIXTURE(new_file_of_another_size_does_not_become_the_output),
		FIXTURE(new_file_overwritten_behind_the_last_write_does_not_become_the_output),
		FIXTURE(new_file_that_nobody_changed_becomes_the_output),
		FIXTURE(new_file_that_was_removed_is_named),
		FIXTURE(link_to_nothing_that_was_turned_is_not_followed),
		FIXTURE(directory_that_was_moved_is_not_the_outputs_any_more),
		FIXTURE(same_way_by_other_links_is_taken),
	};

	fill_pattern(output_bytes, sizeof output_bytes, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
