/*
 * unit_test.c - main() of the unit tests of a folder
 *
 * usage: unit_FOLDER [GROUP]...
 *
 * Exits with 1 if a test failed, and with 2, before the first test, if there is no such group.
 */
#include "tests/support/unit_test.h"

#include <stdio.h>
#include <string.h>

static struct unit_group *groups, **groups_end = &groups;

void unit_group_add(struct unit_group *group)
{
	*groups_end = group;
	groups_end = &group->next;
}

static const struct unit_group *find_group(const char *name)
{
	const struct unit_group *group = groups;

	while (group && strcmp(group->name, name) != 0)
		group = group->next;
	return group;
}

int main(int argc, char **argv)
{
	int n_failed = 0;

	for (int i = 1; i < argc; i++)
		if (!find_group(argv[i])) {
			fprintf(stderr, "usage: %s [GROUP]...\nunknown group: %s; groups:", argv[0],
				argv[i]);
			for (const struct unit_group *group = groups; group; group = group->next)
				fprintf(stderr, " %s", group->name);
			fprintf(stderr, "\n");
			return 2;
		}
	for (int i = 1; i < argc; i++)
		n_failed += find_group(argv[i])->run();
	for (const struct unit_group *group = groups; group && argc == 1; group = group->next)
		n_failed += group->run();
	return n_failed != 0;
}
