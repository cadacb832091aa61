/*
 * html_report_ranks - the part of a page that is about several ranks (see html_report_internal.h)
 */
#include "src/report/rank_table.h"
#include "src/report/format_numbers.h"
#include "src/report/html_report_internal.h"

/* A page has a bounded size: of more ranks the first are shown, and --stats-json has all. */
enum { HTML_REPORT_MAX_RANKS = 200, HTML_REPORT_MAX_COLUMNS = 32 };

bool html_report_has_ranks(const struct html_report_writer *writer)
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

static void open_rank_table(struct html *html)
{
	struct html_report_column columns[HTML_REPORT_MAX_COLUMNS] = { { "Rank", true },
								       { "Host", false },
								       { "Device", false } };
	const struct rank_column *column;
	unsigned n = 3;

	for (unsigned i = 0; (column = rank_table_column(i)); i++)
		if (column->heading)
			columns[n++] = (struct html_report_column){ column->heading, true };
	for (enum phase i = 0; i < N_PHASES; i++)
		columns[n++] = (struct html_report_column){ phase_key(i), true };
	html_report_open_table(html, "Work of each rank", columns, n);
}

static void put_rank_row(struct html *html, const struct rank_stats *rank_stats, unsigned rank)
{
	const struct rank_summary *entry = &rank_stats->ranks[rank];
	const struct rank_column *column;
	char text[32];

	html_open(html, "tr");
	html_report_header_cell(html, "%u", rank);
	html_report_text_cell(html, "%s", rank_stats->hosts[rank]);
	html_report_text_cell(html, "%s", entry->summary.backend);
	for (unsigned i = 0; (column = rank_table_column(i)); i++) {
		if (!column->heading)
			continue;
		rank_table_format(column, entry, text);
		html_report_number_cell(html, "%s", text);
	}
	for (enum phase i = 0; i < N_PHASES; i++) {
		format_time(ns_to_seconds(entry->totals.phases[i].elapsed_ns), text);
		html_report_number_cell(html, "%s", text);
	}
	html_close(html);
}

void html_report_write_ranks(struct html_report_writer *writer)
{
	const struct rank_stats *rank_stats = writer->report->stats_report->rank_stats;
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	if (!rank_stats)
		return;
	html_report_open_section(html, "ranks", "Ranks");
	html_element(html, "p",
		     "%u ranks. Imbalance of the output: %.2f %%. Figures above are sums over all "
		     "ranks, and times are those of the slowest rank. Charts over time show "
		     "rank 0.",
		     rank_stats->n_ranks, 100 * rank_stats_imbalance(rank_stats));
	open_rank_table(html);
	for (unsigned i = 0; i < rank_stats->n_ranks && i < HTML_REPORT_MAX_RANKS; i++)
		put_rank_row(html, rank_stats, i);
	html_close_to(html, depth);
}
