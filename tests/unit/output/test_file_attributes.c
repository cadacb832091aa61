/*
 * test_file_attributes - a file that is replaced is open to nobody to whom it was not
 */
#include <sys/xattr.h>

#include "tests/support/output_fixture.h"

/* An access list as the kernel takes it (linux/posix_acl_xattr.h), and its tags. */
enum { TAG_OWNER = 1, TAG_USER = 2, TAG_GROUP = 4, TAG_MASK = 16, TAG_OTHERS = 32 };
enum { N_ENTRIES = 5, SOMEBODY = 4321 };

struct access_list {
	uint32_t version;
	struct {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[N_ENTRIES];
};

static const char in_force[] = "system.posix_acl_access";
static const char for_new_files[] = "system.posix_acl_default";

/* Of a file of mode 660 whose group may do nothing, but one user everything. */
static const struct access_list for_somebody = { 2,
						 { { TAG_OWNER, 6, UINT32_MAX },
						   { TAG_USER, 6, SOMEBODY },
						   { TAG_GROUP, 0, UINT32_MAX },
						   { TAG_MASK, 6, UINT32_MAX },
						   { TAG_OTHERS, 0, UINT32_MAX } } };

/* A file of the mode given that is the first step of each test. */
static const char *old_file(mode_t mode)
{
	const char *path = path_of("f");

	write_file(path, "old", 3);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

/* Skips the test where there are no such attributes. */
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
	assert_true(file_holds(path, "", 0));
}

/* The same by a user who may replace all in the directory. */
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
	assert_true(file_holds(path, "", 0));
}

static void access_list_stays_with_the_name(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	for (int nameless = 0; nameless < 2; nameless++) {
		faults.refuses_nameless = !nameless;
		set(path, in_force, &for_somebody, sizeof for_somebody);
		assert_int_equal(mode_of(path), 0660);
		replace(path);
		assert_int_equal(mode_of(path), 0660);
		assert_true(has(path, in_force, &for_somebody, sizeof for_somebody));
		write_file(path, "old", 3);
	}
	assert_string_equal(messages_last_warning(), "");
}

static void access_list_that_cannot_be_kept_leaves_the_file_to_its_owner(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	set(path, in_force, &for_somebody, sizeof for_somebody);
	faults.setxattr_errno = EOPNOTSUPP;
	replace(path);
	assert_int_equal(mode_of(path), 0600);
	assert_true(has_none(path, in_force));
	assert_non_null(strstr(messages_last_warning(), path));
	assert_non_null(strstr(messages_last_warning(), "access list"));
}

static void access_list_is_not_given_to_another_group(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	if (geteuid() != 0)
		skip();
	set(path, in_force, &for_somebody, sizeof for_somebody);
	assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
	replace_as(SOMEBODY, path);
	assert_int_equal(mode_of(path), 0600);
	assert_true(has_none(path, in_force));
}

static void list_of_the_directory_does_not_open_what_was_closed_to_it(void **state)
{
	const char *path = old_file(0660);

	(void)state;
	set(fixture_directory, for_new_files, &for_somebody, sizeof for_somebody);
	for (int nameless = 0; nameless < 2; nameless++) {
		faults.refuses_nameless = !nameless;
		replace(path);
		assert_int_equal(mode_of(path), 0660);
		assert_true(has_none(path, in_force));
	}
	replace(path_of("new"));
	assert_true(has(path_of("new"), in_force, &for_somebody, sizeof for_somebody));
}

static void extended_attributes_stay_but_those_of_the_contents(void **state)
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
	assert_string_equal(messages_last_warning(), "");

	faults.setxattr_errno = ENOSPC;
	replace(path);
	assert_true(has_none(path, "user.origin"));
	assert_int_equal(mode_of(path), 0755);
	assert_non_null(strstr(messages_last_warning(), "extended attributes"));
}

static void attributes_of_a_file_that_cannot_be_read_are_kept(void **state)
{
	const char *path = old_file(0600);

	(void)state;
	if (geteuid() != 0)
		skip();
	set(path, in_force, &for_somebody, sizeof for_somebody);
	assert_int_equal(chmod(path, 0260), 0);
	assert_int_equal(chown(path, 1234, 0), 0);
	replace_as(1234, path);
	assert_int_equal(mode_of(path), 0260);
	assert_false(has_none(path, in_force));
}

/*
 * Whoever may write it may replace it; what it then does must not be done in the owner's name, and
 * what the old group could do is not for the new one.
 */
static void identity_is_not_lent_under_another_owner(void **state)
{
	const char *path = old_file(0666);

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 1234, 5678), 0);
	assert_int_equal(chmod(path, 06776), 0);
	replace_as(SOMEBODY, path);
	assert_int_equal(mode_of(path), 0766);
	assert_int_equal(chown(path, 1234, 0), 0);
	assert_int_equal(chmod(path, 04777), 0);
	replace_as(SOMEBODY, path);
	assert_int_equal(mode_of(path), 0777);
}

static void identity_is_lent_as_before_under_the_same_owner(void **state)
{
	const char *path = old_file(0666);

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(path, 1234, 5678), 0);
	assert_int_equal(chmod(path, 06755), 0);
	replace(path);
	assert_int_equal(mode_of(path), 06755);
}

/* May the owner not be changed, as by a user who is a member of the group? */
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
	assert_int_equal(mode_of(path), 0664);
}

static void permissions_that_were_taken_away_meanwhile_stay_away(void **state)
{
	const char *path = old_file(0666);
	struct output *output = open_output(path, 0);

	(void)state;
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_int_equal(mode_of(path), 0600);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(access_list_stays_with_the_name),
		FIXTURE(access_list_that_cannot_be_kept_leaves_the_file_to_its_owner),
		FIXTURE(access_list_is_not_given_to_another_group),
		FIXTURE(list_of_the_directory_does_not_open_what_was_closed_to_it),
		FIXTURE(extended_attributes_stay_but_those_of_the_contents),
		FIXTURE(attributes_of_a_file_that_cannot_be_read_are_kept),
		FIXTURE(identity_is_not_lent_under_another_owner),
		FIXTURE(identity_is_lent_as_before_under_the_same_owner),
		FIXTURE(group_is_kept_by_its_members),
		FIXTURE(permissions_that_were_taken_away_meanwhile_stay_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
