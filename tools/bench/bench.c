/*
 * bench.c - gsort-bench: how fast gsort is, as a whole and in its parts
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/system_limits.h"
#include "src/cli/exit_status.h"
#include "src/report/report_file.h"
#include "tools/cli/tool_main.h"

/* --- options --- */

static int parse_options(const struct tool *tool, int argc, char **argv,
			 struct bench_common_options *options)
{
	const char *tmpdir = getenv("TMPDIR");
	struct parsed_options parsed;
	int r;

	options->dir = tmpdir && *tmpdir ? tmpdir : "/tmp";
	r = tool_parse(tool, argc, argv, options, &parsed);
	if (r != 0)
		return r;
	if (parsed.n_operands)
		return fail(-EINVAL, "unexpected '%s'", parsed.operands[0]);
	if (options->n_repeats > BENCH_MAX_REPEATS)
		return fail(-EINVAL, "--repeat: must be at most %d", BENCH_MAX_REPEATS);
	if (options->nbytes < 1 << 20)
		return fail(-EINVAL, "--size: must be at least 1 MiB");
	return 0;
}

int bench_run(const struct tool *tool, int argc, char **argv, struct bench_common_options *options,
	      bench_measure_fn *measure)
{
	struct report_file *json = NULL;
	int r = parse_options(tool, argc, argv, options);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && options->json_path)
		r = report_file_open(tool_syscalls(), options->json_path, &json);
	if (r == 0)
		r = measure(options, json ? report_file_stream(json) : NULL);
	if (r == 0)
		r = report_file_commit(json, false);
	else
		report_file_abort(json);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}

int bench_make_directory(const char *parent, char dir[static PATH_MAX])
{
	const int n = snprintf(dir, PATH_MAX, "%s/gsort-bench.XXXXXX", parent);

	if (n < 0 || n >= PATH_MAX)
		return fail(-ENAMETOOLONG, "%s: %m", parent);
	if (!mkdtemp(dir))
		return fail(-errno, "%s: cannot create a directory: %m", parent);
	return 0;
}

/* --- measuring --- */

static int compare_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double bench_median_ns(uint64_t *times_ns, unsigned n)
{
	qsort(times_ns, n, sizeof *times_ns, compare_ns);
	return (double)(times_ns[(n - 1) / 2] + times_ns[n / 2]) / 2;
}

static uint64_t timeval_to_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static int spawn_program(const char *const *argv, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int error;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv,
				     environ);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

int timed_run(const char *const *argv, struct run_cost *ret_cost)
{
	const uint64_t begin_ns = clock_now_ns();
	struct rusage usage;
	int status, r;
	pid_t pid;

	r = spawn_program(argv, &pid);
	if (r < 0)
		return fail(r, "%s: cannot start: %m", argv[0]);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return fail(-errno, "%s: cannot wait: %m", argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail(-ECHILD, "%s failed: wait status %#x", argv[0], (unsigned)status);
	*ret_cost = (struct run_cost){
		.elapsed_ns = clock_now_ns() - begin_ns,
		.cpu_ns = timeval_to_ns(usage.ru_utime) + timeval_to_ns(usage.ru_stime),
		.peak_rss_nbytes = (uint64_t)usage.ru_maxrss * 1024,
	};
	return 0;
}

static void touch(uint64_t nbytes)
{
	volatile char *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise((void *)memory, nbytes, MADV_HUGEPAGE);
	for (uint64_t offset = 0; offset < nbytes; offset += 4096)
		memory[offset] = 1;
}

void warm_memory(uint64_t nbytes)
{
	const uint64_t max_nbytes = memory_available_nbytes("") / 2;
	const pid_t pid = fork();

	if (pid == 0) {
		touch(nbytes < max_nbytes ? nbytes : max_nbytes);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* --- the program --- */

static const struct {
	const char *name;
	const char *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "file", "file to file: against cp, against text tools, by memory and by data",
	  bench_file },
	{ "explain", "what --explain predicts against what a sort takes", bench_estimate },
	{ "io", "a disk and the page cache, without any sorting", bench_io },
#if HAVE_KERNELS
	{ "sort", "GPU kernels: a chunk, against CUB", bench_kernels },
	{ "distributions", "GPU kernels: a chunk of other shapes of data", bench_kernels },
	{ "merge", "GPU kernels: sorted runs to one, against Thrust", bench_kernels },
	{ "merge-steps", "GPU kernels: how a merge kernel becomes fast", bench_kernels },
	{ "splitters", "GPU kernels: where splitters cut runs", bench_kernels },
	{ "records", "GPU kernels: records of 100 bytes, step by step", bench_kernels },
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
	fail(-1, "%s: see --help", argc > 1 ? "unknown command" : "no command");
	return EXIT_TROUBLE;
}
