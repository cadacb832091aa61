/*
 * main - gsort
 */
#include <stddef.h>

#include "src/cli/process.h"
#include "src/cli/program.h"

static int run(int argc, char **argv)
{
	const struct program_hooks none = { 0 };

	return program_run(&none, argc, argv);
}

int main(int argc, char **argv)
{
	program_prepare_memory();
	return process_run_program(run, argc, argv);
}
