/*
 * bench_competitors - the programs that bench_file compares (see bench_competitors.h)
 */
#include "tools/bench/bench_competitors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/base/system_limits.h"

enum { COMPETITOR_NUMBER_NBYTES = 32 };

static int run_cp(const struct competitor_params *params, struct run_cost *ret_cost)
{
	const char *const argv[] = { "cp", params->input, params->output, NULL };

	return timed_run(argv, ret_cost);
}

static int run_sort_text(const struct competitor_params *params, struct run_cost *ret_cost)
{
	const char *script = "xxd -p -c8 \"$1\" | LC_ALL=C sort | xxd -r -p > \"$2\"";
	const char *const in = params->input, *const out = params->output;
	const char *const argv[] = { "sh", "-c", script, "sh", in, out, NULL };

	return timed_run(argv, ret_cost);
}

static const char *format_memory(const struct competitor_params *params,
				 char text[static COMPETITOR_NUMBER_NBYTES])
{
	snprintf(text, COMPETITOR_NUMBER_NBYTES, "%" PRIu64 "b", params->memory_nbytes);
	return text;
}

static int run_sort_lines(const struct competitor_params *params, struct run_cost *ret_cost)
{
	char memory[COMPETITOR_NUMBER_NBYTES], threads[COMPETITOR_NUMBER_NBYTES];
	const char *const argv[] = {
		"env",
		"LC_ALL=C",
		"sort",
		"-S",
		format_memory(params, memory),
		"--parallel",
		threads,
		"-T",
		params->temp_dir,
		"-o",
		params->output,
		params->input,
		NULL,
	};

	snprintf(threads, sizeof threads, "%u", cpus_available(""));
	return timed_run(argv, ret_cost);
}

static int run_gsort(const struct competitor_params *params, bool are_records,
		     struct run_cost *ret_cost)
{
	char memory[COMPETITOR_NUMBER_NBYTES];
	const char *const argv[] = {
		params->gsort,
		params->input,
		"-o",
		params->output,
		"-S",
		format_memory(params, memory),
		"-T",
		params->temp_dir,
		are_records ? "-R100" : NULL,
		"-k0:b10",
		NULL,
	};

	return timed_run(argv, ret_cost);
}

int bench_competitor_run(enum bench_competitor competitor, const struct competitor_params *params,
			 struct run_cost *ret_cost)
{
	switch (competitor) {
	case BENCH_CP:
		return run_cp(params, ret_cost);
	case BENCH_SORT_TEXT:
		return run_sort_text(params, ret_cost);
	case BENCH_SORT_LINES:
		return run_sort_lines(params, ret_cost);
	case BENCH_GSORT_RECORDS:
		return run_gsort(params, true, ret_cost);
	default:
		return run_gsort(params, false, ret_cost);
	}
}
