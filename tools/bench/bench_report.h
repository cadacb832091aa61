/*
 * bench_report - what programs cost, and how that compares: as tables and as JSON
 */
#pragma once

#include <stdio.h>

#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/bench_options.h"
#include "tools/bench/timed_run.h"

/* One program on one input. */
struct bench_case {
	const char *name;
	uint64_t input_nbytes;
	unsigned n_costs;
	struct run_cost costs[BENCH_MAX_REPEATS]; /* in the order of the rounds */
};

/* What is promised: cost per byte of `over` against that of `under`; seconds if under is NULL. */
struct bench_target {
	const char *name;
	const struct bench_case *numerator, *denominator;
	bool is_lower_bound; /* the target is a lower bound, not an upper one */
	double bound;
};

struct bench_report {
	uint64_t input_nbytes; /* of most cases */
	unsigned n_cpus;
	const struct bench_case *cases;
	unsigned n_cases;
	const struct bench_target *targets;
	unsigned n_targets;
};

/* To standard output. */
void bench_report_print(const struct bench_report *report);

void bench_report_print_json(const struct bench_report *report, FILE *stream);
