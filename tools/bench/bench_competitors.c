/*
 * bench_competitors - the programs that bench_file compares (see bench_competitors.h)
 */
#include "tools/bench/bench_competitors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "src/base/system_limits.h"

enum { NUMBER_NBYTES = 32 };

static int run_cp(const struct bench_job *job, struct run_cost *ret_cost)
{
	const char *const argv[] = { "cp", job->input, job->output, NULL };

	return timed_run(argv, ret_cost);
}

static int run_sort_text(const struct bench_job *job, struct run_cost *ret_cost)
{
	const char *script = "xxd -p -c8 \"$1\" | LC_ALL=C sort | xxd -r -p > \"$2\"";
	const char *const argv[] = { "sh", "-c", script, "sh", job->input, job->output, NULL };

	return timed_run(argv, ret_cost);
}

static const char *format_memory(const struct bench_job *job, char text[static NUMBER_NBYTES])
{
	snprintf(text, NUMBER_NBYTES, "%" PRIu64 "b", job->memory_nbytes);
	return text;
}

static int run_sort_lines(const struct bench_job *job, struct run_cost *ret_cost)
{
	char memory[NUMBER_NBYTES], threads[NUMBER_NBYTES];
	const char *const argv[] = {
		"env",        "LC_ALL=C", "sort", "-S",          format_memory(job, memory),
		"--parallel", threads,    "-T",   job->temp_dir, "-o",
		job->output,  job->input, NULL,
	};

	snprintf(threads, sizeof threads, "%u", cpus_available(""));
	return timed_run(argv, ret_cost);
}

static int run_gsort(const struct bench_job *job, bool are_records, struct run_cost *ret_cost)
{
	char memory[NUMBER_NBYTES];
	const char *const argv[] = {
		job->gsort,  job->input,    "-o",
		job->output, "-S",          format_memory(job, memory),
		"-T",        job->temp_dir, are_records ? "-R100" : NULL,
		"-k0:b10",   NULL,
	};

	return timed_run(argv, ret_cost);
}

int bench_program_run(enum bench_program program, const struct bench_job *job,
		      struct run_cost *ret_cost)
{
	switch (program) {
	case BENCH_CP:
		return run_cp(job, ret_cost);
	case BENCH_SORT_TEXT:
		return run_sort_text(job, ret_cost);
	case BENCH_SORT_LINES:
		return run_sort_lines(job, ret_cost);
	case BENCH_GSORT_RECORDS:
		return run_gsort(job, true, ret_cost);
	default:
		return run_gsort(job, false, ret_cost);
	}
}
