/*
 * test_orphans - what a killed process has left is named, what a living one works on is not
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "io/output/orphans.h"
#include "tests/support/output_fixture.h"

/* A process that has begun something with the file of that name, and waits to be killed. */
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
	output_write_at(open_output(path_of(name), N), 0, output_bytes, N);
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

/* The name of the one hidden file, made part of a message. */
static const char *hidden_name(void)
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

static void file_of_a_killed_process_is_named_at_the_next_start(void **state)
{
	const char *name;
	struct stat status;
	char written[64];
	pid_t child;

	(void)state;
	faults.refuses_nameless = true;
	child = begin_output();
	name = hidden_name();
	kill_outright(child);
	assert_int_equal(stat(path_of(name), &status), 0);
	assert_int_equal(count_names(), 1);
	output_abort(open_output(path_of("g"), N));
	assert_non_null(strstr(messages_last_warning(), name));
	assert_non_null(strstr(messages_last_warning(), path_of("g")));
	assert_non_null(strstr(messages_last_warning(), "remove it"));
	strftime(written, sizeof written, "killed after %Y-%m-%d %H:%M UTC, while it wrote this or",
		 gmtime(&status.st_mtime));
	assert_non_null(strstr(messages_last_warning(), written));
	assert_int_equal(count_names(), 1);
}

static void file_that_somebody_works_on_is_not_named(void **state)
{
	pid_t child;

	(void)state;
	faults.refuses_nameless = true;
	child = begin_output();
	output_abort(open_output(path_of("g"), N));
	kill_outright(child);
	assert_string_equal(messages_last_warning(), "");
}

static int look_then_rename(int from, const char *name, int to, const char *as)
{
	const struct file directory = { .calls = &faulty_calls, .fd = from };

	leftovers_tell(&directory, "here");
	return renameat(from, name, to, as);
}

/* Also when it is closed already, and has a name for the moment only. */
static void file_that_is_about_to_be_renamed_is_not_named(void **state)
{
	struct syscalls calls = faulty_calls;

	(void)state;
	calls.renameat = look_then_rename;
	for (int nameless = 0; nameless < 2; nameless++) {
		struct output *output;

		faults.refuses_nameless = !nameless;
		assert_int_equal(output_open(&calls, path_of("f"), N, &output), 0);
		assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
		assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
		assert_string_equal(messages_last_warning(), "");
		assert_true(file_holds(path_of("f"), output_bytes, N));
	}
}

static int be_killed(int from, const char *name, int to, const char *as)
{
	(void)from, (void)name, (void)to, (void)as;
	raise(SIGKILL);
	return -1;
}

/* What has no name while it is written has one before the rename. */
static void file_of_who_was_killed_at_the_rename_is_named_at_the_next_start(void **state)
{
	struct syscalls calls = faulty_calls;
	struct output *output;
	const char *name;
	pid_t child;

	(void)state;
	calls.renameat = be_killed;
	write_file(path_of("f"), "older", 5);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		output_open(&calls, path_of("f"), N, &output);
		output_write_at(output, 0, output_bytes, N);
		_exit(output_commit(output, OUTPUT_UNSYNCED));
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(file_holds(path_of("f"), "older", 5));
	name = hidden_name();
	assert_true(file_holds(path_of(name), output_bytes, N));
	output = open_output(path_of("f"), N);
	assert_non_null(strstr(messages_last_warning(), name));
	assert_non_null(strstr(messages_last_warning(), "remove it"));
	/* And it is not in the way. */
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_holds(path_of("f"), output_bytes, N));
	assert_int_equal(count_names(), 2);
}

static void file_that_was_only_just_made_is_not_named(void **state)
{
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[LEFTOVERS_NAME_SIZE];

	(void)state;
	leftovers_make_name(NULL, name);
	write_file(path_of(name), "", 0);
	leftovers_tell(&directory, "here");
	assert_string_equal(messages_last_warning(), "");
	write_file(path_of(name), output_bytes, 1);
	leftovers_tell(&directory, "here");
	assert_non_null(strstr(messages_last_warning(), name));
	close(directory.fd);
}

/* As many as a sort into part files leaves. */
static void of_many_the_first_are_told_and_then_their_sum(void **state)
{
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[LEFTOVERS_NAME_SIZE];

	(void)state;
	for (int i = 0; i < 3; i++) {
		leftovers_make_name(NULL, name);
		write_file(path_of(name), output_bytes, 1);
	}
	leftovers_tell(&directory, "here");
	assert_non_null(strstr(messages_last_warning(), " was left by a gsort"));
	for (int i = 0; i < 4; i++) {
		leftovers_make_name(NULL, name);
		write_file(path_of(name), output_bytes, 1);
	}
	leftovers_tell(&directory, "here");
	assert_non_null(strstr(messages_last_warning(), "here: 4 more such files are beside it"));
	close(directory.fd);
}

/* As whoever works on it does. */
static void open_and_hold(const char *name)
{
	const struct file file = { .calls = &faulty_calls, .fd = open(path_of(name), O_RDWR) };

	leftovers_hold(&file);
}

static bool is_there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

/* Killed before it had written anything, and long before this one. */
static void owner_removes_what_it_has_left(void **state)
{
	static const struct leftovers_owner owner = { "0123456789abcdef" };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[LEFTOVERS_NAME_SIZE];

	(void)state;
	for (int i = 0; i < 2; i++) {
		leftovers_make_name(&owner, name);
		assert_true(leftovers_is_name(name));
		write_file(path_of(name), output_bytes, i ? N : 0);
	}
	assert_int_equal(count_names(), 2);
	leftovers_remove(&directory, &owner);
	assert_int_equal(count_names(), 0);
	close(directory.fd);
}

static void owner_removes_nothing_of_others(void **state)
{
	static const struct leftovers_owner owner = { "0123456789abcdef" },
					    other = { "0123456789abcdee" }, nobody = { "" };
	const struct leftovers_owner *const others[] = { &other, &nobody, NULL };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[LEFTOVERS_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		leftovers_make_name(others[i], name);
		write_file(path_of(name), output_bytes, N);
		leftovers_remove(&directory, &owner);
		leftovers_tell(&directory, "here");
		assert_true(is_there(name));
		assert_non_null(strstr(messages_last_warning(), name));
		unlink(path_of(name));
	}
	/* Who is nobody has nothing, whatever is called as if it had no owner. */
	leftovers_make_name(&owner, name);
	write_file(path_of(name), output_bytes, N);
	leftovers_remove(&directory, &nobody);
	assert_true(is_there(name));
	unlink(path_of(name));
	leftovers_make_name(&owner, name);
	assert_int_equal(symlink("f", path_of(name)), 0);
	leftovers_remove(&directory, &owner);
	assert_int_equal(count_names(), 1);
	close(directory.fd);
}

static void owner_removes_nothing_that_somebody_works_on(void **state)
{
	static const struct leftovers_owner owner = { "0123456789abcdef" };
	const struct file directory = { .calls = &faulty_calls,
					.fd = open(fixture_directory, O_PATH) };
	char name[LEFTOVERS_NAME_SIZE];
	pid_t child;

	(void)state;
	leftovers_make_name(&owner, name);
	write_file(path_of(name), output_bytes, N);
	child = begin_process(open_and_hold, name);
	leftovers_remove(&directory, &owner);
	assert_true(is_there(name));
	kill_outright(child);
	leftovers_remove(&directory, &owner);
	assert_false(is_there(name));
	close(directory.fd);
}

/* Another's, or that of a checkpoint, which waits to be taken up. */
static void other_hidden_files_are_not_named(void **state)
{
	static const char *const names[] = { ".gsort-0123456789abcdef", ".gsort-temp-",
					     ".gsort-temp-0123456789abcdef0",
					     ".gsort-temp-0123456789abcdefg123456789abcdef",
					     ".hidden" };

	(void)state;
	faults.refuses_nameless = true;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		write_file(path_of(names[i]), output_bytes, N);
	assert_int_equal(symlink("f", path_of(".gsort-temp-0123456789abcdef")), 0);
	assert_int_equal(mkfifo(path_of(".gsort-temp-0123456789abcdee"), 0600), 0);
	output_abort(open_output(path_of("g"), N));
	assert_string_equal(messages_last_warning(), "");
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(file_of_a_killed_process_is_named_at_the_next_start),
		FIXTURE(file_that_somebody_works_on_is_not_named),
		FIXTURE(file_that_is_about_to_be_renamed_is_not_named),
		FIXTURE(file_of_who_was_killed_at_the_rename_is_named_at_the_next_start),
		FIXTURE(file_that_was_only_just_made_is_not_named),
		FIXTURE(of_many_the_first_are_told_and_then_their_sum),
		FIXTURE(owner_removes_what_it_has_left),
		FIXTURE(owner_removes_nothing_of_others),
		FIXTURE(owner_removes_nothing_that_somebody_works_on),
		FIXTURE(other_hidden_files_are_not_named),
	};

	fill_pattern(output_bytes, sizeof output_bytes, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
