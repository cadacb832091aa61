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
	STAGE_ROW_HEIGHT = 30,
	STAGE_BAR_HEIGHT = 14,
	STAGES_HEADER_HEIGHT = 34,
	ACTIVE_BAR_X = 132,
	ACTIVE_BAR_WIDTH = 250,
	RATE_BAR_X = 440,
	RATE_BAR_WIDTH = 300
};

static double phase_seconds(const struct html_report_writer *writer, enum phase phase)
{
	return ns_to_seconds(writer->totals.phases[phase].elapsed_ns);
}

static double total_phase_seconds(const struct html_report_writer *writer)
{
	double s = 0;

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += writer->totals.phases[phase].has_begun ? phase_seconds(writer, phase) : 0;
	return s > 0 ? s : 1;
}

/* How much of the phase a stage was at work, from 0 to 1. */
static double active_fraction(const struct phase_totals *phase, enum stage stage)
{
	const double fraction = (double)phase->stages[stage].active_ns /
				(double)(phase->elapsed_ns ? phase->elapsed_ns : 1);

	return fraction < 1 ? fraction : 1;
}

/* Bytes per second, while it was at work. */
static double stage_rate(const struct stage_totals *totals)
{
	const double s = ns_to_seconds(totals->active_ns);

	return s > 0 ? (double)totals->nbytes / s : 0;
}

static void put_phase_rows(struct html_report_writer *writer)
{
	struct html *html = &writer->html;

	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		const struct phase_totals *totals = &writer->totals.phases[phase];
		const enum stage bottleneck = phase_bottleneck(totals);
		char time[32];

		if (!totals->has_begun)
			continue;
		format_time(phase_seconds(writer, phase), time);
		html_open(html, "tr");
		html_report_header_cell(html, "%s", phase_name(phase));
		html_report_number_cell(html, "%s", time);
		html_report_number_cell(html, "%.0f %%",
					100 * phase_seconds(writer, phase) /
						total_phase_seconds(writer));
		html_report_text_cell(html, "%s",
				      bottleneck < N_STAGES ? stage_name(bottleneck) : "-");
		html_report_number_cell(
			html, "%.0f %%",
			bottleneck < N_STAGES ? 100 * active_fraction(totals, bottleneck) : 0);
		html_close(html);
	}
}

static void put_phase_chart(struct html_report_writer *writer)
{
	const struct chart_frame frame = {
		.id = "phases-picture",
		.title = "How long each phase took",
		.description = "A bar divided by phase durations. The table below has the numbers.",
	};
	struct html *html = &writer->html;
	double x = 0;

	html_report_open_figure(html, frame.title);
	chart_open_svg(html, &frame, 62);
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		const double width =
			CHART_WIDTH * phase_seconds(writer, phase) / total_phase_seconds(writer);
		char class[32], time[32];

		if (!writer->totals.phases[phase].has_begun)
			continue;
		snprintf(class, sizeof class, "phase of-%s", phase_key(phase));
		format_time(phase_seconds(writer, phase), time);
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

void html_report_write_phases(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = { { "Phase", false },
							     { "Time", true },
							     { "Share", true },
							     { "Bottleneck", false },
							     { "Active", true } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	html_report_open_section(html, "phases", "Phases");
	put_phase_chart(writer);
	html_report_open_table(html, "Phases and their bottlenecks", columns, 5);
	put_phase_rows(writer);
	html_close_to(html, depth);
}

/* The largest rate of the phase, which is the length of the bars. */
static double max_stage_rate(const struct html_report_writer *writer,
			     const struct phase_totals *phase)
{
	double max_rate = 1;

	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const double peak_rate = writer->summary->peak_rates[stage];
		const double rate = stage_rate(&phase->stages[stage]);

		if (stage_is_idle(&phase->stages[stage]))
			continue;
		max_rate = rate > max_rate ? rate : max_rate;
		max_rate = phase->stages[stage].nbytes && peak_rate > max_rate ? peak_rate :
										 max_rate;
	}
	return max_rate;
}

static void put_rate_bar(struct html_report_writer *writer, const struct stage_totals *totals,
			 enum stage stage, double max_rate, double y)
{
	const double peak_rate = writer->summary->peak_rates[stage], rate = stage_rate(totals);
	struct html *html = &writer->html;
	char class[STAGE_CLASS_NBYTES], text[40], peak_text[40];

	if (!totals->nbytes)
		return;
	if (peak_rate > 0)
		chart_box(html, "ceiling", RATE_BAR_X, y, RATE_BAR_WIDTH * peak_rate / max_rate,
			  STAGE_BAR_HEIGHT);
	chart_box(html, stage_css_class(stage, class), RATE_BAR_X, y,
		  RATE_BAR_WIDTH * rate / max_rate, STAGE_BAR_HEIGHT);
	if (peak_rate > 0)
		chart_line(html, "limit", RATE_BAR_X + RATE_BAR_WIDTH * peak_rate / max_rate, y - 4,
			   RATE_BAR_X + RATE_BAR_WIDTH * peak_rate / max_rate,
			   y + STAGE_BAR_HEIGHT + 4);
	format_rate((uint64_t)rate, 1, text);
	format_rate((uint64_t)peak_rate, 1, peak_text);
	if (peak_rate > 0)
		chart_text(html, "value", RATE_BAR_X + RATE_BAR_WIDTH + 12, y + 11, "%s of %s",
			   text, peak_text);
	else
		chart_text(html, "value", RATE_BAR_X + RATE_BAR_WIDTH + 12, y + 11, "%s", text);
}

static void put_stage_bars(struct html_report_writer *writer, const struct phase_totals *phase,
			   enum stage stage, double max_rate, double y)
{
	const bool is_bottleneck = stage == phase_bottleneck(phase);
	const double fraction = active_fraction(phase, stage);
	struct html *html = &writer->html;
	char class[STAGE_CLASS_NBYTES];

	chart_text(html, is_bottleneck ? "name longest" : "name", 0, y + 12, "%s%s",
		   stage_name(stage), is_bottleneck ? " \xe2\x97\x80" : "");
	chart_box(html, "trough", ACTIVE_BAR_X, y, ACTIVE_BAR_WIDTH, STAGE_BAR_HEIGHT);
	chart_box(html, stage_css_class(stage, class), ACTIVE_BAR_X, y, ACTIVE_BAR_WIDTH * fraction,
		  STAGE_BAR_HEIGHT);
	chart_text(html, "value", ACTIVE_BAR_X + ACTIVE_BAR_WIDTH + 8, y + 11, "%.0f %%",
		   100 * fraction);
	put_rate_bar(writer, &phase->stages[stage], stage, max_rate, y);
}

static void put_stages_chart(struct html_report_writer *writer, enum phase id, unsigned n_stages)
{
	const struct phase_totals *phase = &writer->totals.phases[id];
	const double max_rate = max_stage_rate(writer, phase);
	struct html *html = &writer->html;
	char name[32], title[128];
	const struct chart_frame frame = {
		.id = name,
		.title = title,
		.description = "Two bars for each stage: the share of the phase in which it was "
			       "active, and its rate compared with its peak rate where that was "
			       "measured. The table below has the numbers.",
	};
	double y = STAGES_HEADER_HEIGHT;

	snprintf(name, sizeof name, "links-%s", phase_key(id));
	snprintf(title, sizeof title, "Stages of phase %s", phase_name(id));
	html_report_open_figure(html, title);
	chart_open_svg(html, &frame, STAGES_HEADER_HEIGHT + n_stages * STAGE_ROW_HEIGHT);
	chart_text(html, "label", ACTIVE_BAR_X, 14, "active, share of the phase");
	chart_text(html, "label", RATE_BAR_X, 14, "rate while active, compared with peak");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (stage_is_idle(&phase->stages[stage]))
			continue;
		put_stage_bars(writer, phase, stage, max_rate, y);
		y += STAGE_ROW_HEIGHT;
	}
	html_close(html);
	html_close(html);
}

static void put_stage_row(struct html_report_writer *writer, const struct phase_totals *phase,
			  enum stage stage)
{
	const struct stage_totals *totals = &phase->stages[stage];
	const double peak_rate = writer->summary->peak_rates[stage], rate = stage_rate(totals);
	struct html *html = &writer->html;
	char size[32], text[40];

	html_open(html, "tr");
	if (stage == phase_bottleneck(phase))
		html_attribute(html, "class", "longest");
	html_report_header_cell(html, "%s", stage_name(stage));
	size_format(totals->nbytes, size);
	html_report_number_cell(html, "%s", totals->nbytes ? size : "-");
	format_time(ns_to_seconds(totals->busy_ns), text);
	html_report_number_cell(html, "%s", text);
	format_time(ns_to_seconds(totals->blocked_ns), text);
	html_report_number_cell(html, "%s", text);
	html_report_number_cell(html, "%.0f %%", 100 * active_fraction(phase, stage));
	format_rate(totals->nbytes, ns_to_seconds(totals->active_ns), text);
	html_report_number_cell(html, "%s", text);
	format_rate(totals->nbytes ? (uint64_t)peak_rate : 0, 1, text);
	html_report_number_cell(html, "%s", text);
	if (peak_rate > 0 && totals->nbytes)
		html_report_number_cell(html, "%.0f %%", 100 * rate / peak_rate);
	else
		html_report_number_cell(html, "-");
	html_close(html);
}

static unsigned count_stages(const struct phase_totals *phase)
{
	unsigned n = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		n += !stage_is_idle(&phase->stages[stage]);
	return n;
}

/*
 * "sort was the bottleneck: active 81 % of the time"; "merge was active longest, but only 18 % of
 * the time: there was no bottleneck"
 */
static void put_bottleneck(struct html_report_writer *writer, const struct phase_totals *phase)
{
	const enum stage stage = phase_longest_stage(phase);
	const double peak_rate = stage < N_STAGES ? writer->summary->peak_rates[stage] : 0;
	struct html *html = &writer->html;

	if (stage == N_STAGES)
		return;
	html_open(html, "p");
	html_element(html, "strong", "%s", stage_name(stage));
	html_text(html,
		  phase_bottleneck(phase) == stage ?
			  " was the bottleneck: active %.0f %% of the time" :
			  " was active longest, but only %.0f %% of the time: there was no "
			  "bottleneck",
		  100 * active_fraction(phase, stage));
	if (peak_rate > 0 && phase->stages[stage].nbytes)
		html_text(html, ", at %.0f %% of its peak rate",
			  100 * stage_rate(&phase->stages[stage]) / peak_rate);
	html_text(html, ".");
	html_close(html);
}

/* Of what was moved in the phase, is known how fast it could be? */
static bool has_peak_rates(const struct html_report_writer *writer,
			   const struct phase_totals *phase)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (phase->stages[stage].nbytes && writer->summary->peak_rates[stage] > 0)
			return true;
	return false;
}

static void put_phase_stages(struct html_report_writer *writer, enum phase id)
{
	static const struct html_report_column columns[] = {
		{ "Stage", false }, { "Bytes", true }, { "Busy", true }, { "Blocked", true },
		{ "Active", true }, { "Rate", true },  { "Peak", true }, { "Of peak", true }
	};
	const struct phase_totals *phase = &writer->totals.phases[id];
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	char time[32], caption[96];

	format_time(phase_seconds(writer, id), time);
	html_element(html, "h3", "%s, %s", phase_name(id), time);
	put_bottleneck(writer, phase);
	if (count_stages(phase) == 0)
		return;
	if (!has_peak_rates(writer, phase))
		html_element(
			html, "p",
			"Peak rates were not measured: this is done only for phases of a second "
			"and more, in a sort by one process.");
	put_stages_chart(writer, id, count_stages(phase));
	snprintf(caption, sizeof caption, "Stages of phase %s", phase_name(id));
	html_report_open_table(html, caption, columns, 8);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (!stage_is_idle(&phase->stages[stage]))
			put_stage_row(writer, phase, stage);
	html_close_to(html, depth);
}

void html_report_write_stages(struct html_report_writer *writer)
{
	struct html *html = &writer->html;

	html_report_open_section(html, "links", "Bytes over each link");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (writer->totals.phases[phase].has_begun)
			put_phase_stages(writer, phase);
	html_close(html);
}
