/*
 * main_gsort.c - gsort: records (src/cli/cli_main.h), or lines of text (lines_main.h)
 */
#include "src/cli/cli_main.h"
#include "src/cli/process_setup.h"
#include "src/lines/cli/lines_main.h"

static int run_gsort(int argc, char **argv)
{
	return lines_is_requested(argc, argv) ? lines_main(&(struct lines_hooks){ 0 }, argc, argv) :
						cli_main(&(struct cli_hooks){ 0 }, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	return process_run_main(run_gsort, argc, argv);
}
