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
#include <string.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/explain.h"
#include "src/report/format.h"

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

enum {
	HTML_REPORT_MAX_INPUTS = 10, /* of other inputs only the number is shown */
	/* Bounds the size of the page: the first ranks are shown; --stats-json has all. */
	HTML_REPORT_MAX_RANKS = 200,
	HTML_REPORT_MAX_COLUMNS = 32,
};

/*
 * Write the numbers of each rank. Its times have a table of their own, so that both fit the page.
 */
static void put_rank_work(FILE *stream, const struct rank_stats *rank_stats)
{
	struct html_column columns[HTML_REPORT_MAX_COLUMNS] = { { "Rank", true } };
	const struct stat_field *column = NULL;
	unsigned n_columns = 1;

	while ((column = rank_column_next(rank_stats, column)))
		columns[n_columns++] = (struct html_column){ column->heading, true };
	html_open_table(stream, "Work of each rank", columns, n_columns);
	for (unsigned i = 0; i < rank_stats->n_ranks && i < HTML_REPORT_MAX_RANKS; i++) {
		html_print(stream, "<tr><th scope=\"row\" class=\"number\">%u</th>\n", i);
		while ((column = rank_column_next(rank_stats, column)))
			html_print(stream, "<td class=\"number\">%s</td>\n",
				   rank_column_format(column, &rank_stats->ranks[i]).text);
		html_print(stream, "</tr>\n");
	}
	html_close_table(stream);
}

static void put_rank_times(FILE *stream, const struct rank_stats *rank_stats)
{
	const struct phase_totals *phases = rank_stats->total.totals.phases;
	struct html_column columns[3 + N_PHASES] = { { "Rank", true },
						     { "Host", false },
						     { "Device", false } };
	unsigned n_columns = 3;

	for (enum phase i = 0; i < N_PHASES; i++)
		if (phases[i].has_begun)
			columns[n_columns++] = (struct html_column){ phase_name(i), true };
	html_open_table(stream, "Time of each rank in each phase", columns, n_columns);
	for (unsigned i = 0; i < rank_stats->n_ranks && i < HTML_REPORT_MAX_RANKS; i++) {
		const struct rank_summary *entry = &rank_stats->ranks[i];

		html_print(stream, "<tr><th scope=\"row\" class=\"number\">%u</th>\n", i);
		html_print(stream, "<td>%s</td>\n<td>%s</td>\n", rank_stats->hosts[i],
			   entry->summary.backend);
		for (enum phase j = 0; j < N_PHASES; j++) {
			double s;

			if (!phases[j].has_begun)
				continue;
			s = ns_to_seconds(entry->totals.phases[j].elapsed_ns);
			html_print(stream, "<td class=\"number\">%s</td>\n", format_time(s).text);
		}
		html_print(stream, "</tr>\n");
	}
	html_close_table(stream);
}

static void write_ranks(const struct html_page *page)
{
	const struct rank_stats *rank_stats = page->rank_stats;

	if (!rank_stats)
		return;
	html_open_section(page->stream, "ranks", "Ranks");
	html_print(
		page->stream,
		"<p>%u rank%s. Imbalance of the output: %.2f %%. Figures above are sums over all "
		"ranks, and times are those of the slowest rank. Charts over time show "
		"rank 0.</p>\n",
		rank_stats->n_ranks, plural_ending(rank_stats->n_ranks),
		100 * rank_stats_imbalance(rank_stats));
	put_rank_work(page->stream, rank_stats);
	put_rank_times(page->stream, rank_stats);
	html_print(page->stream, "</section>\n");
}

static bool is_check(const struct html_page *page)
{
	return !page->summary->backend[0];
}

/* Write "134,217,728 records sorted in 2.27 s". */
static void put_headline(const struct html_page *page, const struct html_report *report)
{
	const struct sort_summary *summary = page->summary;
	const double s = ns_to_seconds(page->totals.elapsed_ns);
	char device[DEVICE_NBYTES];
	FILE *const stream = page->stream;

	if (!sort_summary_is_known(summary)) { /* a resumed sort that was complete */
		html_print(stream, "<h1>The sort was already complete</h1>\n");
		return;
	}
	html_print(stream, "<h1>%s %s %s in %s</h1>\n<p class=\"lead\">",
		   format_count(summary->n_records_in).text, sort_summary_unit(summary),
		   is_check(page)    ? "checked" :
		   summary->is_merge ? "merged" :
				       "sorted",
		   format_time(s).text);
	if (is_check(page))
		html_print(stream, "<strong>%s</strong>\n",
			   report->has_disorder ? "Not in order. " : "In order. ");
	html_print(stream, "%s of %s, %s", size_format(summary->input_nbytes).text, summary->type,
		   format_rate(summary->input_nbytes, s).text);
	if (!is_check(page)) {
		stats_report_format_device(report->stats_report, device);
		html_print(stream, ", on %s. All %s were verified.", device,
			   sort_summary_unit(summary));
	}
	html_print(stream, "</p>\n");
}

static void put_header(const struct html_page *page, const struct html_report *report)
{
	const struct {
		const char *id, *name;
		bool is_omitted;
	} sections[] = {
		{ "summary", "Summary", false },
		{ "phases", "Phases", false },
		{ "stages", "Stages", false },
		{ "ranks", "Ranks", !page->rank_stats },
		{ "roles", "Activity", false },
		{ "queues", "GPU queues", !html_page_has_queues(page) },
		{ "throughput", "Throughput", false },
		{ "space", "Memory and space", false },
		{ "plan", "Files and plan", false },
	};

	html_print(page->stream, "<header><p class=\"brand\">" GSORT_PROGRAM " report</p>\n");
	put_headline(page, report);
	html_print(page->stream, "<nav aria-label=\"Sections of the report\">\n");
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		if (!sections[i].is_omitted)
			html_print(page->stream, "<a href=\"#%s\">%s</a>\n", sections[i].id,
				   sections[i].name);
	html_print(page->stream, "</nav>\n</header>\n");
}

/* The format of a number with its name and a note; the note's format follows. */
#define METRIC(note)                                                                               \
	"<div><dt>%s</dt>\n<dd><strong>%s</strong>\n<span>" note "</span>\n</dd>\n</div>\n"

static void put_sort_metrics(const struct html_page *page)
{
	const struct sort_summary *summary = page->summary;
	const struct number_text peak = size_format(summary->peak_temp_nbytes);

	if (summary->spilled.items_nbytes)
		html_print(page->stream, METRIC("peak; compressed to %s (%.1f %%) with %s"),
			   "Temporary space", peak.text,
			   size_format(summary->spilled.stored_nbytes).text,
			   spill_ratio_percent(&summary->spilled), summary->spilled.codec);
	else
		html_print(page->stream, METRIC("nothing was spilled"), "Temporary space",
			   peak.text);
	html_print(page->stream, METRIC("%" PRIu64 " spilled"), "Runs",
		   format_count(summary->n_runs).text, summary->n_runs_spilled);
	html_print(page->stream,
		   METRIC("final merge in %" PRIu64 " partition%s, %" PRIu64 " window%s"), "Passes",
		   format_count(summary->n_passes).text, summary->n_partitions,
		   plural_ending(summary->n_partitions), summary->n_windows,
		   plural_ending(summary->n_windows));
	html_print(page->stream,
		   METRIC("%s through the page cache, %s by direct I/O, %s through mappings"),
		   "Written", format_count(summary->n_records_out).text,
		   size_format(summary->written.cached_nbytes).text,
		   size_format(summary->written.direct_nbytes).text,
		   size_format(summary->written.mmap_nbytes).text);
}

static void put_metrics(const struct html_page *page)
{
	const struct sort_summary *summary = page->summary;
	const struct stats_usage *usage = &page->totals.usage;
	const struct number_text size = size_format(summary->input_nbytes),
				 count = format_count(summary->n_records_in);
	const double s = ns_to_seconds(page->totals.elapsed_ns);
	const double cpu_s = ns_to_seconds(usage->user_ns) + ns_to_seconds(usage->system_ns);

	html_open_section(page->stream, "summary", "Summary");
	html_print(page->stream, "<dl class=\"figures\">\n");
	if (summary->record_nbytes > 0)
		html_print(page->stream, METRIC("%s of records, each of %" PRIu64 " bytes"), "Read",
			   count.text, size.text, summary->record_nbytes);
	else
		html_print(page->stream, METRIC("%s of %s"), "Read", count.text, size.text,
			   summary->type);
	html_print(page->stream, METRIC("%s of input"), "Time", format_time(s).text,
		   format_rate(summary->input_nbytes, s).text);
	html_print(page->stream, METRIC("peak RSS%s%s"), "Memory",
		   size_format(usage->peak_rss_nbytes).text, is_check(page) ? "" : "; -S ",
		   is_check(page) ? "" : size_format(summary->buffer_nbytes).text);
	html_print(page->stream, METRIC("%.1f processors busy; %.0f %% system"), "Processor time",
		   format_time(cpu_s).text, s > 0 ? cpu_s / s : 0,
		   cpu_s > 0 ? 100 * ns_to_seconds(usage->system_ns) / cpu_s : 0);
	if (!is_check(page))
		put_sort_metrics(page);
	html_print(page->stream, "</dl>\n</section>\n");
}

static void put_row(void *stream, const char *name, const char *value)
{
	html_print(stream, "<tr><th scope=\"row\">%s</th>\n<td>%s</td>\n</tr>\n", name, value);
}

static void put_files(const struct html_page *page, const struct html_report *report)
{
	static const struct html_column columns[] = { { "Role", false }, { "File", false } };
	FILE *const stream = page->stream;

	html_open_table(stream, "Files", columns, 2);
	for (size_t i = 0; i < report->n_inputs && i < HTML_REPORT_MAX_INPUTS; i++)
		put_row(stream, "input",
			strcmp(report->inputs[i], "-") ? report->inputs[i] : "standard input");
	if (report->n_inputs > HTML_REPORT_MAX_INPUTS)
		html_print(stream,
			   "<tr><th scope=\"row\">inputs</th>\n<td>and %zu more</td>\n</tr>\n",
			   report->n_inputs - HTML_REPORT_MAX_INPUTS);
	if (report->n_part_files && !is_check(page))
		html_print(
			stream,
			"<tr><th scope=\"row\">output</th>\n<td>%s, %zu part file%s</td>\n</tr>\n",
			report->output, report->n_part_files, plural_ending(report->n_part_files));
	else if (!is_check(page))
		put_row(stream, "output", report->output ? report->output : "standard output");
	html_close_table(stream);
}

static void put_plan(const struct html_page *page, const struct html_report *report)
{
	static const struct html_column columns[] = { { "Item", false }, { "Plan", false } };

	html_open_section(page->stream, "plan", is_check(page) ? "Files" : "Files and plan");
	put_files(page, report);
	if (page->summary->plan.memory_nbytes > 0) {
		html_open_table(page->stream, "Plan, as --explain has it", columns, 2);
		plan_text_for_each(&page->summary->plan, put_row, page->stream);
		html_close_table(page->stream);
	}
	html_print(page->stream, "</section>\n");
}

static void put_footer(const struct html_page *page, const struct html_report *report)
{
	char text[64] = "";
	struct tm utc;

	if (gmtime_r(&report->created_at, &utc))
		strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
	html_print(
		page->stream,
		"<footer><p>Stages work at the same time, most of them on several threads. Busy is "
		"the sum of the times of all threads. Active is the time in which at least one "
		"thread worked. The stage that was active longest, and at least half of the "
		"phase, is the bottleneck.</p>\n"
		"<p>" GSORT_PROGRAM " %s, %s</p>\n</footer>\n",
		GSORT_VERSION, text);
}

void html_report_write(const struct html_report *report, FILE *stream)
{
	struct html_page page = { .stream = stream,
				  .rank_stats = report->stats_report->rank_stats,
				  .summary = stats_report_summary(report->stats_report),
				  .time_series = report->time_series };

	stats_report_totals(report->stats_report, &page.totals);
	fputs("<!DOCTYPE html>\n"
	      "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<title>" GSORT_PROGRAM " report</title>\n<style>",
	      stream);
	fputs(css, stream);
	fputs("</style>\n</head>\n<body>", stream);
	put_header(&page, report);
	html_print(stream, "<main>");
	put_metrics(&page);
	html_page_write_phases(&page);
	html_page_write_stages(&page);
	write_ranks(&page);
	html_page_write_roles(&page);
	html_page_write_queues(&page);
	html_page_write_throughput(&page);
	html_page_write_space(&page);
	put_plan(&page, report);
	html_print(stream, "</main>\n");
	put_footer(&page, report);
	html_print(stream, "</body>\n</html>\n");
}
