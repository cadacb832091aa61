/*
 * test_file_attributes.c - a replaced file does not become accessible to more users
 */
#include <sys/xattr.h>

#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

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

static void acl_is_copied(void **state)
{
	const char *path = old_file(0600);

	(void)state;
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

static void lost_acl_restricts_the_file_to_its_owner(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
	faults.setxattr_errno = EOPNOTSUPP;
	replace(path);
	assert_int_equal(get_permissions(path), 0600);
	assert_true(has_none(path, in_force));
	assert_non_null(strstr(captured_messages_warning(), path));
	assert_non_null(strstr(captured_messages_warning(), "access list"));
}

static void acl_is_not_copied_to_another_group(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	if (geteuid() != 0)
		skip();
	set(path, in_force, &acl_for_other_user, sizeof acl_for_other_user);
	assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
	replace_as(OTHER_USER, path);
	assert_int_equal(get_permissions(path), 0600);
	assert_true(has_none(path, in_force));
}

static void inherited_acl_does_not_widen_access(void **state)
{
	const char *path = old_file(0660);

	(void)state;
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

static void xattrs_of_contents_are_not_copied(void **state)
{
	static const unsigned char capability[20] = { 0, 0, 0, 2, 0, 4 };
	const char *path = old_file(0755);

	(void)state;
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

static void attributes_of_unreadable_file_are_copied(void **state)
{
	const char *path = old_file(0600);

	(void)state;
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
static void setuid_is_dropped_for_another_owner(void **state)
{
	const char *path = old_file(0666);

	(void)state;
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

static void setuid_is_kept_for_the_same_owner(void **state)
{
	const char *path = old_file(0666);

	(void)state;
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

static void group_is_kept_by_its_members(void **state)
{
	const char *path = old_file(0664);
	struct stat status;

	(void)state;
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

static void revoked_permissions_stay_revoked(void **state)
{
	const char *path = old_file(0666);
	struct output *output = open_output(path, 0);

	(void)state;
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(get_permissions(path), 0600);
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)

static const struct CMUnitTest tests[] = {
	FIXTURE(acl_is_copied),
	FIXTURE(lost_acl_restricts_the_file_to_its_owner),
	FIXTURE(acl_is_not_copied_to_another_group),
	FIXTURE(inherited_acl_does_not_widen_access),
	FIXTURE(xattrs_of_contents_are_not_copied),
	FIXTURE(attributes_of_unreadable_file_are_copied),
	FIXTURE(setuid_is_dropped_for_another_owner),
	FIXTURE(setuid_is_kept_for_the_same_owner),
	FIXTURE(group_is_kept_by_its_members),
	FIXTURE(revoked_permissions_stay_revoked),
};

UNIT_TESTS(file_attributes, tests, NULL, NULL)
