/*
 * gsort-bench - how fast is gsort, as a whole and in its parts
 */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/cli/exit_status.h"
#include "tools/cli/print_diagnostics.h"
#include "tools/bench/bench.h"
#if HAVE_KERNELS
#include "tools/bench/bench_kernels.h"
#endif

static const struct {
	const char *name;
	const char *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "file", "file to file: against cp, against text tools, by memory and by data",
	  bench_file },
	{ "explain", "what --explain predicts against what a sort takes", bench_estimate },
	{ "io", "a disk and the page cache, without any sorting", bench_io },
	{ "cpu", "CPU kernels: sort, merge, encode, decode", bench_cpu },
	{ "records", "CPU kernels: sort and merge records", bench_records },
#if HAVE_KERNELS
	{ "sort", "GPU kernels: a chunk, against CUB", bench_kernels },
	{ "distributions", "GPU kernels: a chunk of other shapes of data", bench_kernels },
	{ "merge", "GPU kernels: sorted runs to one, against Thrust", bench_kernels },
	{ "merge-steps", "GPU kernels: how a merge kernel becomes fast", bench_kernels },
	{ "splitters", "GPU kernels: where splitters cut runs", bench_kernels },
#endif
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(void)
{
	printf("Usage: gsort-bench COMMAND [OPTION]...\n\nCommands; each has its own --help:\n");
	for (unsigned i = 0; i < N_COMMANDS; i++)
		printf("  %-14s %s\n", commands[i].name, commands[i].help);
}

int main(int argc, char **argv)
{
	print_diagnostics_as("gsort-bench");
	if (argc > 1 && !strcmp(argv[1], "--help")) {
		print_help();
		return EXIT_SORTED;
	}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("gsort-bench (gsort) %s\n", GSORT_VERSION);
		return EXIT_SORTED;
	}
	for (unsigned i = 0; argc > 1 && i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fail(-1, "%s: see --help", argc > 1 ? "unknown command" : "which benchmark?");
	return EXIT_TROUBLE;
}
