/*
 * html_report_phases - how long each phase took, and what held it up (see html_report_internal.h)
 */
#include <string.h>

#include "src/base/size.h"
#include "src/report/chart.h"
#include "src/report/format_numbers.h"
#include "src/report/html_report_internal.h"

/* Of the pictures of links: a line for each stage, with two bars. */
enum {
	LINE = 30,
	BAR = 14,
	HEAD = 34,
	AT_WORK = 132,
	AT_WORK_PLOT = 250,
	RATE = 440,
	RATE_PLOT = 300
};

static double phase_s(const struct writer *writer, enum phase phase)
{
	return figures_s(writer->totals.phases[phase].elapsed_ns);
}

static double all_s(const struct writer *writer)
{
	double s = 0;

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += writer->totals.phases[phase].has_begun ? phase_s(writer, phase) : 0;
	return s > 0 ? s : 1;
}

/* How much of the phase a stage was at work, from 0 to 1. */
static double running(const struct phase_totals *phase, enum stage stage)
{
	const double part = (double)phase->stages[stage].covered_ns /
			    (double)(phase->elapsed_ns ? phase->elapsed_ns : 1);

	return part < 1 ? part : 1;
}

/* Bytes per second, while it was at work. */
static double rate_of(const struct stage_totals *totals)
{
	const double s = figures_s(totals->covered_ns);

	return s > 0 ? (double)totals->nbytes / s : 0;
}

static void put_phase_rows(struct writer *writer)
{
	struct html *html = &writer->html;

	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		const struct phase_totals *totals = &writer->totals.phases[phase];
		const enum stage bottleneck = figures_bottleneck(totals);
		char time[32];

		if (!totals->has_begun)
			continue;
		figures_time(phase_s(writer, phase), time);
		html_open(html, "tr");
		page_head_cell(html, "%s", phase_name(phase));
		page_number(html, "%s", time);
		page_number(html, "%.0f %%", 100 * phase_s(writer, phase) / all_s(writer));
		page_cell(html, "%s", bottleneck < N_STAGES ? stage_name(bottleneck) : "-");
		page_number(html, "%.0f %%",
			    bottleneck < N_STAGES ? 100 * running(totals, bottleneck) : 0);
		html_close(html);
	}
}

static void put_phase_picture(struct writer *writer)
{
	const struct chart_frame frame = {
		.id = "phases-picture",
		.title = "How long each phase took",
		.description = "A bar divided by phase durations. The table below has the numbers.",
	};
	struct html *html = &writer->html;
	double x = 0;

	page_open_figure(html, frame.title);
	chart_open_picture(html, &frame, 62);
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		const double width = CHART_WIDTH * phase_s(writer, phase) / all_s(writer);
		char class[32], time[32];

		if (!writer->totals.phases[phase].has_begun)
			continue;
		snprintf(class, sizeof class, "phase of-%s", phase_key(phase));
		figures_time(phase_s(writer, phase), time);
		chart_box(html, class, x, 0, width > 3 ? width - 2 : width, 30);
		if (width > 60)
			chart_text(html, "inside", x + 10, 20, "%s", time);
		if (width > 8.0 * (double)strlen(phase_name(phase)))
			chart_text(html, "label", x, 50, "%s", phase_name(phase));
		x += width;
	}
	html_close(html);
	html_close(html);
}

void page_write_phases(struct writer *writer)
{
	static const struct page_column columns[] = { { "Phase", false },
						      { "Time", true },
						      { "Share", true },
						      { "Bottleneck", false },
						      { "Active", true } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	page_open_section(html, "phases", "Phases");
	put_phase_picture(writer);
	page_open_table(html, "Phases and their bottlenecks", columns, 5);
	put_phase_rows(writer);
	html_close_to(html, depth);
}

/* The largest rate of the phase, which is the length of the bars. */
static double most_rate(const struct writer *writer, const struct phase_totals *phase)
{
	double most = 1;

	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const double ceiling = writer->facts->ceilings[stage];
		const double rate = rate_of(&phase->stages[stage]);

		if (figures_is_idle(&phase->stages[stage]))
			continue;
		most = rate > most ? rate : most;
		most = phase->stages[stage].nbytes && ceiling > most ? ceiling : most;
	}
	return most;
}

static void put_rate_bar(struct writer *writer, const struct stage_totals *totals, enum stage stage,
			 double most, double y)
{
	const double ceiling = writer->facts->ceilings[stage], rate = rate_of(totals);
	struct html *html = &writer->html;
	char class[PAGE_CLASS_NBYTES], text[40], above[40];

	if (!totals->nbytes)
		return;
	if (ceiling > 0)
		chart_box(html, "ceiling", RATE, y, RATE_PLOT * ceiling / most, BAR);
	chart_box(html, page_class(stage, class), RATE, y, RATE_PLOT * rate / most, BAR);
	if (ceiling > 0)
		chart_line(html, "limit", RATE + RATE_PLOT * ceiling / most, y - 4,
			   RATE + RATE_PLOT * ceiling / most, y + BAR + 4);
	figures_rate((uint64_t)rate, 1, text);
	figures_rate((uint64_t)ceiling, 1, above);
	if (ceiling > 0)
		chart_text(html, "value", RATE + RATE_PLOT + 12, y + 11, "%s of %s", text, above);
	else
		chart_text(html, "value", RATE + RATE_PLOT + 12, y + 11, "%s", text);
}

static void put_link(struct writer *writer, const struct phase_totals *phase, enum stage stage,
		     double most, double y)
{
	const bool is_bottleneck = stage == figures_bottleneck(phase);
	const double part = running(phase, stage);
	struct html *html = &writer->html;
	char class[PAGE_CLASS_NBYTES];

	chart_text(html, is_bottleneck ? "name longest" : "name", 0, y + 12, "%s%s",
		   stage_name(stage), is_bottleneck ? " \xe2\x97\x80" : "");
	chart_box(html, "trough", AT_WORK, y, AT_WORK_PLOT, BAR);
	chart_box(html, page_class(stage, class), AT_WORK, y, AT_WORK_PLOT * part, BAR);
	chart_text(html, "value", AT_WORK + AT_WORK_PLOT + 8, y + 11, "%.0f %%", 100 * part);
	put_rate_bar(writer, &phase->stages[stage], stage, most, y);
}

static void put_links_picture(struct writer *writer, enum phase id, unsigned n_stages)
{
	const struct phase_totals *phase = &writer->totals.phases[id];
	const double most = most_rate(writer, phase);
	struct html *html = &writer->html;
	char name[32], title[128];
	const struct chart_frame frame = {
		.id = name,
		.title = title,
		.description = "Two bars for each stage: the share of the phase in which it was "
			       "active, and its rate compared with its peak rate where that was "
			       "measured. The table below has the numbers.",
	};
	double y = HEAD;

	snprintf(name, sizeof name, "links-%s", phase_key(id));
	snprintf(title, sizeof title, "Stages of phase %s", phase_name(id));
	page_open_figure(html, title);
	chart_open_picture(html, &frame, HEAD + n_stages * LINE);
	chart_text(html, "label", AT_WORK, 14, "active, share of the phase");
	chart_text(html, "label", RATE, 14, "rate while active, compared with peak");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (figures_is_idle(&phase->stages[stage]))
			continue;
		put_link(writer, phase, stage, most, y);
		y += LINE;
	}
	html_close(html);
	html_close(html);
}

static void put_link_row(struct writer *writer, const struct phase_totals *phase, enum stage stage)
{
	const struct stage_totals *totals = &phase->stages[stage];
	const double ceiling = writer->facts->ceilings[stage], rate = rate_of(totals);
	struct html *html = &writer->html;
	char size[32], text[40];

	html_open(html, "tr");
	if (stage == figures_bottleneck(phase))
		html_attribute(html, "class", "longest");
	page_head_cell(html, "%s", stage_name(stage));
	size_format(totals->nbytes, size);
	page_number(html, "%s", totals->nbytes ? size : "-");
	figures_time(figures_s(totals->busy_ns), text);
	page_number(html, "%s", text);
	figures_time(figures_s(totals->waited_ns), text);
	page_number(html, "%s", text);
	page_number(html, "%.0f %%", 100 * running(phase, stage));
	figures_rate(totals->nbytes, figures_s(totals->covered_ns), text);
	page_number(html, "%s", text);
	figures_rate(totals->nbytes ? (uint64_t)ceiling : 0, 1, text);
	page_number(html, "%s", text);
	if (ceiling > 0 && totals->nbytes)
		page_number(html, "%.0f %%", 100 * rate / ceiling);
	else
		page_number(html, "-");
	html_close(html);
}

static unsigned count_stages(const struct phase_totals *phase)
{
	unsigned n = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		n += !figures_is_idle(&phase->stages[stage]);
	return n;
}

/*
 * "sort was the bottleneck: active 81 % of the time"; "merge was active longest, but only 18 % of
 * the time: there was no bottleneck"
 */
static void put_finding(struct writer *writer, const struct phase_totals *phase)
{
	const enum stage stage = figures_longest(phase);
	const double ceiling = stage < N_STAGES ? writer->facts->ceilings[stage] : 0;
	struct html *html = &writer->html;

	if (stage == N_STAGES)
		return;
	html_open(html, "p");
	html_element(html, "strong", "%s", stage_name(stage));
	html_text(html,
		  figures_bottleneck(phase) == stage ?
			  " was the bottleneck: active %.0f %% of the time" :
			  " was active longest, but only %.0f %% of the time: there was no "
			  "bottleneck",
		  100 * running(phase, stage));
	if (ceiling > 0 && phase->stages[stage].nbytes)
		html_text(html, ", at %.0f %% of its peak rate",
			  100 * rate_of(&phase->stages[stage]) / ceiling);
	html_text(html, ".");
	html_close(html);
}

/* Of what was moved in the phase, is known how fast it could be? */
static bool has_ceilings(const struct writer *writer, const struct phase_totals *phase)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (phase->stages[stage].nbytes && writer->facts->ceilings[stage] > 0)
			return true;
	return false;
}

static void put_phase_links(struct writer *writer, enum phase id)
{
	static const struct page_column columns[] = { { "Stage", false }, { "Bytes", true },
						      { "Busy", true },   { "Blocked", true },
						      { "Active", true }, { "Rate", true },
						      { "Peak", true },   { "Of peak", true } };
	const struct phase_totals *phase = &writer->totals.phases[id];
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	char time[32], caption[96];

	figures_time(phase_s(writer, id), time);
	html_element(html, "h3", "%s, %s", phase_name(id), time);
	put_finding(writer, phase);
	if (count_stages(phase) == 0)
		return;
	if (!has_ceilings(writer, phase))
		html_element(
			html, "p",
			"Peak rates were not measured: this is done only for phases of a second "
			"and more, in a sort by one process.");
	put_links_picture(writer, id, count_stages(phase));
	snprintf(caption, sizeof caption, "Stages of phase %s", phase_name(id));
	page_open_table(html, caption, columns, 8);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (!figures_is_idle(&phase->stages[stage]))
			put_link_row(writer, phase, stage);
	html_close_to(html, depth);
}

void page_write_links(struct writer *writer)
{
	struct html *html = &writer->html;

	page_open_section(html, "links", "Bytes over each link");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (writer->totals.phases[phase].has_begun)
			put_phase_links(writer, phase);
	html_close(html);
}
