/*
 * bench_report - tables and JSON of a benchmark (see bench_report.h)
 */
#include "tools/bench/bench_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "config.h"
#include "src/base/size.h"
#include "tools/bench/bench_median.h"

static double elapsed_s(const struct bench_case *bench_case)
{
	uint64_t ns[BENCH_MAX_REPEATS];

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		ns[i] = bench_case->costs[i].elapsed_ns;
	return bench_median_ns(ns, bench_case->n_costs) * 1e-9;
}

/* Unlike the time that passes it hardly depends on what else the machine does. */
static double cpu_s(const struct bench_case *bench_case)
{
	uint64_t ns[BENCH_MAX_REPEATS];

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		ns[i] = bench_case->costs[i].cpu_ns;
	return bench_median_ns(ns, bench_case->n_costs) * 1e-9;
}

static uint64_t peak_rss_nbytes(const struct bench_case *bench_case)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		if (peak < bench_case->costs[i].peak_rss_nbytes)
			peak = bench_case->costs[i].peak_rss_nbytes;
	return peak;
}

static double measure_ratio(const struct bench_target *target)
{
	const double numerator_s = elapsed_s(target->numerator);

	if (!target->denominator)
		return numerator_s;
	return numerator_s / (double)target->numerator->input_nbytes /
	       (elapsed_s(target->denominator) / (double)target->denominator->input_nbytes);
}

static bool is_target_met(const struct bench_target *target)
{
	const double value = measure_ratio(target);

	return target->is_lower_bound ? value >= target->bound : value <= target->bound;
}

void bench_report_print(const struct bench_report *report)
{
	printf("%-26s %10s %10s %12s %8s %12s\n", "", "input", "seconds", "on processor", "MB/s",
	       "peak memory");
	for (unsigned i = 0; i < report->n_cases; i++) {
		const struct bench_case *bench_case = &report->cases[i];
		char input[32], peak[32];

		size_format(bench_case->input_nbytes, input);
		size_format(peak_rss_nbytes(bench_case), peak);
		printf("%-26s %10s %10.4f %12.4f %8.0f %12s\n", bench_case->name, input,
		       elapsed_s(bench_case), cpu_s(bench_case),
		       (double)bench_case->input_nbytes * 1e-6 / elapsed_s(bench_case), peak);
	}
	printf("\n%-36s %10s %10s\n", "", "measured", "target");
	for (unsigned i = 0; i < report->n_targets; i++) {
		const struct bench_target *target = &report->targets[i];

		printf("%-36s %10.3f %4s %5g%s\n", target->name, measure_ratio(target),
		       target->is_lower_bound ? ">=" : "<=", target->bound,
		       is_target_met(target) ? "" : "  missed");
	}
}

static void print_json_case(const struct bench_case *bench_case, FILE *stream)
{
	fprintf(stream,
		"\n    {\"name\": \"%s\", \"input_bytes\": %" PRIu64
		", \"median_s\": %.6f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %" PRIu64
		", \"seconds\": [",
		bench_case->name, bench_case->input_nbytes, elapsed_s(bench_case),
		cpu_s(bench_case), peak_rss_nbytes(bench_case));
	for (unsigned i = 0; i < bench_case->n_costs; i++)
		fprintf(stream, "%s%.6f", i ? ", " : "",
			(double)bench_case->costs[i].elapsed_ns * 1e-9);
	fprintf(stream, "]}");
}

void bench_report_print_json(const struct bench_report *report, FILE *stream)
{
	fprintf(stream,
		"{\n  \"version\": \"%s\",\n  \"processors\": %u,\n  \"size_bytes\": %" PRIu64
		",\n  \"cases\": [",
		GSORT_VERSION, report->n_cpus, report->input_nbytes);
	for (unsigned i = 0; i < report->n_cases; i++) {
		fputs(i ? "," : "", stream);
		print_json_case(&report->cases[i], stream);
	}
	fprintf(stream, "\n  ],\n  \"figures\": [");
	for (unsigned i = 0; i < report->n_targets; i++) {
		const struct bench_target *target = &report->targets[i];

		fprintf(stream,
			"%s\n    {\"name\": \"%s\", \"measured\": %.6f, \"%s\": %g, \"met\": %s}",
			i ? "," : "", target->name, measure_ratio(target),
			target->is_lower_bound ? "at_least" : "at_most", target->bound,
			is_target_met(target) ? "true" : "false");
	}
	fprintf(stream, "\n  ]\n}\n");
}
