/*
 * main_records.c - gsort for records only, as a program that tests link in their own way
 */

#include "src/cli/cli_main.h"
#include "src/cli/process_setup.h"

static int run_gsort(int argc, char **argv)
{
	return cli_main(&(struct cli_hooks){ .program = &record_program }, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	return process_run_main(run_gsort, argc, argv);
}
