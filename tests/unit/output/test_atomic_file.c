/*
 * test_atomic_file.c - files that other processes create or change during a sort are neither
 * published nor lost, and a replaced file does not become accessible to more users
 */
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

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

/* Wrapped to fail once, after a number of calls. */
static unsigned n_fstats_left = UINT_MAX;
static bool fstat_has_failed;

int __real_fstat64(int fd, struct stat *ret_status);
int __wrap_fstat64(int fd, struct stat *ret_status);
int __wrap_fstat64(int fd, struct stat *ret_status)
{
	if (n_fstats_left-- > 0)
		return __real_fstat64(fd, ret_status);
	fstat_has_failed = true;
	errno = EIO;
	return -1;
}

/* Changes by other processes could not be found. */
DIRECTORY_TEST(nothing_is_published_in_an_unknown_state)
{
	const char *path = fixture_path("f");
	unsigned n = 0;

	do {
		struct output *output = replace_old(path);
		int r;

		fstat_has_failed = false;
		n_fstats_left = n++;
		r = output_commit(output, OUTPUT_SYNC_ALL);
		n_fstats_left = UINT_MAX;
		assert_int_equal(r, fstat_has_failed ? -EIO : 0);
		assert_int_equal(file_contains(path, "old", 3), fstat_has_failed);
	} while (fstat_has_failed);
	assert_true(n > 3);
}

DIRECTORY_TEST(foreign_temp_file_is_not_published)
{
	const char *path = fixture_path("f"), *temp_name = new_files_name;
	struct output *output = replace_old(path);

	write_file(fixture_path("foreign"), "foreign", 7);
	assert_int_equal(rename(fixture_path("foreign"), fixture_path(temp_name)), 0);
	assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), temp_name));
	assert_true(file_contains(path, "old", 3));
	assert_true(file_contains(fixture_path(temp_name), "foreign", 7));
	unlink(fixture_path(temp_name));
}

DIRECTORY_TEST(resized_temp_file_is_not_published)
{
	static const off_t sizes[] = { 0, N - 1, N + 1 };

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

DIRECTORY_TEST(overwritten_temp_file_is_not_published)
{
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

DIRECTORY_TEST(removed_temp_file_is_reported)
{
	const char *path = fixture_path("f");
	struct output *output = replace_old(path);
	char named[80];

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

DIRECTORY_TEST(retargeted_dangling_link_is_not_followed)
{
	void (*const changes[])(void) = { turn_link, remove_link };

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

DIRECTORY_TEST(moved_directory_is_refused)
{
	void (*const changes[])(void) = { move_directory, remake_directory };

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

DIRECTORY_TEST(equivalent_path_by_other_links_is_accepted)
{
	struct output *output;

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

/* --- attributes --- */

/* The kernel's format of an access list (linux/posix_acl_xattr.h), and its tags. */
enum { TAG_OWNER = 1, TAG_USER = 2, TAG_GROUP = 4, TAG_MASK = 16, TAG_OTHERS = 32 };
enum { N_ENTRIES = 5, OTHER_USER = 4321 };

struct access_list {
	uint32_t version;
	struct {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[N_ENTRIES];
};

static const char in_force[] = "system.posix_acl_access";
static const char for_new_files[] = "system.posix_acl_default";

/* The mode is 660, but the group has no access; another user has. */
static const struct access_list acl_for_other_user = { 2,
						       { { TAG_OWNER, 6, UINT32_MAX },
							 { TAG_USER, 6, OTHER_USER },
							 { TAG_GROUP, 0, UINT32_MAX },
							 { TAG_MASK, 6, UINT32_MAX },
							 { TAG_OTHERS, 0, UINT32_MAX } } };

/* Create the file that will be replaced. */
static const char *old_file(mode_t mode)
{
	const char *path = fixture_path("f");

	write_file(path, "old", 3);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

/* Skip the test if the attribute is not supported. */
static void set(const char *path, const char *name, const void *value, size_t nbytes)
{
	if (setxattr(path, name, value, nbytes, 0) < 0) {
		print_message("%s cannot be set: %s\n", name, strerror(errno));
		skip();
	}
}

static bool has(const char *path, const char *name, const void *value, size_t nbytes)
{
	unsigned char found[256];
	const ssize_t n = getxattr(path, name, found, sizeof found);

	return n == (ssize_t)nbytes && memcmp(found, value, nbytes) == 0;
}

static bool has_none(const char *path, const char *name)
{
	return getxattr(path, name, NULL, 0) < 0;
}

static void replace(const char *path)
{
	assert_int_equal(output_commit(open_output(path, 0), OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, "", 0));
}

/* Replace the file as a user who may write to the directory. */
static void replace_as(uid_t user, const char *path)
{
	struct output *output = NULL;
	int r;

	assert_int_equal(chmod(fixture_directory, 0777), 0);
	assert_int_equal(seteuid(user), 0);
	r = output_open(&faulty_calls, path, 0, &output);
	if (r == 0)
		r = output_commit(output, OUTPUT_UNSYNCED);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, 0);
	assert_true(file_contains(path, "", 0));
}

DIRECTORY_TEST(acl_is_copied)
{
	const char *path = old_file(0600);

	for (int nameless = 0; nameless < 2; nameless++) {
		faults.rejects_tmpfile = !nameless;
		set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
		assert_int_equal(get_permissions(path), 0660);
		replace(path);
		assert_int_equal(get_permissions(path), 0660);
		assert_true(has(path, in_force, &acl_for_other_user, sizeof acl_for_other_user));
		write_file(path, "old", 3);
	}
	assert_string_equal(captured_messages_warning(), "");
}

DIRECTORY_TEST(lost_acl_restricts_the_file_to_its_owner)
{
	const char *path = old_file(0600);

	set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
	faults.setxattr_errno = EOPNOTSUPP;
	replace(path);
	assert_int_equal(get_permissions(path), 0600);
	assert_true(has_none(path, in_force));
	assert_non_null(strstr(captured_messages_warning(), path));
	assert_non_null(strstr(captured_messages_warning(), "access list"));
}

DIRECTORY_TEST(acl_is_not_copied_to_another_group)
{
	const char *path = old_file(0600);

	if (geteuid() != 0)
		skip();
	set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
	assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
	replace_as(OTHER_USER, path);
	assert_int_equal(get_permissions(path), 0600);
	assert_true(has_none(path, in_force));
}

DIRECTORY_TEST(inherited_acl_does_not_widen_access)
{
	const char *path = old_file(0660);

	set(fixture_directory, for_new_files, &acl_for_other_user, sizeof acl_for_other_user);
	for (int nameless = 0; nameless < 2; nameless++) {
		faults.rejects_tmpfile = !nameless;
		replace(path);
		assert_int_equal(get_permissions(path), 0660);
		assert_true(has_none(path, in_force));
	}
	replace(fixture_path("new"));
	assert_true(
		has(fixture_path("new"), in_force, &acl_for_other_user, sizeof acl_for_other_user));
}

DIRECTORY_TEST(xattrs_of_contents_are_not_copied)
{
	static const unsigned char capability[20] = { 0, 0, 0, 2, 0, 4 };
	const char *path = old_file(0755);

	set(path, "user.origin", "here", 4);
	set(path, "user.empty", "", 0);
	if (geteuid() == 0)
		set(path, "security.capability", capability, sizeof capability);
	replace(path);
	assert_true(has(path, "user.origin", "here", 4));
	assert_true(has(path, "user.empty", "", 0));
	assert_true(has_none(path, "security.capability"));
	assert_string_equal(captured_messages_warning(), "");

	faults.setxattr_errno = ENOSPC;
	replace(path);
	assert_true(has_none(path, "user.origin"));
	assert_int_equal(get_permissions(path), 0755);
	assert_non_null(strstr(captured_messages_warning(), "extended attributes"));
}

DIRECTORY_TEST(attributes_of_unreadable_file_are_copied)
{
	const char *path = old_file(0600);

	if (geteuid() != 0)
		skip();
	set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
	assert_int_equal(chmod(path, 0260), 0);
	assert_int_equal(chown(path, 1234, 0), 0);
	replace_as(1234, path);
	assert_int_equal(get_permissions(path), 0260);
	assert_false(has_none(path, in_force));
}

/* Set-user-ID bits are not for a new owner, and group permissions not for a new group. */
DIRECTORY_TEST(setuid_is_dropped_for_another_owner)
{
	const char *path = old_file(0666);

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 1234, 5678), 0);
	assert_int_equal(chmod(path, 06776), 0);
	replace_as(OTHER_USER, path);
	assert_int_equal(get_permissions(path), 0766);
	assert_int_equal(chown(path, 1234, 0), 0);
	assert_int_equal(chmod(path, 04777), 0);
	replace_as(OTHER_USER, path);
	assert_int_equal(get_permissions(path), 0777);
}

DIRECTORY_TEST(setuid_is_kept_for_the_same_owner)
{
	const char *path = old_file(0666);

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 1234, 5678), 0);
	assert_int_equal(chmod(path, 06755), 0);
	replace(path);
	assert_int_equal(get_permissions(path), 06755);
}

/* Only the group can be changed, as by a user who is a member of the group. */
static bool only_groups;

int __real_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group)
{
	return FAULTY(only_groups && owner != (uid_t)-1 ? EPERM : 0,
		      __real_fchown(fd, owner, group));
}

DIRECTORY_TEST(group_is_kept_by_its_members)
{
	const char *path = old_file(0664);
	struct stat status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 1234, 5678), 0);
	only_groups = true;
	replace(path);
	only_groups = false;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_uid, 0);
	assert_int_equal(status.st_gid, 5678);
	assert_int_equal(get_permissions(path), 0664);
}

DIRECTORY_TEST(revoked_permissions_stay_revoked)
{
	const char *path = old_file(0666);
	struct output *output = open_output(path, 0);

	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(get_permissions(path), 0600);
}

GROUP_FIXTURE(fill_output_bytes, NULL)
