/*
 * bench_options - what is asked of a benchmark (see bench_options.h)
 */
#include "tools/bench/bench_options.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/report/report_file.h"

const char *bench_default_dir(void)
{
	const char *tmpdir = getenv("TMPDIR");

	return tmpdir && *tmpdir ? tmpdir : "/tmp";
}

int bench_parse_options(const struct tool *tool, int argc, char **argv, void *target)
{
	const struct bench_common_options *options = target;
	struct parsed_options parsed;
	int r = tool_parse(tool, argc, argv, target, &parsed);

	if (r != 0)
		return r;
	if (parsed.n_operands)
		return fail(-EINVAL, "unexpected '%s'", parsed.operands[0]);
	if (options->n_repeats > BENCH_MAX_REPEATS)
		return fail(-EINVAL, "--repeat: at most %d rounds", BENCH_MAX_REPEATS);
	if (options->n_threads > BENCH_MAX_THREADS)
		return fail(-EINVAL, "--threads: at most %d", BENCH_MAX_THREADS);
	if (options->nbytes < 1 << 20)
		return fail(-EINVAL, "--size: at least 1 MiB, or there is nothing to measure");
	return 0;
}

int bench_measure(const struct bench_common_options *options, bench_measure_fn *measure,
		  void *context)
{
	struct report_file *json = NULL;
	int r = options->json_path ? report_file_open(tool_syscalls(), options->json_path, &json) :
				     0;

	if (r == 0)
		r = measure(context, json ? report_file_stream(json) : NULL);
	if (r == 0)
		return report_file_commit(json, false);
	report_file_abort(json);
	return r;
}
