/*
 * unit_test.h - groups of cmocka tests, and the program that runs them
 *
 * The files of tests/unit/FOLDER are one program. It runs all of their groups, or those that its
 * arguments name. A file defines a group as follows. SETUP and TEARDOWN run before and after the
 * group and may be NULL.
 *
 *	static const struct CMUnitTest tests[] = {
 *		cmocka_unit_test(empty_input_is_sorted),
 *	};
 *
 *	UNIT_TESTS(GROUP, tests, SETUP, TEARDOWN)
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/diagnostics.h" /* before cmocka.h, which defines a macro fail() */

#include <cmocka.h>

struct unit_group {
	const char *name;
	int (*run)(void); /* returns the number of failed tests */
	struct unit_group *next;
};

/* Add a group to those of the program. Called before main(). */
void unit_group_add(struct unit_group *group);

#define UNIT_TESTS(group, tests, setup, teardown)                                                  \
	static int run_group_##group(void)                                                         \
	{                                                                                          \
		return cmocka_run_group_tests_name(#group, tests, setup, teardown);                \
	}                                                                                          \
                                                                                                   \
	__attribute__((constructor)) static void add_group_##group(void)                           \
	{                                                                                          \
		static struct unit_group itself = { #group, run_group_##group, NULL };             \
                                                                                                   \
		unit_group_add(&itself);                                                           \
	}
