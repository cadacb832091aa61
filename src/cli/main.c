/*
 * main - gsort
 */
#include <stddef.h>

#include "src/cli/process_setup.h"
#include "src/cli/cli_main.h"
#include "src/cli/launcher_check.h"

static int taken(void *context, struct gsort *sort, int r)
{
	(void)context;
	if (r == 0)
		starter_warn(sort);
	return r;
}

static int run(int argc, char **argv)
{
	const struct program_hooks hooks = { .taken = taken };

	return program_run(&hooks, argc, argv);
}

int main(int argc, char **argv)
{
	program_prepare_memory();
	return process_run_program(run, argc, argv);
}
