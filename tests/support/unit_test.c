/*
 * unit_test.c - main() of the unit tests of a folder
 *
 * usage: unit_FOLDER [GROUP]...
 *
 * Exits with 1 if a test failed, and with 2, before the first test, if there is no such group.
 */
#include "tests/support/unit_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TESTS = 200 };

static struct unit_test *tests;

/* Return the name of a group: of the file tests/unit/FOLDER/test_GROUP.c, GROUP. */
static const char *group_name(const struct unit_test *test, char name[static 64])
{
	const char *begin = strrchr(test->group, '/');

	begin = begin ? begin + sizeof "/test_" - 1 : test->group;
	snprintf(name, 64, "%.*s", (int)strcspn(begin, "."), begin);
	return name;
}

static bool is_of_group(const struct unit_test *test, const char *group)
{
	char name[64];

	return strcmp(group_name(test, name), group) == 0;
}

/* The compiler may let files add their tests in any order. */
void unit_test_add(struct unit_test *test)
{
	struct unit_test **place = &tests;

	while (*place && (strcmp((*place)->group, test->group) != 0 || (*place)->line < test->line))
		place = &(*place)->next;
	test->next = *place;
	*place = test;
}

/* Return the first test of a group, from `test` on; NULL: there is none. */
static const struct unit_test *find_group(const struct unit_test *test, const char *group)
{
	while (test && !is_of_group(test, group))
		test = test->next;
	return test;
}

/* Return the number of failed tests. */
static int run_group(const char *group)
{
	struct CMUnitTest all[MAX_TESTS], fixture = { 0 };
	const struct unit_test *test = tests;
	size_t n = 0;

	while ((test = find_group(test, group))) {
		if (n == MAX_TESTS)
			abort();
		if (test->test.test_func)
			all[n++] = test->test;
		else
			fixture = test->test;
		test = test->next;
	}
	return _cmocka_run_group_tests(group, all, n, fixture.setup_func, fixture.teardown_func);
}

static int refuse_group(const char *program, const char *group)
{
	char name[64];

	fprintf(stderr, "usage: %s [GROUP]...\nunknown group: %s; groups:", program, group);
	for (const struct unit_test *test = tests; test; test = test->next)
		if (find_group(tests, group_name(test, name)) == test)
			fprintf(stderr, " %s", name);
	fprintf(stderr, "\n");
	return 2;
}

__attribute__((weak)) const char *unit_tests_skip_reason(void)
{
	return NULL;
}

int main(int argc, char **argv)
{
	const char *skip_reason = unit_tests_skip_reason();
	int n_failed = 0;
	char name[64];

	if (skip_reason) {
		printf("skipped: %s\n", skip_reason);
		return 77;
	}
	for (int i = 1; i < argc; i++)
		if (!find_group(tests, argv[i]))
			return refuse_group(argv[0], argv[i]);
	for (int i = 1; i < argc; i++)
		n_failed += run_group(argv[i]);
	for (const struct unit_test *test = tests; test && argc == 1; test = test->next)
		if (find_group(tests, group_name(test, name)) == test)
			n_failed += run_group(name);
	return n_failed != 0;
}
