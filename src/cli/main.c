/*
 * main - gsort
 */
#include <stddef.h>

#include "src/cli/process_setup.h"
#include "src/cli/cli_main.h"
#include "src/cli/launcher_check.h"

static int warn_about_launcher(void *context, struct gsort *sort, int r)
{
	(void)context;
	if (r == 0)
		launcher_warn(sort);
	return r;
}

static int run_gsort_cli(int argc, char **argv)
{
	const struct cli_hooks hooks = { .after_parse = warn_about_launcher };

	return cli_main(&hooks, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	return process_run_main(run_gsort_cli, argc, argv);
}
