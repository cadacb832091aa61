/*
 * test_orphans.c - files of killed processes are reported, files in use are not
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "io/output/orphans.h"
#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

/* Start a process that calls begin(name) and waits to be killed. */
static pid_t begin_process(void (*begin)(const char *name), const char *name)
{
	int done[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(done), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		begin(name);
		close(done[1]);
		for (;;)
			pause();
	}
	close(done[1]);
	assert_int_equal(read(done[0], &byte, 1), 0);
	close(done[0]);
	return child;
}

static void write_output(const char *name)
{
	output_write_at(open_output(fixture_path(name), N), 0, output_bytes, N);
}

static pid_t begin_output(void)
{
	return begin_process(write_output, "f");
}

static void kill_outright(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The name of the hidden file. */
static const char *temp_file_name(void)
{
	static char name[256];
	DIR *directory = opendir(fixture_directory);
	const struct dirent *entry;

	name[0] = '\0';
	while ((entry = readdir(directory)))
		if (strncmp(entry->d_name, ".gsort-", 7) == 0)
			strcpy(name, entry->d_name);
	closedir(directory);
	return name;
}

DIRECTORY_TEST(orphan_is_reported_at_the_next_start)
{
	const char *name;
	struct stat status;
	char written[64];
	pid_t child;

	faults.rejects_tmpfile = true;
	child = begin_output();
	name = temp_file_name();
	kill_outright(child);
	assert_int_equal(stat(fixture_path(name), &status), 0);
	assert_int_equal(count_directory_entries(), 1);
	output_abort(open_output(fixture_path("g"), N));
	assert_non_null(strstr(captured_messages_warning(), name));
	assert_non_null(strstr(captured_messages_warning(), fixture_path("g")));
	assert_non_null(strstr(captured_messages_warning(), "remove it"));
	strftime(written, sizeof written, "killed after %Y-%m-%d %H:%M UTC while it wrote this or",
		 gmtime(&status.st_mtime));
	assert_non_null(strstr(captured_messages_warning(), written));
	assert_int_equal(count_directory_entries(), 1);
}

/* Also if the next output needs no temporary name. */
DIRECTORY_TEST(orphan_is_reported_by_an_unnamed_file)
{
	const char *name;
	pid_t child;

	faults.rejects_tmpfile = true;
	child = begin_output();
	name = temp_file_name();
	kill_outright(child);
	faults.rejects_tmpfile = false;
	output_abort(open_output(fixture_path("g"), N));
	assert_non_null(strstr(captured_messages_warning(), name));
	assert_int_equal(count_directory_entries(), 1);
}

static void warn_among(uint64_t max_entries)
{
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };

	orphans_warn(&directory, "here", NULL, max_entries);
	close(directory.fd);
}

DIRECTORY_TEST(large_directory_is_not_read_to_its_end)
{
	char name[TEMP_NAME_SIZE];

	for (int i = 0; i < 3; i++) {
		orphans_make_temp_name(NULL, name);
		write_file(fixture_path(name), output_bytes, 1);
	}
	warn_among(0);
	assert_string_equal(captured_messages_warning(), "");
	warn_among(3);
	assert_non_null(strstr(captured_messages_warning(), ".gsort-temp-"));
}

DIRECTORY_TEST(orphan_of_another_user_is_not_reported)
{
	char name[TEMP_NAME_SIZE];

	if (geteuid() != 0)
		skip();
	orphans_make_temp_name(NULL, name);
	write_file(fixture_path(name), output_bytes, 1);
	assert_int_equal(chown(fixture_path(name), 12345, -1), 0);
	warn_among(UINT64_MAX);
	assert_string_equal(captured_messages_warning(), "");
}

DIRECTORY_TEST(locked_temp_file_is_not_reported)
{
	pid_t child;

	faults.rejects_tmpfile = true;
	child = begin_output();
	output_abort(open_output(fixture_path("g"), N));
	kill_outright(child);
	assert_string_equal(captured_messages_warning(), "");
}

static int probe_then_rename(int from, const char *name, int to, const char *as)
{
	const struct file directory = { .calls = &faulty_calls, .fd = from };

	orphans_warn(&directory, "here", NULL, UINT64_MAX);
	return renameat(from, name, to, as);
}

/* Also when the file is closed already, or has a name only for the rename. */
DIRECTORY_TEST(temp_file_in_rename_is_not_reported)
{
	struct syscalls calls = faulty_calls;

	calls.renameat = probe_then_rename;
	for (int nameless = 0; nameless < 2; nameless++) {
		struct output *output;

		faults.rejects_tmpfile = !nameless;
		assert_int_equal(output_open(&calls, fixture_path("f"), N, &output), 0);
		assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
		assert_string_equal(captured_messages_warning(), "");
		assert_true(file_contains(fixture_path("f"), output_bytes, N));
	}
}

static int be_killed(int from, const char *name, int to, const char *as)
{
	(void)from, (void)name, (void)to, (void)as;
	raise(SIGKILL);
	return -1;
}

/* An unnamed file has a temporary name before the rename. */
DIRECTORY_TEST(orphan_of_a_killed_rename_is_reported)
{
	struct syscalls calls = faulty_calls;
	struct output *output;
	const char *name;
	pid_t child;

	calls.renameat = be_killed;
	write_file(fixture_path("f"), "older", 5);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		output_open(&calls, fixture_path("f"), N, &output);
		output_write_at(output, 0, output_bytes, N);
		_exit(output_commit(output, OUTPUT_UNSYNCED));
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(file_contains(fixture_path("f"), "older", 5));
	name = temp_file_name();
	assert_true(file_contains(fixture_path(name), output_bytes, N));
	output = open_output(fixture_path("f"), N);
	assert_non_null(strstr(captured_messages_warning(), name));
	assert_non_null(strstr(captured_messages_warning(), "remove it"));
	/* It does not disturb the next output. */
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(fixture_path("f"), output_bytes, N));
	assert_int_equal(count_directory_entries(), 2);
}

DIRECTORY_TEST(new_temp_file_is_not_reported)
{
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[TEMP_NAME_SIZE];

	orphans_make_temp_name(NULL, name);
	write_file(fixture_path(name), "", 0);
	orphans_warn(&directory, "here", NULL, UINT64_MAX);
	assert_string_equal(captured_messages_warning(), "");
	write_file(fixture_path(name), output_bytes, 1);
	orphans_warn(&directory, "here", NULL, UINT64_MAX);
	assert_non_null(strstr(captured_messages_warning(), name));
	close(directory.fd);
}

DIRECTORY_TEST(many_orphans_are_summarised)
{
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[TEMP_NAME_SIZE];

	for (int i = 0; i < 3; i++) {
		orphans_make_temp_name(NULL, name);
		write_file(fixture_path(name), output_bytes, 1);
	}
	orphans_warn(&directory, "here", NULL, UINT64_MAX);
	assert_non_null(strstr(captured_messages_warning(), " was left by a gsort"));
	for (int i = 0; i < 4; i++) {
		orphans_make_temp_name(NULL, name);
		write_file(fixture_path(name), output_bytes, 1);
	}
	orphans_warn(&directory, "here", NULL, UINT64_MAX);
	assert_non_null(strstr(captured_messages_warning(), "here: 4 more such files in the same"));
	close(directory.fd);
}

static void open_and_lock(const char *name)
{
	struct file file = { .calls = &faulty_calls, .fd = open(fixture_path(name), O_RDWR) };

	if (file.fd < 0) /* a directory */
		file.fd = open(fixture_path(name), O_RDONLY);
	orphans_lock(&file);
}

static bool file_exists(const char *name)
{
	return access(fixture_path(name), F_OK) == 0;
}

/* Empty or not. */
DIRECTORY_TEST(owner_removes_its_orphans)
{
	static const struct orphan_owner owner = { "0123456789abcdef" };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[TEMP_NAME_SIZE];

	for (int i = 0; i < 2; i++) {
		orphans_make_temp_name(&owner, name);
		assert_true(orphans_is_temp_name(name));
		write_file(fixture_path(name), output_bytes, i ? N : 0);
	}
	assert_int_equal(count_directory_entries(), 2);
	orphans_remove(&directory, &owner);
	assert_int_equal(count_directory_entries(), 0);
	close(directory.fd);
}

DIRECTORY_TEST(owner_keeps_files_of_others)
{
	static const struct orphan_owner owner = { "0123456789abcdef" },
					 other = { "0123456789abcdee" }, nobody = { "" };
	const struct orphan_owner *const others[] = { &other, &nobody, NULL };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[TEMP_NAME_SIZE];

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		orphans_make_temp_name(others[i], name);
		write_file(fixture_path(name), output_bytes, N);
		orphans_remove(&directory, &owner);
		orphans_warn(&directory, "here", NULL, UINT64_MAX);
		assert_true(file_exists(name));
		assert_non_null(strstr(captured_messages_warning(), name));
		unlink(fixture_path(name));
	}
	/* Without an owner nothing is removed. */
	orphans_make_temp_name(&owner, name);
	write_file(fixture_path(name), output_bytes, N);
	orphans_remove(&directory, &nobody);
	assert_true(file_exists(name));
	unlink(fixture_path(name));
	orphans_make_temp_name(&owner, name);
	assert_int_equal(symlink("f", fixture_path(name)), 0);
	orphans_remove(&directory, &owner);
	assert_int_equal(count_directory_entries(), 1);
	close(directory.fd);
}

DIRECTORY_TEST(owner_keeps_locked_files_and_directories)
{
	static const struct orphan_owner owner = { "0123456789abcdef" };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[TEMP_NAME_SIZE];
	pid_t child;

	for (int is_directory = 0; is_directory < 2; is_directory++) {
		orphans_make_temp_name(&owner, name);
		if (is_directory)
			assert_int_equal(mkdir(fixture_path(name), 0700), 0);
		else
			write_file(fixture_path(name), output_bytes, N);
		child = begin_process(open_and_lock, name);
		orphans_remove(&directory, &owner);
		assert_true(file_exists(name));
		kill_outright(child);
		orphans_remove(&directory, &owner);
		assert_false(file_exists(name));
	}
	close(directory.fd);
}

/* Such as the files of a checkpoint. */
DIRECTORY_TEST(other_hidden_files_are_not_reported)
{
	static const char *const names[] = { ".gsort-0123456789abcdef", ".gsort-temp-",
					     ".gsort-temp-0123456789abcdef0",
					     ".gsort-temp-0123456789abcdefg123456789abcdef",
					     ".hidden" };

	faults.rejects_tmpfile = true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		write_file(fixture_path(names[i]), output_bytes, N);
	assert_int_equal(symlink("f", fixture_path(".gsort-temp-0123456789abcdef")), 0);
	assert_int_equal(mkfifo(fixture_path(".gsort-temp-0123456789abcdee"), 0600), 0);
	output_abort(open_output(fixture_path("g"), N));
	assert_string_equal(captured_messages_warning(), "");
}

GROUP_FIXTURE(fill_output_bytes, NULL)
