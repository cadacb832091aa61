/*
 * main_gsort.c - gsort: records (src/cli/cli_main.h), or lines of text (lines_main.h)
 */
#include "src/cli/cli_main.h"
#include "src/cli/process_setup.h"
#include "src/lines/cli/lines_main.h"

static int run_gsort(int argc, char **argv)
{
	const struct cli_hooks hooks = { .program = lines_is_requested(argc, argv) ?
							    &lines_program :
							    &record_program };

	return cli_main(&hooks, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	return process_run_main(run_gsort, argc, argv);
}
