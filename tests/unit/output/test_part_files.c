/*
 * test_part_files - files and their list appear together, or what was there before is there
 */
#include "io/output/part_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "tests/support/output_fixture.h"

enum { MAX_NAMES = 8 };

static struct syscalls calls;
static unsigned n_names, failing_name; /* renamed or linked; the one that fails, from 1; 0: none */
static bool fails_for_good, is_durable;
static bool has_no_memory; /* for names */

__attribute__((format(printf, 2, 3))) int __wrap_asprintf(char **ret_text, const char *format, ...);
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list arguments;
	int n;

	if (has_no_memory)
		return -1;
	va_start(arguments, format);
	n = vasprintf(ret_text, format, arguments);
	va_end(arguments);
	return n;
}

static bool fails(void)
{
	n_names++;
	if (!failing_name || n_names < failing_name || (n_names > failing_name && !fails_for_good))
		return false;
	errno = EIO;
	return true;
}

static int fail_renameat(int from, const char *name, int to, const char *as)
{
	return fails() ? -1 : renameat(from, name, to, as);
}

static void (*before_rename)(void); /* anything aside; once; or NULL */

static int fail_renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
	if (before_rename)
		before_rename();
	before_rename = NULL;
	return fails() ? -1 : renameat2(from, name, to, as, flags);
}

static int fail_linkat(int from, const char *name, int to, const char *as, int flags)
{
	return fails() ? -1 : linkat(from, name, to, as, flags);
}

static void (*before_manifest)(void); /* is written into the lock; once; or NULL */

static ssize_t notify_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (before_manifest && nbytes > 14 && memcmp(data, "{\"gsort_part_manifest\"", 14) == 0 &&
	    access(fixture_path(".x.parts.pending"), F_OK) == 0) {
		before_manifest();
		before_manifest = NULL;
	}
	return faulty_calls.pwrite(fd, data, nbytes, offset);
}

static void (*while_written)(void); /* or NULL */

static int start(void **state)
{
	fixture_start(state);
	calls = faulty_calls;
	calls.renameat = fail_renameat;
	calls.renameat2 = fail_renameat2;
	calls.linkat = fail_linkat;
	n_names = failing_name = 0;
	calls.pwrite = notify_pwrite;
	before_rename = before_manifest = while_written = NULL;
	fails_for_good = is_durable = has_no_memory = false;
	return 0;
}

/* A list that names parts x.0000 to n - 1. */
static void make_manifest(unsigned n, char text[static 1024])
{
	int at = sprintf(
		text, "{\"gsort_part_manifest\": 1, \"content\": \"records\", \"record_bytes\": 1,"
		      " \"header_bytes\": 0, \"keys\": [], \"records\": 0, \"part_files\": [");

	for (unsigned i = 0; i < n; i++)
		at += sprintf(
			text + at,
			"%s{\"number\": %u, \"name\": \"x.%04u\", \"records\": 0, \"bytes\": 2,"
			" \"checksum\": \"0123456789abcdef\"}",
			i ? ", " : "", i, i);
	strcpy(text + at, "]}");
}

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(fixture_path(name), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static const char *text_of(const char *name)
{
	static char text[1024];
	FILE *file = fopen(fixture_path(name), "r");

	text[0] = '\0';
	if (!file)
		return NULL;
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* Write parts that hold `letter` and their number, and a list; up to the commit, and that. */
static int write_parts(unsigned n, char letter)
{
	struct part_files *files;
	struct output *outputs[MAX_NAMES + 1];
	char list[1024], name[64];
	int r;

	strcpy(name, fixture_path("x"));
	r = part_files_open(&calls, name, n, &files);
	if (r < 0)
		return r;
	for (unsigned i = 0; i <= n; i++) {
		char text[] = { letter, (char)('0' + i), '\0' };
		const char *content = i < n ? text : list;

		make_manifest(n, list);
		assert_int_equal(output_open(&calls, part_files_path(files, i), OUTPUT_SIZE_UNKNOWN,
					     &outputs[i]),
				 0);
		assert_int_equal(output_write_at(outputs[i], 0, content, strlen(content)), 0);
		assert_int_equal(output_complete(outputs[i], OUTPUT_UNSYNCED), 0);
	}
	if (while_written)
		while_written();
	r = part_files_commit(files, outputs, list, is_durable);
	part_files_close(files);
	return r;
}

/* They are those of that letter, with a list of n, and there is nothing else. */
static void assert_parts(unsigned n, char letter)
{
	char list[1024], name[] = "x.0000", unknown[256] = "";
	unsigned n_found = 0;
	DIR *directory = opendir(fixture_directory);
	const struct dirent *entry;

	make_manifest(n, list);
	assert_string_equal(text_of("x.parts"), list);
	for (unsigned i = 0; i < n; i++) {
		const char text[] = { letter, (char)('0' + i), '\0' };

		name[5] = (char)('0' + i);
		assert_string_equal(text_of(name), text);
	}
	while ((entry = readdir(directory)))
		if (strncmp(entry->d_name, "x.", 2) == 0 || strncmp(entry->d_name, ".x", 2) == 0 ||
		    strncmp(entry->d_name, ".gsort", 6) == 0) {
			n_found++;
			strcpy(unknown, entry->d_name);
		}
	closedir(directory);
	if (n_found != n + 1)
		print_error("%u files, %s among them\n", n_found, unknown);
	assert_int_equal(n_found, n + 1);
}

static void clear(void)
{
	char name[] = "x.0000";

	for (unsigned i = 0; i < MAX_NAMES; i++) {
		name[5] = (char)('0' + i);
		unlink(fixture_path(name));
	}
	unlink(fixture_path("x.parts"));
}

static void fewer_parts_remove_the_old_ones(void **state)
{
	(void)state;
	assert_int_equal(write_parts(5, 'a'), 0);
	assert_parts(5, 'a');
	assert_int_equal(write_parts(2, 'b'), 0);
	assert_parts(2, 'b');
	assert_int_equal(write_parts(4, 'c'), 0);
	assert_parts(4, 'c');
}

static void failed_rename_restores_old_parts(void **state)
{
	unsigned nth = 1;
	int r = -1;

	(void)state;
	for (; r < 0; nth++) {
		clear();
		failing_name = 0;
		assert_int_equal(write_parts(4, 'a'), 0);
		n_names = 0;
		failing_name = nth;
		r = write_parts(3, 'b');
		if (r < 0)
			assert_parts(4, 'a');
	}
	assert_parts(3, 'b');
	/* List and four parts aside, then three parts and the list. */
	assert_true(nth > 9);
}

static void failed_first_commit_leaves_nothing(void **state)
{
	(void)state;
	for (failing_name = 1; failing_name <= 4; failing_name++) {
		n_names = 0;
		assert_true(write_parts(3, 'a') < 0);
		assert_null(text_of("x.0000"));
		assert_null(text_of("x.0002"));
		assert_null(text_of("x.parts"));
	}
}

static void commit_works_without_unnamed_files(void **state)
{
	(void)state;
	faults.rejects_tmpfile = true;
	assert_int_equal(write_parts(5, 'a'), 0);
	assert_int_equal(write_parts(2, 'b'), 0);
	assert_parts(2, 'b');
}

/* As a process leaves them that is killed in the middle: without a list, some moved aside. */
static void backups_of_a_killed_process_are_restored(void **state)
{
	char list[1024];

	(void)state;
	make_manifest(3, list);
	write_text(".x.parts.backup", list);
	write_text(".x.parts.pending", list);
	write_text(".x.0000.backup", "a0");
	write_text("x.0000", "b0");
	write_text("x.0001", "a1");
	write_text(".x.0002.backup", "a2");
	failing_name = 7; /* after three that are put back: so it is seen what there is */
	assert_true(write_parts(3, 'c') < 0);
	assert_parts(3, 'a');
	failing_name = 0;
	assert_int_equal(write_parts(2, 'c'), 0);
	assert_parts(2, 'c');
}

/* More of them than there were before, of which some have their names. */
static void new_parts_of_a_killed_process_are_removed(void **state)
{
	char list[1024];

	(void)state;
	for (int again = 0; again < 2; again++) {
		clear();
		make_manifest(2, list);
		write_text(".x.parts.backup", list);
		make_manifest(5, list);
		write_text(".x.parts.pending", list);
		write_text(".x.0000.backup", "a0");
		write_text("x.0000", "b0");
		write_text("x.0001", "a1");
		write_text("x.0002", "b2");
		write_text("x.0003", "b3");
		if (again) /* it is not one of the new ones either */
			write_text("x.0003", "somebody else's");
		captured_messages_reset(true);
		assert_int_equal(write_parts(2, 'c'), again ? -EEXIST : 0);
		if (!again)
			assert_string_equal(captured_messages_error(), "");
		if (again) {
			assert_string_equal(text_of("x.0003"), "somebody else's");
			assert_int_equal(unlink(fixture_path("x.0003")), 0);
		}
		assert_parts(2, again ? 'a' : 'c');
	}
}

static void new_parts_of_a_killed_first_commit_are_removed(void **state)
{
	char list[1024];

	(void)state;
	make_manifest(4, list);
	write_text(".x.parts.pending", list);
	write_text("x.0000", "b0");
	write_text("x.0001", "b1");
	assert_int_equal(write_parts(1, 'c'), 0);
	assert_parts(1, 'c');
	list[strlen(list) / 2] = '\0'; /* killed while it wrote that */
	write_text(".x.parts.pending", list);
	assert_int_equal(write_parts(1, 'd'), 0);
	assert_parts(1, 'd');
}

static void backups_of_a_complete_commit_are_removed(void **state)
{
	char list[1024];

	(void)state;
	assert_int_equal(write_parts(3, 'b'), 0);
	write_text(".x.0000.backup", "a0");
	write_text(".x.0007.backup", "a7");
	make_manifest(8, list);
	write_text(".x.parts.backup", list);
	make_manifest(3, list);
	write_text(".x.parts.pending", list);
	assert_int_equal(write_parts(3, 'c'), 0);
	assert_parts(3, 'c');
}

static int refused(unsigned n)
{
	captured_messages_reset(true);
	return write_parts(n, 'z');
}

static void unreadable_manifest_is_reported(void **state)
{
	(void)state;
	assert_int_equal(write_parts(3, 'a'), 0);
	faults.transfer_errno = EIO;
	assert_int_equal(refused(3), -EIO);
	assert_non_null(strstr(captured_messages_error(), "Input/output error"));
	faults.transfer_errno = 0;
	assert_parts(3, 'a');
}

static void names_without_memory_are_an_error(void **state)
{
	(void)state;
	has_no_memory = true;
	assert_int_equal(refused(3), -ENOMEM);
}

static void durable_parts_cause_no_message(void **state)
{
	(void)state;
	is_durable = true;
	captured_messages_reset(true);
	assert_int_equal(write_parts(3, 'a'), 0);
	assert_string_equal(captured_messages_error(), "");
	assert_parts(3, 'a');
}

static void file_with_the_name_of_a_part_is_refused(void **state)
{
	(void)state;
	assert_int_equal(write_parts(3, 'a'), 0);
	write_text("x.0005", "?");
	assert_int_equal(refused(3), -EEXIST);
	assert_non_null(
		strstr(captured_messages_error(), "x.0005 beside it is none of the 3 part files"));
	assert_int_equal(refused(6), -EEXIST);
	assert_non_null(strstr(captured_messages_error(), "no part manifest lists it"));
	assert_string_equal(text_of("x.0005"), "?");
	assert_int_equal(unlink(fixture_path("x.0005")), 0);
	write_text("x.0002", "of another size than the list says");
	assert_int_equal(refused(3), -EEXIST);
	assert_int_equal(refused(2), -EEXIST);
	clear();
	write_text("x.5", "?");
	write_text("x.00005", "?");
	write_text("y.0005", "?");
	assert_int_equal(refused(3), 0);
}

static void irreplaceable_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(fixture_path("x.0001"), 0700), 0);
	assert_int_equal(refused(3), -EISDIR);
	assert_int_equal(rmdir(fixture_path("x.0001")), 0);
	assert_int_equal(symlink("elsewhere", fixture_path("x.0001")), 0);
	assert_int_equal(refused(3), -EEXIST);
	assert_int_equal(unlink(fixture_path("x.0001")), 0);
	write_text("x.parts", "a list of mine");
	assert_int_equal(refused(3), -EEXIST);
	assert_non_null(strstr(captured_messages_error(), "no part manifest"));
	assert_string_equal(text_of("x.parts"), "a list of mine");
	write_text("x.parts", "{\"gsort_part_manifest\": 2}");
	assert_int_equal(refused(3), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "version 2"));
}

static void files_of_other_names_in_the_manifest_stay(void **state)
{
	(void)state;
	write_text("x.parts",
		   "{\"gsort_part_manifest\": 1, \"content\": \"records\", \"record_bytes\": 1,"
		   " \"header_bytes\": 0, \"keys\": [], \"records\": 0, "
		   "\"part_files\": [{\"number\": 0,"
		   " \"name\": \"precious\", \"records\": 0, \"bytes\": 2,"
		   " \"checksum\": \"0123456789abcdef\"}]}");
	write_text("precious", "!");
	assert_int_equal(write_parts(2, 'a'), 0);
	assert_string_equal(text_of("precious"), "!");
	assert_parts(2, 'a');
}

static void part_that_others_have_changed_is_not_replaced(void **state)
{
	struct part_files *files;
	struct output *outputs[2];
	char name[64];

	(void)state;
	assert_int_equal(write_parts(1, 'a'), 0);
	strcpy(name, fixture_path("x"));
	assert_int_equal(part_files_open(&calls, name, 1, &files), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(output_open(&calls, part_files_path(files, i), OUTPUT_SIZE_UNKNOWN,
					     &outputs[i]),
				 0);
		assert_int_equal(output_complete(outputs[i], OUTPUT_UNSYNCED), 0);
	}
	write_text("x.0000", "theirs");
	assert_int_equal(part_files_commit(files, outputs, "", false), -EBUSY);
	part_files_close(files);
	assert_string_equal(text_of("x.0000"), "theirs");
	assert_non_null(text_of("x.parts"));
}

/* Who comes while names are given: another process, or another thread. */
static pthread_t newcomer;

static void *begin_at_the_same_time(void *argument)
{
	static struct part_files *files;
	static char name[64];

	(void)argument;
	strcpy(name, fixture_path("x"));
	if (part_files_open(&faulty_calls, name, 2, &files) < 0)
		return NULL;
	part_files_close(files);
	return files;
}

static void start_second_process(void)
{
	const int fd = open(fixture_path(".x.parts.pending"), O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pthread_create(&newcomer, NULL, begin_at_the_same_time, NULL), 0);
}

/* For what a killed process has left it would take what is aside. */
static void open_waits_for_a_concurrent_commit(void **state)
{
	void *opened;

	(void)state;
	assert_int_equal(write_parts(3, 'a'), 0);
	before_rename = start_second_process;
	assert_int_equal(write_parts(2, 'b'), 0);
	assert_int_equal(pthread_join(newcomer, &opened), 0);
	assert_non_null(opened);
	assert_parts(2, 'b');
}

static void end_before_naming(void)
{
	assert_int_equal(access(fixture_path(".x.parts.pending"), F_OK), 0);
	temp_names_remove(&process_get()->temp_names);
	assert_int_equal(access(fixture_path(".x.parts.pending"), F_OK), -1);
}

static void end_while_naming(void)
{
	temp_names_remove(&process_get()->temp_names);
	assert_int_equal(access(fixture_path(".x.parts.pending"), F_OK), 0);
}

/* From the first name on it tells what is whose, and a signal that comes then ends nothing. */
static void signal_handler_removes_an_unused_lock(void **state)
{
	(void)state;
	before_manifest = end_before_naming;
	assert_int_equal(write_parts(2, 'a'), 0);
	assert_null(before_manifest);
	assert_parts(2, 'a');
	before_rename = end_while_naming;
	assert_int_equal(write_parts(3, 'b'), 0);
	assert_null(before_rename);
	assert_parts(3, 'b');
}

/* Another was killed as it gave names to its parts, while ours were written. */
static void create_orphan_journal(void)
{
	while_written = NULL;
	write_text(".x.parts.pending", "{\"gsort_part_manifest\": 1");
}

/* What a killed process has left is not the lock's alone. */
static void signal_handler_keeps_an_orphan_journal(void **state)
{
	(void)state;
	while_written = create_orphan_journal;
	assert_int_equal(write_parts(2, 'a'), -EBUSY);
	temp_names_remove(&process_get()->temp_names);
	assert_string_equal(text_of(".x.parts.pending"), "{\"gsort_part_manifest\": 1");
}

static void commit_at_the_same_time(void)
{
	while_written = NULL;
	assert_int_equal(write_parts(2, 'c'), 0);
}

static void second_concurrent_commit_is_refused(void **state)
{
	(void)state;
	for (int has_older = 0; has_older < 2; has_older++) {
		while_written = commit_at_the_same_time;
		assert_true(write_parts(2, 'b') < 0);
		assert_parts(2, 'c');
		captured_messages_reset(true);
	}
}

static void new_orphan_is_not_overwritten(void **state)
{
	(void)state;
	while_written = create_orphan_journal;
	assert_int_equal(write_parts(2, 'a'), -EBUSY);
	assert_string_equal(text_of(".x.parts.pending"), "{\"gsort_part_manifest\": 1");
	assert_int_equal(write_parts(2, 'b'), 0);
	assert_parts(2, 'b');
}

static const char *const orphan_names[] = { ".x.0000.backup", ".x.0005.backup", ".x.parts.backup",
					    ".x.parts.pending" };
enum { N_ORPHANS = sizeof orphan_names / sizeof orphan_names[0] };

static void unlisted_orphan_is_refused(void **state)
{
	(void)state;
	for (unsigned has_list = 0; has_list < 2; has_list++) {
		if (has_list)
			assert_int_equal(write_parts(3, 'a'), 0);
		for (unsigned i = 0; i < N_ORPHANS; i++) {
			write_text(orphan_names[i], "mine");
			assert_int_equal(refused(2), -EEXIST);
			assert_non_null(strstr(captured_messages_error(), orphan_names[i]));
			assert_int_equal(part_files_check(&calls, fixture_path("x"), 2), -EEXIST);
			assert_string_equal(text_of(orphan_names[i]), "mine");
			assert_int_equal(unlink(fixture_path(orphan_names[i])), 0);
			assert_int_equal(mkdir(fixture_path(orphan_names[i]), 0700), 0);
			assert_int_equal(refused(2), -EEXIST);
			assert_int_equal(rmdir(fixture_path(orphan_names[i])), 0);
		}
	}
	assert_int_equal(part_files_check(&calls, fixture_path("x"), 2), 0);
	assert_parts(3, 'a');
}

/* Nor is anything else touched: a list names the one, and not the other. */
static void orphan_of_another_size_is_refused(void **state)
{
	char list[1024];

	(void)state;
	make_manifest(2, list);
	write_text(".x.parts.backup", list);
	write_text(".x.parts.pending", list);
	write_text(".x.0000.backup", "a0");
	write_text(".x.0001.backup", "mine");
	assert_int_equal(refused(2), -EEXIST);
	assert_string_equal(text_of(".x.0000.backup"), "a0");
	assert_string_equal(text_of(".x.0001.backup"), "mine");
	write_text(".x.0001.backup", "a1");
	write_text("x.0001", "mine");
	assert_int_equal(refused(2), -EEXIST);
	assert_non_null(strstr(captured_messages_error(),
			       "x.0001 beside it is in the place of a part file"));
	assert_string_equal(text_of(".x.0000.backup"), "a0");
	assert_string_equal(text_of("x.0001"), "mine");
	write_text("x.0001", "b1");
	assert_int_equal(write_parts(2, 'c'), 0);
	assert_parts(2, 'c');
}

static const char *created_name;

static void create_named_file(void)
{
	write_text(created_name, "made");
}

static void file_created_meanwhile_is_kept(void **state)
{
	static const char *const names[] = {
		".x.0000.backup",   ".x.0002.backup", ".x.0005.backup", ".x.parts.backup",
		".x.parts.pending", "x.0005",         "x.0002"
	};

	(void)state;
	for (unsigned i = 0; i < 2 * (sizeof names / sizeof names[0]); i++) {
		clear();
		assert_int_equal(write_parts(3, 'a'), 0);
		created_name = names[i / 2];
		/* What nothing is moved to is only seen before. */
		if (i % 2 && (strstr(created_name, "5") || strstr(created_name, "pending") ||
			      created_name[0] != '.'))
			continue;
		*(i % 2 ? &before_rename : &while_written) = create_named_file;
		captured_messages_reset(true);
		assert_true(write_parts(2, 'b') < 0);
		assert_non_null(strstr(captured_messages_error(), created_name));
		before_rename = while_written = NULL;
		assert_string_equal(text_of(created_name), "made");
		assert_int_equal(unlink(fixture_path(created_name)), 0);
		if (strcmp(created_name, "x.0002") == 0)
			write_text("x.0002", "a2");
		assert_parts(3, 'a');
	}
}

static void replace_part_with_file(void)
{
	write_text("other", "o2");
	assert_int_equal(rename(fixture_path("other"), fixture_path("x.0002")), 0);
}

static void replace_part_with_link(void)
{
	assert_int_equal(unlink(fixture_path("x.0002")), 0);
	assert_int_equal(symlink("x.0001", fixture_path("x.0002")), 0);
}

static void replace_part_with_directory(void)
{
	assert_int_equal(unlink(fixture_path("x.0002")), 0);
	assert_int_equal(mkdir(fixture_path("x.0002"), 0700), 0);
}

static void replaced_stale_part_is_not_removed(void **state)
{
	static void (*const doings[])(void) = { replace_part_with_file, replace_part_with_link,
						replace_part_with_directory };

	(void)state;
	for (unsigned i = 0; i < sizeof doings / sizeof doings[0]; i++) {
		struct stat status;

		clear();
		assert_int_equal(write_parts(3, 'a'), 0);
		while_written = doings[i];
		captured_messages_reset(true);
		assert_int_equal(write_parts(2, 'b'), -EBUSY);
		assert_non_null(
			strstr(captured_messages_error(), "x.0002 beside it is another file"));
		while_written = NULL;
		assert_int_equal(lstat(fixture_path("x.0002"), &status), 0);
		assert_string_equal(text_of("x.0001"), "a1");
	}
	assert_int_equal(rmdir(fixture_path("x.0002")), 0);
}

/* Where nothing can be renamed but over what is there. */
static int refuse_renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
	(void)from;
	(void)name;
	(void)to;
	(void)as;
	(void)flags;
	errno = EINVAL;
	return -1;
}

static void rename_checks_the_target_without_renameat2(void **state)
{
	(void)state;
	calls.renameat2 = refuse_renameat2;
	assert_int_equal(write_parts(3, 'a'), 0);
	assert_int_equal(write_parts(2, 'b'), 0);
	assert_parts(2, 'b');
	assert_int_equal(file_rename_noreplace(&calls, AT_FDCWD, fixture_path("x.0000"), "/"),
			 -EEXIST);
}

static void undeletable_backup_is_left_for_recovery(void **state)
{
	(void)state;
	assert_int_equal(write_parts(3, 'a'), 0);
	while_written = NULL;
	faults.unlink_errno = EIO;
	assert_int_equal(write_parts(2, 'b'), 0);
	faults.unlink_errno = 0;
	assert_string_equal(text_of(".x.0000.backup"), "a0");
	assert_int_equal(write_parts(2, 'c'), 0);
	assert_parts(2, 'c');
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(fewer_parts_remove_the_old_ones),
		FIXTURE(failed_rename_restores_old_parts),
		FIXTURE(failed_first_commit_leaves_nothing),
		FIXTURE(commit_works_without_unnamed_files),
		FIXTURE(backups_of_a_killed_process_are_restored),
		FIXTURE(new_parts_of_a_killed_process_are_removed),
		FIXTURE(new_parts_of_a_killed_first_commit_are_removed),
		FIXTURE(backups_of_a_complete_commit_are_removed),
		FIXTURE(unreadable_manifest_is_reported),
		FIXTURE(names_without_memory_are_an_error),
		FIXTURE(durable_parts_cause_no_message),
		FIXTURE(file_with_the_name_of_a_part_is_refused),
		FIXTURE(irreplaceable_file_is_refused),
		FIXTURE(files_of_other_names_in_the_manifest_stay),
		FIXTURE(part_that_others_have_changed_is_not_replaced),
		FIXTURE(open_waits_for_a_concurrent_commit),
		FIXTURE(second_concurrent_commit_is_refused),
		FIXTURE(signal_handler_removes_an_unused_lock),
		FIXTURE(signal_handler_keeps_an_orphan_journal),
		FIXTURE(new_orphan_is_not_overwritten),
		FIXTURE(unlisted_orphan_is_refused),
		FIXTURE(orphan_of_another_size_is_refused),
		FIXTURE(file_created_meanwhile_is_kept),
		FIXTURE(replaced_stale_part_is_not_removed),
		FIXTURE(rename_checks_the_target_without_renameat2),
		FIXTURE(undeletable_backup_is_left_for_recovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
