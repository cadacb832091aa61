/*
 * html_report.c - a sort as one page of HTML (see html_report.h)
 *
 * This file writes the style, headline, metrics, ranks, files and plan. The charts and their tables
 * are in html_report_chart.c.
 *
 * The colours of stages can be told apart without distinguishing red from green, and follow the
 * role: blue reads, green and yellow work, violet writes.
 */
#include "src/report/html_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/explain.h"
#include "src/report/format.h"
#include "src/report/html_report_internal.h"

/* --- style --- */

static const char css[] =
	":root{--paper:#fcfcfa;--card:#fff;--ink:#1b1f24;--soft:#59636e;--rule:#dfe2e5;"
	"--trough:#eef0f2;--link:#1f5fa8;--mark:#c9ced4;--limit:#b3261e;"
	"--read:#3d7fc4;--upload:#7fb2e5;--encode:#a3c763;--sort:#2f9467;--fetch:#2a9fb5;"
	"--unpack:#7cc6b4;--cut:#8f8a2f;--merge:#e3960f;--decode:#f0cb57;--pack:#c4774a;"
	"--download:#a5a9ea;--spill:#c2559b;--write:#7352bd;--verify:#7d8792;"
	"--runs:#3d7fc4;--passes:#c2559b;--check:#7d8792}\n"
	"@media(prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1b1f25;--ink:#e8eaed;"
	"--soft:#a2abb6;--rule:#31373f;--trough:#262b32;--link:#82b7f2;--mark:#3b424b;"
	"--limit:#ff8a80;--read:#5b9bdf;--upload:#8fc1f2;--encode:#9dbd63;--sort:#3fae7c;"
	"--fetch:#3fb6cc;--unpack:#82cdbb;--cut:#aaa54a;--merge:#f0a92e;--decode:#e9ca66;"
	"--pack:#d58b5f;--download:#a9adf0;--spill:#d96fb3;--write:#9778e0;--verify:#939daa}}\n"
	"*{box-sizing:border-box}\n"
	"html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}\n"
	"@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}\n"
	"body{margin:0 auto;max-width:1040px;padding:40px 24px 32px;background:var(--paper);"
	"color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
	"a{color:var(--link)}\n"
	":focus-visible{outline:2px solid var(--link);outline-offset:3px;border-radius:3px}\n"
	".brand{margin:0 0 6px;color:var(--soft);font-size:13px;font-weight:600;"
	"letter-spacing:.08em;text-transform:uppercase}\n"
	"h1{margin:0;font-size:34px;line-height:1.15;letter-spacing:-.02em;font-weight:680;"
	"text-wrap:balance}\n"
	".lead{margin:10px 0 0;color:var(--soft);font-size:18px}\n"
	".lead strong{color:var(--ink)}\n"
	"nav{display:flex;flex-wrap:wrap;gap:4px 20px;margin-top:22px;padding:10px 0;"
	"border-top:1px solid var(--rule);border-bottom:1px solid var(--rule);font-size:14px}\n"
	"nav a{text-decoration:none}nav a:hover{text-decoration:underline}\n"
	"section{margin-top:48px}\n"
	"h2{margin:0 0 16px;font-size:22px;line-height:1.25;letter-spacing:-.01em}\n"
	"h3{margin:32px 0 2px;font-size:16px}h3::first-letter{text-transform:uppercase}\n"
	"p{margin:0 0 12px}section p{color:var(--soft)}section p strong{color:var(--ink)}\n"
	".figures{display:grid;grid-template-columns:repeat(4,1fr);gap:1px;margin:0;"
	"border:1px solid var(--rule);border-radius:10px;overflow:hidden;background:var(--rule)}\n"
	"@media(max-width:860px){.figures{grid-template-columns:repeat(2,1fr)}h1{font-size:28px}}\n"
	"@media(max-width:460px){.figures{grid-template-columns:1fr}}\n"
	".figures div{padding:14px 16px 16px;background:var(--card)}\n"
	"dt{color:var(--soft);font-size:13px}dd{margin:0}\n"
	"dd strong{display:block;margin:2px 0;font-size:21px;font-weight:640;line-height:1.25;"
	"letter-spacing:-.01em;font-variant-numeric:tabular-nums}\n"
	"dd span{display:block;color:var(--soft);font-size:13px;line-height:1.4}\n"
	"figure{margin:0 0 16px;padding:18px 18px 12px;overflow-x:auto;"
	"border:1px solid var(--rule);border-radius:10px;background:var(--card)}\n"
	"svg{display:block;width:100%;min-width:680px;height:auto;font:12px system-ui,"
	"-apple-system,'Segoe UI',Roboto,sans-serif;font-variant-numeric:tabular-nums}\n"
	"text{fill:var(--soft)}text.name{fill:var(--ink);font-weight:600;font-size:13px}\n"
	"text.mark{text-anchor:middle}text.first{text-anchor:start}text.last{text-anchor:end}\n"
	"line{stroke:var(--rule)}line.mark{stroke:var(--mark);stroke-dasharray:1 4}"
	"line.ground{stroke:var(--mark)}line.top{stroke:none}\n"
	"line.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 4}\n"
	"svg .span{fill:var(--trough);opacity:.55;stroke:var(--paper);stroke-width:2}\n"
	".work,.gauge{fill:var(--c)}.phase,.key i,.bar i{background:var(--c)}\n"
	".phases{display:flex;gap:2px;margin:0 0 16px}"
	".phases span{flex:0 1 0;min-width:3px;padding:7px 0;border-radius:4px;overflow:hidden;"
	"color:#fff;font-size:13px;font-weight:600;text-indent:10px;white-space:nowrap}\n"
	".bar{min-width:104px}.bar i{display:block;height:4px;margin-top:3px;border-radius:2px}\n"
	".of-read{--c:var(--read)}.of-upload{--c:var(--upload)}.of-encode{--c:var(--encode)}"
	".of-sort{--c:var(--sort)}.of-fetch{--c:var(--fetch)}.of-unpack{--c:var(--unpack)}"
	".of-cut{--c:var(--cut)}.of-merge{--c:var(--merge)}.of-decode{--c:var(--decode)}"
	".of-pack{--c:var(--pack)}.of-download{--c:var(--download)}.of-spill{--c:var(--spill)}"
	".of-write{--c:var(--write)}.of-verify{--c:var(--verify)}\n"
	".phase.of-run_generation{--c:#3a76b8}.phase.of-merge_passes{--c:#b0478a}"
	".phase.of-final_merge{--c:#6a49b3}.phase.of-verify{--c:#636d78}\n"
	".gauge.of-memory{--c:var(--read)}.gauge.of-temporary{--c:var(--spill)}"
	".gauge.of-written{--c:var(--write)}.gauge{opacity:.85}\n"
	"figcaption{display:flex;flex-wrap:wrap;gap:4px 18px;padding:2px 0 4px 14%;"
	"color:var(--soft);font-size:13px}figcaption:empty{display:none}\n"
	".key i{display:inline-block;width:11px;height:11px;margin-right:6px;border-radius:3px}\n"
	".table{overflow-x:auto;margin:0 0 12px}\n"
	"table{width:100%;border-collapse:collapse;font-size:14px;"
	"font-variant-numeric:tabular-nums}\n"
	"caption{padding:6px 0;color:var(--soft);font-size:13px;text-align:left}\n"
	"th,td{padding:6px 14px;border-bottom:1px solid var(--rule);text-align:left;"
	"vertical-align:top}\n"
	"thead th{color:var(--soft);font-size:13px;font-weight:500;white-space:nowrap}"
	"thead th::first-letter{text-transform:uppercase}\n"
	".pairs th:first-child{width:24%}.pairs td{overflow-wrap:anywhere}"
	"tbody th{font-weight:600;white-space:nowrap}td{min-width:4em}\n"
	".number{text-align:right;white-space:nowrap}\n"
	"th:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}\n"
	"tr.longest th::after{content:' \\25c0';color:var(--limit)}\n"
	"footer{margin-top:48px;padding-top:14px;border-top:1px solid var(--rule);"
	"color:var(--soft);font-size:13px}\n"
	"@media print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#444;--rule:#ccc;"
	"--trough:#eee;--mark:#bbb;--limit:#b3261e}"
	"body{max-width:none;padding:0;font-size:11pt}nav{display:none}"
	"figure,tr,.figures div{break-inside:avoid}h2,h3{break-after:avoid}"
	"figure,.table{overflow:visible}svg{min-width:0}section{margin-top:24px}"
	"table{font-size:9pt}th,td{padding:4px 6px}"
	"*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n";

/* --- the page --- */

/* The maximum number of inputs that are named; of others only the number is shown. */
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

/* Bounds the size of the page: the first ranks are shown; --stats-json has all. */
enum { HTML_REPORT_MAX_RANKS = 200, HTML_REPORT_MAX_COLUMNS = 32 };

static bool has_ranks(const struct html_report_writer *writer)
{
	return writer->report->stats_report->rank_stats != NULL;
}

void html_report_open_time_section(struct html_report_writer *writer, const char *id,
				   const char *heading)
{
	const struct rank_stats *rank_stats = writer->report->stats_report->rank_stats;

	html_report_open_section(&writer->html, id, heading);
	if (rank_stats)
		html_element(&writer->html, "p", "Rank 0 only, on %s; a trace has all ranks.",
			     rank_stats->hosts[0]);
}

/*
 * Write the numbers of each rank. Its times have a table of their own, so that both fit the page.
 */
static void put_rank_work(struct html *html, const struct rank_stats *rank_stats)
{
	struct html_report_column columns[HTML_REPORT_MAX_COLUMNS] = { { "Rank", true } };
	const unsigned depth = html->depth;
	const struct stat_field *column = NULL;
	unsigned n_columns = 1;
	char text[32];

	while ((column = rank_column_next(rank_stats, column)))
		columns[n_columns++] = (struct html_report_column){ column->heading, true };
	html_report_open_table(html, "Work of each rank", columns, n_columns);
	for (unsigned i = 0; i < rank_stats->n_ranks && i < HTML_REPORT_MAX_RANKS; i++) {
		html_open(html, "tr");
		html_report_header_cell(html, "%u", i);
		while ((column = rank_column_next(rank_stats, column))) {
			rank_column_format(column, &rank_stats->ranks[i], text);
			html_report_number_cell(html, "%s", text);
		}
		html_close(html);
	}
	html_close_to(html, depth);
}

static void put_rank_times(struct html *html, const struct rank_stats *rank_stats)
{
	const struct phase_totals *phases = rank_stats->total.totals.phases;
	struct html_report_column columns[3 + N_PHASES] = { { "Rank", true },
							    { "Host", false },
							    { "Device", false } };
	const unsigned depth = html->depth;
	unsigned n_columns = 3;
	char text[32];

	for (enum phase i = 0; i < N_PHASES; i++)
		if (phases[i].has_begun)
			columns[n_columns++] = (struct html_report_column){ phase_name(i), true };
	html_report_open_table(html, "Time of each rank in each phase", columns, n_columns);
	for (unsigned i = 0; i < rank_stats->n_ranks && i < HTML_REPORT_MAX_RANKS; i++) {
		const struct rank_summary *entry = &rank_stats->ranks[i];

		html_open(html, "tr");
		html_report_header_cell(html, "%u", i);
		html_report_text_cell(html, "%s", rank_stats->hosts[i]);
		html_report_text_cell(html, "%s", entry->summary.backend);
		for (enum phase j = 0; j < N_PHASES; j++) {
			if (!phases[j].has_begun)
				continue;
			format_time(ns_to_seconds(entry->totals.phases[j].elapsed_ns), text);
			html_report_number_cell(html, "%s", text);
		}
		html_close(html);
	}
	html_close_to(html, depth);
}

static void write_ranks(struct html_report_writer *writer)
{
	const struct rank_stats *rank_stats = writer->report->stats_report->rank_stats;
	struct html *html = &writer->html;

	if (!rank_stats)
		return;
	html_report_open_section(html, "ranks", "Ranks");
	html_element(html, "p",
		     "%u ranks. Imbalance of the output: %.2f %%. Figures above are sums over all "
		     "ranks, and times are those of the slowest rank. Charts over time show "
		     "rank 0.",
		     rank_stats->n_ranks, 100 * rank_stats_imbalance(rank_stats));
	put_rank_work(html, rank_stats);
	put_rank_times(html, rank_stats);
	html_close(html);
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

/* Write "134,217,728 records sorted in 2.27 s". */
static void put_headline(struct html_report_writer *writer)
{
	const struct sort_summary *summary = writer->summary;
	const double s = ns_to_seconds(writer->totals.elapsed_ns);
	char count[32], time[32], size[32], rate[40], device[DEVICE_NBYTES];

	format_count(summary->n_records_in, count);
	format_time(s, time);
	size_format(input_nbytes(writer), size);
	format_rate(input_nbytes(writer), s, rate);
	if (summary->record_nbytes == 0) { /* a resumed sort that was complete */
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
	if (!is_check(writer)) {
		stats_report_format_device(writer->report->stats_report, device);
		html_text(&writer->html, ", on %s. All records were verified.", device);
	}
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
		if (!strcmp(sections[i].id, "ranks") && !has_ranks(writer))
			continue;
		html_open(html, "a");
		html_attribute(html, "href", "#%s", sections[i].id);
		html_text(html, "%s", sections[i].name);
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

/* Write a number with its name and a note. */
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

/* A path may be longer than a cell's text. */
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
		put_file(html, "output", "%s, %zu part files", report->output,
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
	html_raw(html, css);
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
	write_ranks(&writer);
	html_report_write_roles(&writer);
	html_report_write_queues(&writer);
	html_report_write_throughput(&writer);
	html_report_write_space(&writer);
	put_plan(&writer);
	html_close(html);
	put_footer(&writer);
	html_close_to(html, 0);
}
