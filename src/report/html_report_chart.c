/*
 * html_report_chart.c - the charts of the page, each with a table of its numbers
 *
 * All charts over time have the same bins (src/base/time_series.h), so what is above each other
 * happened at the same time. The values of one row at a time are computed: once for the chart and
 * again for the table.
 */
#include "src/report/html_report_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format.h"

enum { NOTE_NBYTES = 64 };

/* --- phases and stages --- */

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

/* Return the fraction of the phase in which the stage was active. */
static double active_fraction(const struct phase_totals *phase, enum stage stage)
{
	const double fraction = (double)phase->stages[stage].active_ns /
				(double)(phase->elapsed_ns ? phase->elapsed_ns : 1);

	return fraction < 1 ? fraction : 1;
}

/* Return the bytes per second while the stage was active. */
static double stage_rate(const struct stage_totals *totals)
{
	const double s = ns_to_seconds(totals->active_ns);

	return s > 0 ? (double)totals->nbytes / s : 0;
}

/* Write "merge, 18 %", even if no stage was active long enough to be the bottleneck. */
static void put_longest_stage_cell(struct html *html, const struct phase_totals *phase)
{
	const enum stage longest = phase_longest_stage(phase);

	if (longest == N_STAGES)
		html_report_text_cell(html, "-");
	else
		html_report_text_cell(html, "%s, %.0f %%", stage_name(longest),
				      100 * active_fraction(phase, longest));
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
				      bottleneck < N_STAGES ? stage_name(bottleneck) : "none");
		put_longest_stage_cell(html, totals);
		html_close(html);
	}
}

/* Write a bar that is divided by the times of the phases. */
static void put_phase_bar(struct html_report_writer *writer)
{
	struct html *html = &writer->html;

	html_open_with_class(html, "div", "phases");
	html_attribute(html, "aria-hidden", "true"); /* the table has the numbers */
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		char time[32];

		if (!writer->totals.phases[phase].has_begun)
			continue;
		format_time(phase_seconds(writer, phase), time);
		html_open(html, "span");
		html_attribute(html, "class", "phase of-%s", phase_key(phase));
		html_attribute(html, "style", "flex-grow:%.4f", phase_seconds(writer, phase));
		html_text(html, "%s, %s", phase_name(phase), time);
		html_close(html);
	}
	html_close(html);
}

void html_report_write_phases(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = { { "Phase", false },
							     { "Time", true },
							     { "Share", true },
							     { "Bottleneck", false },
							     { "Most active", false } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;

	html_report_open_section(html, "phases", "Phases");
	put_phase_bar(writer);
	html_report_open_table(html, "Phases and their bottlenecks", columns, 5);
	put_phase_rows(writer);
	html_close_to(html, depth);
}

/* Return the largest rate of the phase, which has a bar of full length. */
static double max_stage_rate(const struct phase_totals *phase)
{
	double max_rate = 1;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		max_rate = fmax(max_rate, stage_rate(&phase->stages[stage]));
	return max_rate;
}

/* Write a number with a bar below it, as long as the fraction of the cell. */
__attribute__((format(printf, 4, 5))) static void
put_bar_cell(struct html *html, enum stage stage, double fraction, const char *format, ...)
{
	char text[64], class[STAGE_CLASS_NBYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	html_open_with_class(html, "td", "number bar");
	html_text(html, "%s", text);
	html_open_with_class(html, "i", stage_css_class(stage, class));
	html_attribute(html, "style", "width:%.1f%%", 100 * fmin(fraction, 1));
	html_close(html);
	html_close(html);
}

static void put_stage_row(struct html_report_writer *writer, const struct phase_totals *phase,
			  enum stage stage, double max_rate)
{
	const struct stage_totals *totals = &phase->stages[stage];
	const double peak_rate = writer->summary->peak_rates[stage], rate = stage_rate(totals);
	struct html *html = &writer->html;
	char text[40];

	html_open(html, "tr");
	if (stage == phase_bottleneck(phase))
		html_attribute(html, "class", "longest");
	html_report_header_cell(html, "%s", stage_name(stage));
	size_format(totals->nbytes, text);
	html_report_number_cell(html, "%s", totals->nbytes ? text : "-");
	format_time(ns_to_seconds(totals->busy_ns), text);
	html_report_number_cell(html, "%s", text);
	format_time(ns_to_seconds(totals->blocked_ns), text);
	html_report_number_cell(html, "%s", text);
	put_bar_cell(html, stage, active_fraction(phase, stage), "%.0f %%",
		     100 * active_fraction(phase, stage));
	format_rate(totals->nbytes, ns_to_seconds(totals->active_ns), text);
	put_bar_cell(html, stage, rate / max_rate, "%s", text);
	format_rate(totals->nbytes ? (uint64_t)peak_rate : 0, 1, text);
	html_report_number_cell(html, "%s", text);
	if (peak_rate > 0 && totals->nbytes)
		put_bar_cell(html, stage, rate / peak_rate, "%.0f %%", 100 * rate / peak_rate);
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
 * Write "sort was the bottleneck: active 81 % of the time", or "merge was active longest, but only
 * 18 % of the time: there was no bottleneck".
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

/* Is there a peak rate for anything that was moved in the phase? */
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
	snprintf(caption, sizeof caption, "Stages of phase %s", phase_name(id));
	html_report_open_table(html, caption, columns, 8);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (!stage_is_idle(&phase->stages[stage]))
			put_stage_row(writer, phase, stage, max_stage_rate(phase));
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

/* A row of a chart: stages of the time series, or one of its gauges. */
struct timeline_row {
	const char *name, *class;                 /* class: only for a gauge */
	const uint64_t (*bins)[TIME_SERIES_BINS]; /* by stage; NULL: a gauge */
	double unit;                              /* factor of a bin's value per second */
	bool has_stage[N_STAGES];
	bool is_queue;       /* a queue is active or not, so its peak is not shown */
	size_t gauge_offset; /* in struct time_series_gauges */
	/*
	 * Of a gauge: a peak measured otherwise, because samples may miss it, and a limit; 0: none.
	 */
	uint64_t peak_nbytes, limit_nbytes;
	const char *limit_note;
};

/* The values of the current row. */
struct timeline_values {
	struct html_report_writer *writer;
	uint32_t n_bins;
	double bin_s, last_bin_s; /* the last bin may be shorter */
	struct chart_series series[N_STAGES];
	unsigned n_series;
	double peak; /* the largest sum of the series */
	char classes[N_STAGES][STAGE_CLASS_NBYTES];
};

/* What distinguishes the charts over time. */
struct timeline_kind {
	/* Set the note and the scale of the current row. */
	void (*describe)(const struct timeline_values *timeline, const struct timeline_row *row,
			 char note[static NOTE_NBYTES], struct chart_row *chart_row);
	/* Write the table cells of the current row, after its name. */
	void (*put_cells)(const struct timeline_values *timeline, const struct timeline_row *row);
	const char *table_caption;
	struct html_report_column columns[5];
	unsigned n_columns;
	bool has_legend;
};

static double total_seconds(const struct timeline_values *timeline)
{
	const struct time_series *time_series = timeline->writer->time_series;

	return ns_to_seconds(time_series->end_ns - time_series->begin_ns);
}

static void timeline_init(struct timeline_values *timeline, struct html_report_writer *writer)
{
	const struct time_series *time_series = writer->time_series;
	uint64_t last_ns;

	memset(timeline, 0, sizeof *timeline);
	timeline->writer = writer;
	timeline->n_bins = time_series_n_bins(time_series);
	timeline->bin_s = ns_to_seconds(time_series->bin_ns);
	last_ns = time_series->end_ns - time_series->begin_ns -
		  (timeline->n_bins - 1) * time_series->bin_ns;
	timeline->last_bin_s = last_ns ? ns_to_seconds(last_ns) : timeline->bin_s;
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		stage_css_class(stage, timeline->classes[stage]);
}

static uint64_t sum_bins(const uint64_t bins[static TIME_SERIES_BINS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
		sum += bins[i];
	return sum;
}

/* A bin without a sample has the value of the previous one. */
static void fill_gauge(struct timeline_values *timeline, const struct timeline_row *row)
{
	const struct time_series_gauges *gauges = timeline->writer->time_series->gauges;
	struct chart_series *series = &timeline->series[timeline->n_series++];
	uint64_t nbytes = 0;

	series->class = row->class;
	series->name = row->name;
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		if (gauges[bin].memory_nbytes)
			memcpy(&nbytes, (const char *)&gauges[bin] + row->gauge_offset,
			       sizeof nbytes);
		series->values[bin] = (double)nbytes;
	}
}

static void fill_stage(struct timeline_values *timeline, const struct timeline_row *row,
		       enum stage stage)
{
	struct chart_series *series = &timeline->series[timeline->n_series++];

	series->class = timeline->classes[stage];
	series->name = stage_name(stage);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		series->values[bin] =
			(double)row->bins[stage][bin] * row->unit /
			(bin + 1 < timeline->n_bins ? timeline->bin_s : timeline->last_bin_s);
}

static void fill_row(struct timeline_values *timeline, const struct timeline_row *row)
{
	timeline->n_series = 0;
	timeline->peak = (double)row->peak_nbytes;
	if (!row->bins)
		fill_gauge(timeline, row);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (row->has_stage[stage])
			fill_stage(timeline, row, stage);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		double sum = 0;

		for (unsigned i = 0; i < timeline->n_series; i++)
			sum += timeline->series[i].values[bin];
		timeline->peak = fmax(timeline->peak, sum);
	}
}

static void put_spans(struct chart *chart, const struct time_series *time_series)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (time_series->phases[phase].end_ns)
			chart_span(chart, phase_name(phase),
				   ns_to_seconds(time_series->phases[phase].begin_ns -
						 time_series->begin_ns),
				   ns_to_seconds(time_series->phases[phase].end_ns -
						 time_series->begin_ns));
}

/* Write the colours of the stages in any row. */
static void put_legend(struct html *html, const struct timeline_row *rows, unsigned n)
{
	html_open(html, "figcaption");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		bool is_used = false;

		for (unsigned i = 0; i < n; i++)
			is_used = is_used || rows[i].has_stage[stage];
		if (!is_used)
			continue;
		html_open_with_class(html, "span", "key");
		html_open(html, "i");
		html_attribute(html, "class", "of-%s", stage_name(stage));
		html_close(html);
		html_text(html, "%s", stage_name(stage));
		html_close(html);
	}
	html_close(html);
}

/* Write the chart of n rows and their table. */
static void put_rows(struct html_report_writer *writer, const struct timeline_kind *kind,
		     struct chart_frame frame, const struct timeline_row *rows, unsigned n)
{
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_values timeline;
	struct chart chart;

	timeline_init(&timeline, writer);
	frame.n_rows = n;
	frame.n_bins = timeline.n_bins;
	frame.bin_s = timeline.bin_s;
	html_report_open_figure(html, frame.title);
	chart_open(&chart, html, &frame);
	put_spans(&chart, writer->time_series);
	for (unsigned i = 0; i < n; i++) {
		struct chart_row row = { .name = rows[i].name, .series = timeline.series };
		char note[NOTE_NBYTES] = "";

		fill_row(&timeline, &rows[i]);
		row.n = timeline.n_series;
		kind->describe(&timeline, &rows[i], note, &row);
		row.note = note;
		chart_row(&chart, &row);
	}
	chart_close(&chart);
	put_legend(html, rows, kind->has_legend ? n : 0);
	html_close(html);
	html_report_open_table(html, kind->table_caption ? kind->table_caption : frame.title,
			       kind->columns, kind->n_columns);
	for (unsigned i = 0; i < n; i++) {
		fill_row(&timeline, &rows[i]);
		html_open(html, "tr");
		html_report_header_cell(html, "%s", rows[i].name);
		kind->put_cells(&timeline, &rows[i]);
		html_close(html);
	}
	html_close_to(html, depth);
}

/* --- activity --- */

/* Set a row: the stages of a role, or all stages of a queue. Returns whether any was active. */
static bool set_activity(struct timeline_row *row, const char *name,
			 const struct stage_busy_times *times, enum track_role role)
{
	bool is_active = false;

	*row = (struct timeline_row){ .name = name,
				      .bins = times->busy_ns,
				      .is_queue = role == N_TRACK_ROLES,
				      .unit = 1e-9 };
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		row->has_stage[stage] = (role == N_TRACK_ROLES || stage_role(stage) == role) &&
					sum_bins(times->busy_ns[stage]) > 0;
		is_active = is_active || row->has_stage[stage];
	}
	return is_active;
}

/* The peak is a whole number of threads; rounding at bins may add a little. */
static void describe_activity(const struct timeline_values *timeline,
			      const struct timeline_row *row, char note[static NOTE_NBYTES],
			      struct chart_row *chart_row)
{
	chart_row->max = fmax(ceil(timeline->peak - 0.05), 1);
	if (!row->is_queue)
		snprintf(note, NOTE_NBYTES, "peak %.0f", chart_row->max);
}

/* Format "sort 61 %, merge 30 %". */
static void format_stage_shares(const struct timeline_row *row, uint64_t total_ns, char *text,
				size_t capacity)
{
	size_t length = 0;

	text[0] = '\0';
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (row->has_stage[stage] && length < capacity)
			length += (size_t)snprintf(text + length, capacity - length, "%s%s %.0f %%",
						   length ? ", " : "", stage_name(stage),
						   100 * (double)sum_bins(row->bins[stage]) /
							   (double)total_ns);
}

static void put_activity_cells(const struct timeline_values *timeline,
			       const struct timeline_row *row)
{
	const double total_s = total_seconds(timeline);
	struct html *html = &timeline->writer->html;
	uint64_t busy_ns = 0;
	char shares[200], busy[32];

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		busy_ns += row->has_stage[stage] ? sum_bins(row->bins[stage]) : 0;
	format_stage_shares(row, busy_ns, shares, sizeof shares);
	format_time(ns_to_seconds(busy_ns), busy);
	html_report_number_cell(html, "%s", busy);
	html_report_number_cell(html, "%.2f", total_s > 0 ? ns_to_seconds(busy_ns) / total_s : 0);
	html_report_number_cell(html, "%.1f", timeline->peak);
	html_report_text_cell(html, "%s", shares);
}

static const struct timeline_kind activity = {
	.describe = describe_activity,
	.put_cells = put_activity_cells,
	.columns = { { "Role", false },
		     { "Busy", true },
		     { "Average active", true },
		     { "Peak", true },
		     { "Stages", false } },
	.n_columns = 5,
	.has_legend = true,
};

void html_report_write_roles(struct html_report_writer *writer)
{
	static const struct chart_frame frame = {
		.id = "roles-picture",
		.title = "Activity of each role, by stage",
		.description = "A row for each role: the number of its active threads at each "
			       "moment, coloured by stage. The table below has the sums.",
		.row_height = 46,
	};
	struct timeline_row rows[N_TRACK_ROLES];
	unsigned n = 0;

	for (enum track_role role = 0; role < N_TRACK_ROLES; role++)
		n += set_activity(&rows[n], track_role_names(role), &writer->time_series->host,
				  role);
	html_report_open_time_section(writer, "roles", "Activity");
	if (n)
		put_rows(writer, &activity, frame, rows, n);
	else
		html_element(&writer->html, "p", "No activity was recorded.");
	html_close(&writer->html);
}

/* Return how many queues of a device were active. */
static unsigned collect_queues(const struct time_series *time_series,
			       struct timeline_row rows[static TIME_SERIES_MAX_QUEUES])
{
	static const char *const names[TIME_SERIES_MAX_QUEUES] = { "queue 1", "queue 2", "queue 3",
								   "queue 4", "queue 5", "queue 6",
								   "queue 7", "queue 8" };
	unsigned n = 0;

	for (uint32_t i = 0; i < time_series->n_queues; i++)
		n += set_activity(&rows[n], names[i], &time_series->queues[i], N_TRACK_ROLES);
	return n;
}

bool html_report_has_queues(const struct html_report_writer *writer)
{
	struct timeline_row rows[TIME_SERIES_MAX_QUEUES];

	return collect_queues(writer->time_series, rows) > 0;
}

void html_report_write_queues(struct html_report_writer *writer)
{
	static const struct chart_frame frame = {
		.id = "queues-picture",
		.title = "Queues of the GPU",
		.description = "A row for each queue: the share of each moment in which it was "
			       "active, coloured by stage. The table below has the sums.",
		.row_height = 34,
	};
	struct timeline_row rows[TIME_SERIES_MAX_QUEUES];
	const unsigned n = collect_queues(writer->time_series, rows);

	if (n == 0)
		return;
	html_report_open_time_section(writer, "queues", "Queues of the GPU");
	put_rows(writer, &activity, frame, rows, n);
	html_close(&writer->html);
}

/* --- throughput --- */

static void describe_throughput(const struct timeline_values *timeline,
				const struct timeline_row *row, char note[static NOTE_NBYTES],
				struct chart_row *chart_row)
{
	(void)row;
	format_rate((uint64_t)timeline->peak, 1, note);
	chart_row->max = timeline->peak > 0 ? timeline->peak : 1;
}

static void put_throughput_cells(const struct timeline_values *timeline,
				 const struct timeline_row *row)
{
	struct html *html = &timeline->writer->html;
	char size[32], rate[40];
	uint64_t nbytes = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		nbytes += row->has_stage[stage] ? sum_bins(row->bins[stage]) : 0;
	size_format(nbytes, size);
	html_report_number_cell(html, "%s", size);
	format_rate(nbytes, total_seconds(timeline), rate);
	html_report_number_cell(html, "%s", rate);
	format_rate((uint64_t)timeline->peak, 1, rate);
	html_report_number_cell(html, "%s", rate);
}

void html_report_write_throughput(struct html_report_writer *writer)
{
	/* Stages that move bytes instead of only processing them. */
	static const enum stage stages[] = { STAGE_READ,  STAGE_UPLOAD, STAGE_FETCH, STAGE_DOWNLOAD,
					     STAGE_SPILL, STAGE_WRITE,  STAGE_VERIFY };
	static const struct timeline_kind kind = {
		.describe = describe_throughput,
		.put_cells = put_throughput_cells,
		.table_caption = "Bytes over each link",
		.columns = { { "Link", false },
			     { "Bytes", true },
			     { "Average", true },
			     { "Peak", true } },
		.n_columns = 4,
	};
	static const struct chart_frame frame = {
		.id = "throughput-picture",
		.title = "Bytes over each link, for each second",
		.description = "A row for each link, scaled to its peak rate. The table below has "
			       "the sums.",
		.row_height = 40,
	};
	const struct time_series *time_series = writer->time_series;
	struct timeline_row rows[N_STAGES];
	unsigned n = 0;

	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
		if (sum_bins(time_series->nbytes[stages[i]]) == 0)
			continue;
		rows[n] = (struct timeline_row){ .name = stage_name(stages[i]),
						 .bins = time_series->nbytes,
						 .unit = 1 };
		rows[n++].has_stage[stages[i]] = true;
	}
	html_report_open_time_section(writer, "throughput", "Throughput");
	if (n)
		put_rows(writer, &kind, frame, rows, n);
	else
		html_element(&writer->html, "p", "No bytes were moved.");
	html_close(&writer->html);
}

/* --- memory and space --- */

static void describe_gauge(const struct timeline_values *timeline, const struct timeline_row *row,
			   char note[static NOTE_NBYTES], struct chart_row *chart_row)
{
	char peak[32];

	size_format((uint64_t)timeline->peak, peak);
	snprintf(note, NOTE_NBYTES, "peak %s", peak);
	chart_row->limit = (double)row->limit_nbytes;
	chart_row->max = 1.05 * fmax(fmax(timeline->peak, chart_row->limit), 1);
}

static void put_gauge_cells(const struct timeline_values *timeline, const struct timeline_row *row)
{
	struct html *html = &timeline->writer->html;
	char size[32];
	double sum = 0;

	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		sum += timeline->series[0].values[bin];
	size_format((uint64_t)(sum / timeline->n_bins), size);
	html_report_number_cell(html, "%s", size);
	size_format((uint64_t)timeline->peak, size);
	html_report_number_cell(html, "%s", size);
	size_format(row->limit_nbytes, size);
	html_report_text_cell(html, "%s%s", row->limit_nbytes ? size : "-",
			      row->limit_nbytes ? row->limit_note : "");
}

void html_report_write_space(struct html_report_writer *writer)
{
	static const struct timeline_kind kind = {
		.describe = describe_gauge,
		.put_cells = put_gauge_cells,
		.table_caption = "Memory and space",
		.columns = { { "Item", false },
			     { "Average", true },
			     { "Peak", true },
			     { "Limit", false } },
		.n_columns = 4,
	};
	const struct rank_stats *rank_stats = writer->report->stats_report->rank_stats;
	/* The time series is that of rank 0. */
	const struct sort_summary *summary = rank_stats ? &rank_stats->ranks[0].summary :
							  writer->summary;
	const struct stats_totals *totals = rank_stats ? &rank_stats->ranks[0].totals :
							 &writer->totals;
	const struct timeline_row rows[] = {
		{ .name = "memory",
		  .class = "gauge of-memory",
		  .gauge_offset = offsetof(struct time_series_gauges, memory_nbytes),
		  .peak_nbytes = totals->usage.peak_rss_nbytes,
		  .limit_nbytes = summary->buffer_nbytes,
		  .limit_note = ", -S; up to 32 MiB more are possible" },
		{ .name = "temporary",
		  .class = "gauge of-temporary",
		  .gauge_offset = offsetof(struct time_series_gauges, temporary_nbytes),
		  .peak_nbytes = summary->peak_temp_nbytes,
		  .limit_nbytes = summary->plan.max_temp_nbytes,
		  .limit_note = ", planned" },
		{ .name = "written",
		  .class = "gauge of-written",
		  .gauge_offset = offsetof(struct time_series_gauges, written_nbytes) },
	};
	const bool is_sort = summary->backend[0]; /* a check uses only memory */
	const struct chart_frame frame = {
		.id = "space-picture",
		.title = is_sort ? "Memory, temporary space, and bytes written" : "Memory",
		.description = "The amount in use at each moment; a dashed line is the limit. The "
			       "table below has the numbers.",
		.row_height = 84,
	};

	html_report_open_time_section(writer, "space", "Memory and space");
	put_rows(writer, &kind, frame, rows, is_sort ? sizeof rows / sizeof rows[0] : 1);
	html_close(&writer->html);
}
