/*
 * html_report - a sort as one page of HTML (see html_report.h)
 *
 * Here is the frame: what was sorted and how, first in a sentence, then in numbers, then the plan.
 * The pictures are html_report_phases.c, html_report_activity.c and html_report_throughput.c.
 */
#include "src/report/html_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/format_numbers.h"
#include "src/report/html_report_internal.h"
#include "src/report/plan_text.h"

/* Names of inputs that are shown; of the others it is said how many they are. */
enum { HTML_REPORT_MAX_INPUTS = 10, CELL_NBYTES = 256 };

const char *stage_css_class(enum stage stage, char text[static STAGE_CLASS_NBYTES])
{
	snprintf(text, STAGE_CLASS_NBYTES, "work of-%s", stage_name(stage));
	return text;
}

void html_report_open_table(struct html *html, const char *caption,
			    const struct html_report_column *columns, unsigned n)
{
	html_open_with_class(html, "div", "table");
	html_attribute(html, "role", "region");
	html_attribute(html, "tabindex", "0");
	html_attribute(html, "aria-label", "%s", caption);
	html_open_with_class(html, "table", n == 2 ? "pairs" : "sums");
	html_element(html, "caption", "%s", caption);
	html_open(html, "thead");
	html_open(html, "tr");
	for (unsigned i = 0; i < n; i++) {
		html_open(html, "th");
		html_attribute(html, "scope", "col");
		if (columns[i].is_number)
			html_attribute(html, "class", "number");
		html_text(html, "%s", columns[i].name);
		html_close(html);
	}
	html_close(html);
	html_close(html);
	html_open(html, "tbody");
}

static void put_cell(struct html *html, const char *element, const char *class, const char *format,
		     va_list args)
{
	char text[CELL_NBYTES];

	vsnprintf(text, sizeof text, format, args);
	html_open(html, element);
	if (!strcmp(element, "th"))
		html_attribute(html, "scope", "row");
	if (class)
		html_attribute(html, "class", "%s", class);
	html_text(html, "%s", text);
	html_close(html);
}

void html_report_header_cell(struct html *html, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_cell(html, "th", NULL, format, args);
	va_end(args);
}

void html_report_text_cell(struct html *html, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_cell(html, "td", NULL, format, args);
	va_end(args);
}

void html_report_number_cell(struct html *html, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_cell(html, "td", "number", format, args);
	va_end(args);
}

void html_report_open_section(struct html *html, const char *id, const char *heading)
{
	html_open(html, "section");
	html_attribute(html, "aria-labelledby", "%s", id);
	html_open(html, "h2");
	html_attribute(html, "id", "%s", id);
	html_text(html, "%s", heading);
	html_close(html);
}

void html_report_open_figure(struct html *html, const char *label)
{
	html_open(html, "figure");
	html_attribute(html, "role", "region");
	html_attribute(html, "tabindex", "0");
	html_attribute(html, "aria-label", "%s", label);
}

static bool is_check(const struct html_report_writer *writer)
{
	return !writer->summary->backend[0];
}

static const char *operation_verb(const struct html_report_writer *writer)
{
	return is_check(writer) ? "checked" : writer->summary->plan.n_chunks ? "sorted" : "merged";
}

static uint64_t input_nbytes(const struct html_report_writer *writer)
{
	return writer->summary->n_records_in * writer->summary->record_nbytes;
}

/* "134,217,728 records sorted in 2.27 s" */
static void put_headline(struct html_report_writer *writer)
{
	const struct sort_summary *summary = writer->summary;
	const double s = ns_to_seconds(writer->totals.elapsed_ns);
	char count[32], time[32], size[32], rate[40];

	format_count(summary->n_records_in, count);
	format_time(s, time);
	size_format(input_nbytes(writer), size);
	format_rate(input_nbytes(writer), s, rate);
	if (summary->record_nbytes == 0) { /* an earlier process has done it all */
		html_element(&writer->html, "h1", "The sort was already complete");
		return;
	}
	html_element(&writer->html, "h1", "%s records %s in %s", count, operation_verb(writer),
		     time);
	html_open_with_class(&writer->html, "p", "lead");
	if (is_check(writer))
		html_element(&writer->html, "strong", "%s",
			     writer->report->has_disorder ? "Not in order. " : "In order. ");
	html_text(&writer->html, "%s of %s, %s", size, summary->type, rate);
	if (!is_check(writer))
		html_text(&writer->html, ", on %s. All records were verified.", summary->backend);
	html_close(&writer->html);
}

static void put_header(struct html_report_writer *writer)
{
	static const struct {
		const char *id, *name;
	} sections[] = { { "summary", "Summary" },       { "phases", "Phases" },
			 { "links", "Links" },           { "ranks", "Ranks" },
			 { "roles", "Activity" },        { "queues", "GPU queues" },
			 { "throughput", "Throughput" }, { "space", "Memory and space" },
			 { "plan", "Files and plan" } };
	struct html *html = &writer->html;

	html_open(html, "header");
	html_element_with_class(html, "p", "brand", GSORT_PROGRAM " report");
	put_headline(writer);
	html_open(html, "nav");
	html_attribute(html, "aria-label", "Sections of the report");
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
		if (!strcmp(sections[i].id, "queues") && !html_report_has_queues(writer))
			continue;
		if (!strcmp(sections[i].id, "ranks") && !html_report_has_ranks(writer))
			continue;
		html_open(html, "a");
		html_attribute(html, "href", "#%s", sections[i].id);
		html_text(html, "%s", sections[i].name);
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

/* A number with its name, and what is to be said of it. */
__attribute__((format(printf, 4, 5))) static void
put_metric(struct html *html, const char *name, const char *value, const char *format, ...)
{
	char note[CELL_NBYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(note, sizeof note, format, args);
	va_end(args);
	html_open(html, "div");
	html_element(html, "dt", "%s", name);
	html_open(html, "dd");
	html_element(html, "strong", "%s", value);
	html_element(html, "span", "%s", note);
	html_close(html);
	html_close(html);
}

static void put_process_metrics(struct html_report_writer *writer)
{
	const struct stats_totals *totals = &writer->totals;
	const double cpu_s =
		ns_to_seconds(totals->usage.user_ns) + ns_to_seconds(totals->usage.system_ns);
	const double s = ns_to_seconds(totals->elapsed_ns);
	char value[32], limit[32];

	size_format(totals->usage.peak_rss_nbytes, value);
	size_format(writer->summary->buffer_nbytes, limit);
	if (is_check(writer))
		put_metric(&writer->html, "Memory", value, "peak RSS");
	else
		put_metric(&writer->html, "Memory", value, "peak RSS; -S %s", limit);
	format_time(cpu_s, value);
	put_metric(&writer->html, "Processor time", value, "%.1f processors busy; %.0f %% system",
		   s > 0 ? cpu_s / s : 0,
		   cpu_s > 0 ? 100 * ns_to_seconds(totals->usage.system_ns) / cpu_s : 0);
}

static void put_spill_metric(struct html_report_writer *writer)
{
	const struct sort_summary *summary = writer->summary;
	char value[32], stored[32];

	size_format(summary->peak_temp_nbytes, value);
	if (!summary->spilled.items_nbytes) {
		put_metric(&writer->html, "Temporary space", value, "nothing was spilled");
		return;
	}
	size_format(summary->spilled.stored_nbytes, stored);
	put_metric(&writer->html, "Temporary space", value,
		   "peak; compressed to %s (%.1f %%) with %s", stored,
		   spill_ratio_percent(&summary->spilled), summary->spilled.codec);
}

static void put_sort_metrics(struct html_report_writer *writer)
{
	const struct sort_summary *summary = writer->summary;
	char value[32], cached[32], direct[32], mapped[32];

	put_spill_metric(writer);
	format_count(summary->n_runs, value);
	put_metric(&writer->html, "Runs", value, "%" PRIu64 " spilled", summary->n_runs_spilled);
	format_count(summary->n_passes, value);
	put_metric(&writer->html, "Passes", value,
		   "final merge in %" PRIu64 " partition%s, %" PRIu64 " windows",
		   summary->n_partitions, summary->n_partitions == 1 ? "" : "s",
		   summary->n_windows);
	format_count(summary->n_records_out, value);
	size_format(summary->written.cached_nbytes, cached);
	size_format(summary->written.direct_nbytes, direct);
	size_format(summary->written.mmap_nbytes, mapped);
	put_metric(&writer->html, "Records written", value, "%s cached, %s direct, %s mmap", cached,
		   direct, mapped);
}

static void put_metrics(struct html_report_writer *writer)
{
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	char value[32], rate[40], size[32];

	html_report_open_section(html, "summary", "Summary");
	html_open_with_class(html, "dl", "figures");
	format_count(writer->summary->n_records_in, value);
	size_format(input_nbytes(writer), size);
	put_metric(html, "Records read", value, "%s, each of %" PRIu64 " bytes", size,
		   writer->summary->record_nbytes);
	format_time(ns_to_seconds(writer->totals.elapsed_ns), value);
	format_rate(input_nbytes(writer), ns_to_seconds(writer->totals.elapsed_ns), rate);
	put_metric(html, "Time", value, "%s of input", rate);
	put_process_metrics(writer);
	if (!is_check(writer))
		put_sort_metrics(writer);
	html_close_to(html, depth);
}

static void put_plan_row(void *context, const char *name, const char *value)
{
	struct html *html = context;

	html_open(html, "tr");
	html_report_header_cell(html, "%s", name);
	html_report_text_cell(html, "%s", value);
	html_close(html);
}

/* A name may be of any length. */
__attribute__((format(printf, 3, 4))) static void put_file(struct html *html, const char *role,
							   const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	html_open(html, "tr");
	html_report_header_cell(html, "%s", role);
	html_element(html, "td", "%s", text);
	html_close(html);
	free(text);
}

static void put_output(struct html *html, const struct html_report *report)
{
	if (report->n_part_files)
		put_file(html, "output", "%s.parts, %zu part files", report->output,
			 report->n_part_files);
	else
		put_file(html, "output", "%s", report->output ? report->output : "standard output");
}

static void put_files(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = { { "Role", false }, { "File", false } };
	const struct html_report *report = writer->report;
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	html_report_open_table(html, "Files", columns, 2);
	for (size_t i = 0; i < report->n_inputs && i < HTML_REPORT_MAX_INPUTS; i++)
		put_file(html, "input", "%s",
			 strcmp(report->inputs[i], "-") ? report->inputs[i] : "standard input");
	if (report->n_inputs > HTML_REPORT_MAX_INPUTS)
		put_file(html, "inputs", "and %zu more", report->n_inputs - HTML_REPORT_MAX_INPUTS);
	if (!is_check(writer))
		put_output(html, report);
	html_close_to(html, depth);
}

static void put_plan(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = { { "Item", false }, { "Plan", false } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	html_report_open_section(html, "plan", is_check(writer) ? "Files" : "Files and plan");
	put_files(writer);
	if (!is_check(writer)) {
		html_report_open_table(html, "Plan, as --explain has it", columns, 2);
		plan_text_for_each(&writer->summary->plan, put_plan_row, html);
	}
	html_close_to(html, depth);
}

static void put_head(struct html *html)
{
	html_raw(html, "<!DOCTYPE html>\n");
	html_open(html, "html");
	html_attribute(html, "lang", "en");
	html_open(html, "head");
	html_open(html, "meta");
	html_attribute(html, "charset", "utf-8");
	html_close(html);
	html_open(html, "meta");
	html_attribute(html, "name", "viewport");
	html_attribute(html, "content", "width=device-width, initial-scale=1");
	html_close(html);
	html_open(html, "meta");
	html_attribute(html, "name", "color-scheme");
	html_attribute(html, "content", "light dark");
	html_close(html);
	html_element(html, "title", GSORT_PROGRAM " report");
	html_open(html, "style");
	html_raw(html, html_report_css);
	html_close(html);
	html_close(html);
}

static void put_footer(struct html_report_writer *writer)
{
	struct html *html = &writer->html;
	char text[64] = "";
	struct tm utc;

	if (gmtime_r(&writer->report->created_at, &utc))
		strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
	html_open(html, "footer");
	html_element(html, "p",
		     "Stages work at the same time, each on several threads: busy adds these up, "
		     "running is the time in which at least one was at work. The stage that ran "
		     "longest, and for half of a phase at least, held the others up.");
	html_element(html, "p", GSORT_PROGRAM " %s, %s", GSORT_VERSION, text);
	html_close(html);
}

void html_report_write(const struct html_report *report, FILE *stream)
{
	struct html_report_writer writer = { .html = { .stream = stream },
					     .report = report,
					     .summary = stats_report_summary(report->stats_report),
					     .time_series = report->time_series };
	struct html *html = &writer.html;

	stats_report_totals(report->stats_report, &writer.totals);
	put_head(html);
	html_open(html, "body");
	put_header(&writer);
	html_open(html, "main");
	put_metrics(&writer);
	html_report_write_phases(&writer);
	html_report_write_stages(&writer);
	html_report_write_ranks(&writer);
	html_report_write_roles(&writer);
	html_report_write_queues(&writer);
	html_report_write_throughput(&writer);
	html_report_write_space(&writer);
	put_plan(&writer);
	html_close(html);
	put_footer(&writer);
	html_close_to(html, 0);
}
