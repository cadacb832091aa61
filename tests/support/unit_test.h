/*
 * unit_test.h - cmocka tests that register themselves, and the program that runs them
 *
 * The files of tests/unit/FOLDER are one program. It runs all groups of tests, or those that its
 * arguments name. The tests of test_GROUP.c are a group, and run in the order of their lines:
 *
 *	TEST(empty_input_is_sorted)
 *	{
 *		...
 *	}
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/diagnostics.h" /* before cmocka.h, which defines a macro fail() */

#include <cmocka.h>

struct unit_test {
	const char *group;      /* a name, or the name of the file */
	struct CMUnitTest test; /* without a function: setup and teardown of the group */
	int line;
	struct unit_test *next;
};

/*
 * Return why no test can run here, or NULL, which is the default: a program may replace this
 * function. Then it exits with 77, which means that it was skipped.
 */
const char *unit_tests_skip_reason(void);

/* Add a test to those of the program. Called before main(). */
void unit_test_add(struct unit_test *test);

#define UNIT_TEST_ADD(id, ...)                                                                     \
	__attribute__((constructor)) static void add_##id(void)                                    \
	{                                                                                          \
		static struct unit_test itself = { __VA_ARGS__ };                                  \
                                                                                                   \
		unit_test_add(&itself);                                                            \
	}

/*
 * Define a test of a group. Its function has the parameter `state`. SETUP and TEARDOWN run before
 * and after the test, and may be NULL.
 */
#define TEST_OF(group, claim, setup, teardown)                                                     \
	static void claim(void **state);                                                           \
	UNIT_TEST_ADD(claim, group, { #claim, claim, setup, teardown, NULL }, __LINE__, NULL)      \
	static void claim(__attribute__((unused)) void **state)

/* Define a test of the file's group. */
#define TEST_WITH(claim, setup, teardown) TEST_OF(__FILE__, claim, setup, teardown)
#define TEST(claim) TEST_WITH(claim, NULL, NULL)

/* Run a test that was defined once more, with another setup. */
#define TEST_AGAIN(claim, setup, teardown)                                                         \
	UNIT_TEST_ADD(claim##_##setup, __FILE__,                                                   \
		      { #claim ", " #setup, claim, setup, teardown, NULL }, __LINE__, NULL)

/* Name functions that run before and after all tests of the file, or NULL. */
#define GROUP_FIXTURE(setup, teardown)                                                             \
	UNIT_TEST_ADD(group_fixture, __FILE__, { NULL, NULL, setup, teardown, NULL }, 0, NULL)
