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

int bench_request_parse(const struct tool *tool, int argc, char **argv, void *target)
{
	const struct bench_request *request = target;
	struct option_result given;
	int r = tool_parse(tool, argc, argv, target, &given);

	if (r != 0)
		return r;
	if (given.n_operands)
		return fail(-EINVAL, "unexpected '%s'", given.operands[0]);
	if (request->n_repeats > BENCH_MOST_REPEATS)
		return fail(-EINVAL, "--repeat: at most %d rounds", BENCH_MOST_REPEATS);
	if (request->n_threads > BENCH_MOST_THREADS)
		return fail(-EINVAL, "--threads: at most %d", BENCH_MOST_THREADS);
	if (request->nbytes < 1 << 20)
		return fail(-EINVAL, "--size: at least 1 MiB, or there is nothing to measure");
	return 0;
}

int bench_measure(const struct bench_request *request, bench_measure_fn *measure, void *context)
{
	struct report_file *json = NULL;
	int r = request->json_path ? report_file_open(tool_calls(), request->json_path, &json) : 0;

	if (r == 0)
		r = measure(context, json ? report_file_stream(json) : NULL);
	if (r == 0)
		return report_file_commit(json);
	report_file_abort(json);
	return r;
}
