/*
 * bench_report - tables and JSON of a benchmark (see bench_report.h)
 */
#include "tools/bench/bench_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "config.h"
#include "src/base/size.h"
#include "tools/bench/bench_median.h"

static double elapsed_s(const struct bench_case *one)
{
	uint64_t ns[BENCH_MOST_REPEATS];

	for (unsigned i = 0; i < one->n_costs; i++)
		ns[i] = one->costs[i].elapsed_ns;
	return bench_median_ns(ns, one->n_costs) * 1e-9;
}

/* Unlike the time that passes it hardly depends on what else the machine does. */
static double processor_s(const struct bench_case *one)
{
	uint64_t ns[BENCH_MOST_REPEATS];

	for (unsigned i = 0; i < one->n_costs; i++)
		ns[i] = one->costs[i].processor_ns;
	return bench_median_ns(ns, one->n_costs) * 1e-9;
}

static uint64_t peak_rss_nbytes(const struct bench_case *one)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < one->n_costs; i++)
		if (peak < one->costs[i].peak_rss_nbytes)
			peak = one->costs[i].peak_rss_nbytes;
	return peak;
}

static double figure_value(const struct bench_figure *figure)
{
	const double over = elapsed_s(figure->over);

	if (!figure->under)
		return over;
	return over / (double)figure->over->input_nbytes /
	       (elapsed_s(figure->under) / (double)figure->under->input_nbytes);
}

static bool is_met(const struct bench_figure *figure)
{
	const double value = figure_value(figure);

	return figure->at_least ? value >= figure->target : value <= figure->target;
}

void bench_report_print(const struct bench_report *report)
{
	printf("%-26s %10s %10s %12s %8s %12s\n", "", "input", "seconds", "on processor", "MB/s",
	       "peak memory");
	for (unsigned i = 0; i < report->n_cases; i++) {
		const struct bench_case *one = &report->cases[i];
		char input[32], peak[32];

		size_format(one->input_nbytes, input);
		size_format(peak_rss_nbytes(one), peak);
		printf("%-26s %10s %10.4f %12.4f %8.0f %12s\n", one->name, input, elapsed_s(one),
		       processor_s(one), (double)one->input_nbytes * 1e-6 / elapsed_s(one), peak);
	}
	printf("\n%-36s %10s %10s\n", "", "measured", "target");
	for (unsigned i = 0; i < report->n_figures; i++) {
		const struct bench_figure *figure = &report->figures[i];

		printf("%-36s %10.3f %4s %5g%s\n", figure->name, figure_value(figure),
		       figure->at_least ? ">=" : "<=", figure->target,
		       is_met(figure) ? "" : "  missed");
	}
}

static void print_json_case(const struct bench_case *one, FILE *stream)
{
	fprintf(stream,
		"\n    {\"name\": \"%s\", \"input_bytes\": %" PRIu64
		", \"median_s\": %.6f, \"processor_s\": %.6f, \"peak_rss_bytes\": %" PRIu64
		", \"seconds\": [",
		one->name, one->input_nbytes, elapsed_s(one), processor_s(one),
		peak_rss_nbytes(one));
	for (unsigned i = 0; i < one->n_costs; i++)
		fprintf(stream, "%s%.6f", i ? ", " : "", (double)one->costs[i].elapsed_ns * 1e-9);
	fprintf(stream, "]}");
}

void bench_report_print_json(const struct bench_report *report, FILE *stream)
{
	fprintf(stream,
		"{\n  \"version\": \"%s\",\n  \"processors\": %u,\n  \"size_bytes\": %" PRIu64
		",\n  \"cases\": [",
		GSORT_VERSION, report->n_processors, report->input_nbytes);
	for (unsigned i = 0; i < report->n_cases; i++) {
		fputs(i ? "," : "", stream);
		print_json_case(&report->cases[i], stream);
	}
	fprintf(stream, "\n  ],\n  \"figures\": [");
	for (unsigned i = 0; i < report->n_figures; i++) {
		const struct bench_figure *figure = &report->figures[i];

		fprintf(stream,
			"%s\n    {\"name\": \"%s\", \"measured\": %.6f, \"%s\": %g, \"met\": %s}",
			i ? "," : "", figure->name, figure_value(figure),
			figure->at_least ? "at_least" : "at_most", figure->target,
			is_met(figure) ? "true" : "false");
	}
	fprintf(stream, "\n  ]\n}\n");
}
