/*
 * html_report_chart - the charts of the page, each with a table of its numbers (see
 * html_report_internal.h)
 *
 * All charts over time have the same bins (src/base/time_series.h), so what stands above each other
 * happened at the same time. A timeline holds the series of one row, which is filled in for one row
 * after the other, and again for the table.
 */
#include "src/report/html_report_internal.h"

#include <math.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format_numbers.h"

enum { NOTE_NBYTES = 64 };

/* --- phases and stages --- */

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

/* --- rows over time --- */

struct timeline_chart {
	struct html_report_writer *writer;
	struct chart chart;
	uint32_t n_bins;
	double bin_s, last_bin_s; /* the last bin may have less */
	struct chart_series series[N_STAGES];
	char classes[N_STAGES][STAGE_CLASS_NBYTES];
};

static void timeline_init(struct timeline_chart *timeline, struct html_report_writer *writer)
{
	const struct time_series *time_series = writer->time_series;
	const uint64_t total_ns = time_series->end_ns - time_series->begin_ns;

	memset(timeline, 0, sizeof *timeline);
	timeline->writer = writer;
	timeline->n_bins = time_series_n_bins(time_series);
	timeline->bin_s = ns_to_seconds(time_series->bin_ns);
	timeline->last_bin_s =
		ns_to_seconds(total_ns - (timeline->n_bins - 1) * time_series->bin_ns);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		stage_css_class(stage, timeline->classes[stage]);
}

static void timeline_open(struct timeline_chart *timeline, struct chart_frame frame)
{
	const struct time_series *time_series = timeline->writer->time_series;

	frame.n_bins = timeline->n_bins;
	frame.bin_s = timeline->bin_s;
	html_report_open_figure(&timeline->writer->html, frame.title);
	chart_open(&timeline->chart, &timeline->writer->html, &frame);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (time_series->phases[phase].end_ns)
			chart_span(&timeline->chart, phase_name(phase),
				   ns_to_seconds(time_series->phases[phase].begin_ns -
						 time_series->begin_ns),
				   ns_to_seconds(time_series->phases[phase].end_ns -
						 time_series->begin_ns));
}

static void timeline_close(struct timeline_chart *timeline, const bool used[static N_STAGES])
{
	struct html *html = &timeline->writer->html;

	chart_close(&timeline->chart);
	html_open(html, "figcaption");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (!used[stage])
			continue;
		html_open_with_class(html, "span", "key");
		html_open(html, "i");
		html_attribute(html, "class", "of-%s", stage_name(stage));
		html_close(html);
		html_text(html, "%s", stage_name(stage));
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

static double timeline_bin_s(const struct timeline_chart *timeline, uint32_t bin)
{
	const double s = bin + 1 < timeline->n_bins ? timeline->bin_s : timeline->last_bin_s;

	return s > 0 ? s : timeline->bin_s;
}

static uint64_t timeline_sum(const uint64_t bins[static TIME_SERIES_BINS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
		sum += bins[i];
	return sum;
}

static double timeline_peak(const struct timeline_chart *timeline, unsigned n)
{
	double peak = 0;

	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		double sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += timeline->series[i].values[bin];
		peak = sum > peak ? sum : peak;
	}
	return peak;
}

/* --- activity --- */

/* Some who do the same: the stages that are their work, or all that a lane of a device did. */
struct activity_row {
	char name[32];
	const struct stage_busy_times *activity;
	enum track_role role; /* N_TRACK_ROLES: any */
};

static bool row_has_stage(const struct activity_row *row, enum stage stage)
{
	return (row->role == N_TRACK_ROLES || stage_role(stage) == row->role) &&
	       timeline_sum(row->activity->busy_ns[stage]) > 0;
}

static bool row_is_active(const struct activity_row *row)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (row_has_stage(row, stage))
			return true;
	return false;
}

/* As many as there may be; returns how many. Their roles, then the lanes of a device. */
static unsigned collect_role_rows(const struct time_series *time_series,
				  struct activity_row rows[static N_TRACK_ROLES])
{
	unsigned n = 0;

	for (enum track_role role = 0; role < N_TRACK_ROLES; role++) {
		struct activity_row *row = &rows[n];

		*row = (struct activity_row){ .activity = &time_series->host, .role = role };
		snprintf(row->name, sizeof row->name, "%s", track_role_names(role));
		n += row_is_active(row);
	}
	return n;
}

static unsigned collect_queue_rows(const struct time_series *time_series,
				   struct activity_row rows[static TIME_SERIES_MAX_QUEUES])
{
	unsigned n = 0;

	for (uint32_t i = 0; i < time_series->n_queues; i++) {
		struct activity_row *row = &rows[n];

		*row = (struct activity_row){ .activity = &time_series->queues[i],
					      .role = N_TRACK_ROLES };
		snprintf(row->name, sizeof row->name, "queue %u", i + 1);
		n += row_is_active(row);
	}
	return n;
}

/* How many of them were at work in each bin, by stage. Returns how many stages there are. */
static unsigned fill_series(struct timeline_chart *timeline, const struct activity_row *row,
			    bool used[static N_STAGES])
{
	unsigned n = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		struct chart_series *series = &timeline->series[n];

		if (!row_has_stage(row, stage))
			continue;
		used[stage] = true;
		series->class = timeline->classes[stage];
		series->name = stage_name(stage);
		for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
			series->values[bin] = ns_to_seconds(row->activity->busy_ns[stage][bin]) /
					      timeline_bin_s(timeline, bin);
		n++;
	}
	return n;
}

/* As a whole number of workers; work that is cut between bins may seem a little more. */
static double round_up_peak(double peak)
{
	const double n = ceil(peak - 0.05);

	return n < 1 ? 1 : n;
}

static void put_activity_chart(struct html_report_writer *writer, const struct activity_row *rows,
			       unsigned n, const struct chart_frame *frame)
{
	bool used[N_STAGES] = { false };
	struct timeline_chart timeline;

	timeline_init(&timeline, writer);
	timeline_open(&timeline, *frame);
	for (unsigned i = 0; i < n; i++) {
		const unsigned n_series = fill_series(&timeline, &rows[i], used);
		const double max_active = round_up_peak(timeline_peak(&timeline, n_series));
		char note[NOTE_NBYTES];

		snprintf(note, sizeof note, "peak %.0f", max_active);
		chart_row(&timeline.chart,
			  &(struct chart_row){ .name = rows[i].name,
					       .note = rows[i].role < N_TRACK_ROLES ? note : "",
					       .series = timeline.series,
					       .n = n_series,
					       .max = max_active });
	}
	timeline_close(&timeline, used);
}

/* "sort 61 %, merge 30 %" */
static void format_stage_shares(const struct activity_row *row, uint64_t total_ns, char *text,
				size_t capacity)
{
	size_t length = 0;

	text[0] = '\0';
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const uint64_t ns = timeline_sum(row->activity->busy_ns[stage]);

		if (row_has_stage(row, stage) && length < capacity)
			length += (size_t)snprintf(text + length, capacity - length, "%s%s %.0f %%",
						   length ? ", " : "", stage_name(stage),
						   100 * (double)ns / (double)total_ns);
	}
}

static void put_activity_row(struct html_report_writer *writer, struct timeline_chart *timeline,
			     const struct activity_row *row)
{
	bool used[N_STAGES] = { false };
	const unsigned n_series = fill_series(timeline, row, used);
	const double total_s =
		ns_to_seconds(writer->time_series->end_ns - writer->time_series->begin_ns);
	struct html *html = &writer->html;
	uint64_t busy_ns = 0;
	char shares[200], busy[32];

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		busy_ns += used[stage] ? timeline_sum(row->activity->busy_ns[stage]) : 0;
	format_stage_shares(row, busy_ns, shares, sizeof shares);
	html_open(html, "tr");
	html_report_header_cell(html, "%s", row->name);
	format_time(ns_to_seconds(busy_ns), busy);
	html_report_number_cell(html, "%s", busy);
	html_report_number_cell(html, "%.2f", total_s > 0 ? ns_to_seconds(busy_ns) / total_s : 0);
	html_report_number_cell(html, "%.1f", timeline_peak(timeline, n_series));
	html_report_text_cell(html, "%s", shares);
	html_close(html);
}

static void put_activity(struct html_report_writer *writer, const struct activity_row *rows,
			 unsigned n, const struct chart_frame *frame)
{
	static const struct html_report_column columns[] = { { "Role", false },
							     { "Busy", true },
							     { "Average active", true },
							     { "Peak", true },
							     { "Stages", false } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_chart timeline;

	put_activity_chart(writer, rows, n, frame);
	timeline_init(&timeline, writer);
	html_report_open_table(html, frame->title, columns, 5);
	for (unsigned i = 0; i < n; i++)
		put_activity_row(writer, &timeline, &rows[i]);
	html_close_to(html, depth);
}

void html_report_write_roles(struct html_report_writer *writer)
{
	struct activity_row rows[N_TRACK_ROLES];
	const unsigned n = collect_role_rows(writer->time_series, rows);
	const struct chart_frame frame = {
		.id = "roles-picture",
		.title = "Activity of each role, by stage",
		.description = "A row for each role: the number of its active threads at each "
			       "moment, coloured by stage. The table below has the sums.",
		.n_rows = n,
		.row_height = 46,
	};

	html_report_open_time_section(writer, "roles", "Activity");
	if (n)
		put_activity(writer, rows, n, &frame);
	else
		html_element(&writer->html, "p", "No activity was recorded.");
	html_close(&writer->html);
}

bool html_report_has_queues(const struct html_report_writer *writer)
{
	struct activity_row rows[TIME_SERIES_MAX_QUEUES];

	return collect_queue_rows(writer->time_series, rows) > 0;
}

void html_report_write_queues(struct html_report_writer *writer)
{
	struct activity_row rows[TIME_SERIES_MAX_QUEUES];
	const unsigned n = collect_queue_rows(writer->time_series, rows);
	const struct chart_frame frame = {
		.id = "queues-picture",
		.title = "Queues of the GPU",
		.description = "A row for each queue: the share of each moment in which it was "
			       "active, coloured by stage. The table below has the sums.",
		.n_rows = n,
		.row_height = 34,
	};

	if (n == 0)
		return;
	html_report_open_time_section(writer, "queues", "Queues of the GPU");
	put_activity(writer, rows, n, &frame);
	html_close(&writer->html);
}

/* --- throughput and space --- */

/* --- What moved --- */

/* A stage that brings bytes from one place to another, and not only looks at them. */
static bool is_transfer_stage(enum stage stage)
{
	switch (stage) {
	case STAGE_READ:
	case STAGE_UPLOAD:
	case STAGE_FETCH:
	case STAGE_DOWNLOAD:
	case STAGE_SPILL:
	case STAGE_WRITE:
	case STAGE_VERIFY:
		return true;
	default:
		return false;
	}
}

static bool has_transferred(const struct html_report_writer *writer, enum stage stage)
{
	return is_transfer_stage(stage) && timeline_sum(writer->time_series->nbytes[stage]) > 0;
}

static void fill_rates(struct timeline_chart *timeline, enum stage stage)
{
	struct chart_series *series = &timeline->series[0];

	series->class = timeline->classes[stage];
	series->name = stage_name(stage);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		series->values[bin] = (double)timeline->writer->time_series->nbytes[stage][bin] /
				      timeline_bin_s(timeline, bin);
}

static void put_throughput_row(struct timeline_chart *timeline, enum stage stage)
{
	char note[40];
	double peak;

	fill_rates(timeline, stage);
	peak = timeline_peak(timeline, 1);
	format_rate((uint64_t)peak, 1, note);
	chart_row(&timeline->chart, &(struct chart_row){ .name = stage_name(stage),
							 .note = note,
							 .series = timeline->series,
							 .n = 1,
							 .max = peak > 0 ? peak : 1 });
}

static void put_throughput_totals(struct timeline_chart *timeline, enum stage stage)
{
	struct html_report_writer *writer = timeline->writer;
	const uint64_t nbytes = timeline_sum(writer->time_series->nbytes[stage]);
	const double total_s =
		ns_to_seconds(writer->time_series->end_ns - writer->time_series->begin_ns);
	struct html *html = &writer->html;
	char size[32], rate[40];

	fill_rates(timeline, stage);
	html_open(html, "tr");
	html_report_header_cell(html, "%s", stage_name(stage));
	size_format(nbytes, size);
	html_report_number_cell(html, "%s", size);
	format_rate(nbytes, total_s, rate);
	html_report_number_cell(html, "%s", rate);
	format_rate((uint64_t)timeline_peak(timeline, 1), 1, rate);
	html_report_number_cell(html, "%s", rate);
	html_close(html);
}

void html_report_write_throughput(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = {
		{ "Link", false }, { "Bytes", true }, { "Average", true }, { "Peak", true }
	};
	struct chart_frame frame = {
		.id = "throughput-picture",
		.title = "Bytes over each link, for each second",
		.description = "A row for each link, scaled to its peak rate. The table below has "
			       "the sums.",
		.row_height = 40,
	};
	const bool no_stages[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_chart timeline;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		frame.n_rows += has_transferred(writer, stage);
	html_report_open_time_section(writer, "throughput", "Throughput");
	if (frame.n_rows == 0) {
		html_element(html, "p", "No bytes were moved.");
		html_close(html);
		return;
	}
	timeline_init(&timeline, writer);
	timeline_open(&timeline, frame);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_transferred(writer, stage))
			put_throughput_row(&timeline, stage);
	timeline_close(&timeline, no_stages);
	html_report_open_table(html, "Bytes over each link", columns, 4);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_transferred(writer, stage))
			put_throughput_totals(&timeline, stage);
	html_close_to(html, depth);
}

/* --- Memory and space --- */

/* What was looked at, of one kind; where nobody looked it was as before. */
struct gauge_chart {
	const char *name, *class;
	size_t offset;        /* in struct time_series_gauges */
	uint64_t peak_nbytes; /* that it came to between two looks; 0: nobody knows */
	uint64_t limit_nbytes;
	const char *limit_note; /* what that is */
};

static void fill_gauge(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	const struct time_series *time_series = timeline->writer->time_series;
	struct chart_series *series = &timeline->series[0];
	uint64_t nbytes = 0;

	series->class = gauge->class;
	series->name = gauge->name;
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		const struct time_series_gauges *sample = &time_series->gauges[bin];

		if (sample->memory_nbytes)
			memcpy(&nbytes, (const char *)sample + gauge->offset, sizeof nbytes);
		series->values[bin] = (double)nbytes;
	}
}

/* Whoever looks now and then may miss the most, which others have kept: it is one number. */
static double gauge_peak(const struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	return fmax(timeline_peak(timeline, 1), (double)gauge->peak_nbytes);
}

static void put_gauge_row(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	char peak_text[32], note[NOTE_NBYTES];
	double peak;

	fill_gauge(timeline, gauge);
	peak = gauge_peak(timeline, gauge);
	size_format((uint64_t)peak, peak_text);
	snprintf(note, sizeof note, "peak %s", peak_text);
	chart_row(&timeline->chart,
		  &(struct chart_row){
			  .name = gauge->name,
			  .note = note,
			  .series = timeline->series,
			  .n = 1,
			  .max = 1.05 * fmax(fmax(peak, (double)gauge->limit_nbytes), 1),
			  .limit = (double)gauge->limit_nbytes,
		  });
}

static void put_gauge_totals(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	struct html *html = &timeline->writer->html;
	char size[32], limit[32];
	double sum = 0;

	fill_gauge(timeline, gauge);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		sum += timeline->series[0].values[bin];
	html_open(html, "tr");
	html_report_header_cell(html, "%s", gauge->name);
	size_format((uint64_t)(sum / timeline->n_bins), size);
	html_report_number_cell(html, "%s", size);
	size_format((uint64_t)gauge_peak(timeline, gauge), size);
	html_report_number_cell(html, "%s", size);
	size_format(gauge->limit_nbytes, limit);
	html_report_text_cell(html, "%s%s", gauge->limit_nbytes ? limit : "-",
			      gauge->limit_nbytes ? gauge->limit_note : "");
	html_close(html);
}

void html_report_write_space(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = {
		{ "Item", false }, { "Average", true }, { "Peak", true }, { "Limit", false }
	};
	const struct rank_stats *rank_stats =
		writer->report->stats_report->rank_stats; /* of it the first rank */
	const struct sort_summary *summary = rank_stats ? &rank_stats->ranks[0].summary :
							  writer->summary;
	const struct stats_totals *totals = rank_stats ? &rank_stats->ranks[0].totals :
							 &writer->totals;
	const struct gauge_chart gauges[] = {
		{ "memory", "gauge of-memory", offsetof(struct time_series_gauges, memory_nbytes),
		  totals->usage.peak_rss_nbytes, summary->buffer_nbytes,
		  ", -S; up to 32 MiB more are possible" },
		{ "temporary", "gauge of-temporary",
		  offsetof(struct time_series_gauges, temporary_nbytes), summary->peak_temp_nbytes,
		  summary->plan.max_temp_nbytes, ", planned" },
		{ "written", "gauge of-written",
		  offsetof(struct time_series_gauges, written_nbytes), 0, 0, "" },
	};
	const bool is_sort = summary->backend[0]; /* a check takes nothing else */
	const unsigned n = is_sort ? sizeof gauges / sizeof gauges[0] : 1;
	const struct chart_frame frame = {
		.id = "space-picture",
		.title = is_sort ? "Memory, temporary space, and bytes written" : "Memory",
		.description = "The amount in use at each moment; a dashed line is the limit. The "
			       "table below has the numbers.",
		.n_rows = n,
		.row_height = 84,
	};
	const bool no_stages[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_chart timeline;

	html_report_open_time_section(writer, "space", "Memory and space");
	timeline_init(&timeline, writer);
	timeline_open(&timeline, frame);
	for (unsigned i = 0; i < n; i++)
		put_gauge_row(&timeline, &gauges[i]);
	timeline_close(&timeline, no_stages);
	html_report_open_table(html, "Memory and space", columns, 4);
	for (unsigned i = 0; i < n; i++)
		put_gauge_totals(&timeline, &gauges[i]);
	html_close_to(html, depth);
}
