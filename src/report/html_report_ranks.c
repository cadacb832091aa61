/*
 * html_report_ranks - the part of a page that is about several ranks (see html_report_internal.h)
 */
#include "src/report/rank_table.h"
#include "src/report/format_numbers.h"
#include "src/report/html_report_internal.h"

/* A page has a bounded size: of more ranks the first are shown, and --stats-json has all. */
enum { MOST_ROWS = 200, MOST_COLUMNS = 32 };

bool page_has_ranks(const struct writer *writer)
{
	return writer->page->report->census != NULL;
}

void page_open_section_over_time(struct writer *writer, const char *id, const char *heading)
{
	const struct census *census = writer->page->report->census;

	page_open_section(&writer->html, id, heading);
	if (census)
		html_element(&writer->html, "p", "Rank 0 only, on %s; a trace has all ranks.",
			     census->hosts[0]);
}

static void open_table(struct html *html)
{
	struct page_column columns[MOST_COLUMNS] = { { "Rank", true },
						     { "Host", false },
						     { "Device", false } };
	const struct by_rank_figure *figure;
	unsigned n = 3;

	for (unsigned i = 0; (figure = by_rank_figure(i)); i++)
		if (figure->heading)
			columns[n++] = (struct page_column){ figure->heading, true };
	for (enum phase i = 0; i < N_PHASES; i++)
		columns[n++] = (struct page_column){ phase_key(i), true };
	page_open_table(html, "Work of each rank", columns, n);
}

static void put_rank(struct html *html, const struct census *census, unsigned rank)
{
	const struct census_entry *entry = &census->ranks[rank];
	const struct by_rank_figure *figure;
	char text[32];

	html_open(html, "tr");
	page_head_cell(html, "%u", rank);
	page_cell(html, "%s", census->hosts[rank]);
	page_cell(html, "%s", entry->facts.backend);
	for (unsigned i = 0; (figure = by_rank_figure(i)); i++) {
		if (!figure->heading)
			continue;
		by_rank_format(figure, entry, text);
		page_number(html, "%s", text);
	}
	for (enum phase i = 0; i < N_PHASES; i++) {
		figures_time(figures_s(entry->totals.phases[i].elapsed_ns), text);
		page_number(html, "%s", text);
	}
	html_close(html);
}

void page_write_ranks(struct writer *writer)
{
	const struct census *census = writer->page->report->census;
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	if (!census)
		return;
	page_open_section(html, "ranks", "Ranks");
	html_element(html, "p",
		     "%u ranks. Imbalance of the output: %.2f %%. Figures above are sums over all "
		     "ranks, and times are those of the slowest rank. Charts over time show "
		     "rank 0.",
		     census->n, 100 * census_imbalance(census));
	open_table(html);
	for (unsigned i = 0; i < census->n && i < MOST_ROWS; i++)
		put_rank(html, census, i);
	html_close_to(html, depth);
}
