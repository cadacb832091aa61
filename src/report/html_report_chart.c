/*
 * html_report_chart.c - the charts of the page, each with a table of its numbers
 *
 * All charts over time have the same bins (src/base/time_series.h), so what is above each other
 * happened at the same time. The values of one row at a time are computed: once for the chart and
 * again for the table.
 */
#include "src/report/html_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format.h"

enum { NOTE_NBYTES = 64 };

/* --- phases and stages --- */

static double phase_seconds(const struct html_page *page, enum phase phase)
{
	return ns_to_seconds(page->totals.phases[phase].elapsed_ns);
}

static double total_phase_seconds(const struct html_page *page)
{
	double s = 0;

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += page->totals.phases[phase].has_begun ? phase_seconds(page, phase) : 0;
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

static void put_phase_rows(const struct html_page *page)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		const struct phase_totals *totals = &page->totals.phases[phase];
		const enum stage bottleneck = phase_bottleneck(totals),
				 longest = phase_longest_stage(totals);
		char most_active[NOTE_NBYTES] = "-";

		if (!totals->has_begun)
			continue;
		/* Even if it was not active long enough to be the bottleneck. */
		if (longest < N_STAGES)
			snprintf(most_active, sizeof most_active, "%s, %.0f %%",
				 stage_name(longest), 100 * active_fraction(totals, longest));
		html_print(page->stream,
			   "<tr><th scope=\"row\">%s</th>\n<td class=\"number\">%s</td>\n"
			   "<td class=\"number\">%.0f %%</td>\n<td>%s</td>\n<td>%s</td>\n</tr>\n",
			   phase_name(phase), format_time(phase_seconds(page, phase)).text,
			   100 * phase_seconds(page, phase) / total_phase_seconds(page),
			   bottleneck < N_STAGES ? stage_name(bottleneck) : "none", most_active);
	}
}

/* Write a bar that is divided by the times of the phases. The table has the numbers. */
static void put_phase_bar(const struct html_page *page)
{
	/* In microseconds: if the sum of flex-grow is below 1, the bar is not filled. */
	html_print(page->stream, "<div class=\"phases\" aria-hidden=\"true\">\n");
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		if (!page->totals.phases[phase].has_begun)
			continue;
		html_print(page->stream,
			   "<span class=\"phase of-%s\" style=\"flex-grow:%.0f\">%s, %s</span>\n",
			   phase_key(phase), 1e6 * phase_seconds(page, phase), phase_name(phase),
			   format_time(phase_seconds(page, phase)).text);
	}
	html_print(page->stream, "</div>\n");
}

void html_page_write_phases(const struct html_page *page)
{
	static const struct html_column columns[] = { { "Phase", false },
						      { "Time", true },
						      { "Share", true },
						      { "Bottleneck", false },
						      { "Most active", false } };

	html_open_section(page->stream, "phases", "Phases");
	put_phase_bar(page);
	html_open_table(page->stream, "Phases and their bottlenecks", columns, 5);
	put_phase_rows(page);
	html_close_table(page->stream);
	html_print(page->stream, "</section>\n");
}

/* Write a number with a bar below it, as long as the fraction of the cell. */
static void put_bar_cell(FILE *stream, enum stage stage, double fraction, const char *number)
{
	html_print(
		stream,
		"<td class=\"number bar\">%s<i class=\"work of-%s\" style=\"width:%.1f%%\"></i>\n"
		"</td>\n",
		number, stage_name(stage), 100 * fmin(fraction, 1));
}

static void put_percent_cell(FILE *stream, enum stage stage, double fraction)
{
	char text[32];

	snprintf(text, sizeof text, "%.0f %%", 100 * fraction);
	put_bar_cell(stream, stage, fraction, text);
}

static void put_stage_row(const struct html_page *page, const struct phase_totals *phase,
			  enum stage stage, double max_rate)
{
	const struct stage_totals *totals = &phase->stages[stage];
	const double peak_rate = page->summary->peak_rates[stage], rate = stage_rate(totals);
	FILE *const stream = page->stream;

	html_begin_tag(stream, "tr", stage == phase_bottleneck(phase) ? "longest" : NULL);
	html_print(stream,
		   "><th scope=\"row\">%s</th>\n<td class=\"number\">%s</td>\n"
		   "<td class=\"number\">%s</td>\n<td class=\"number\">%s</td>\n",
		   stage_name(stage), totals->nbytes ? size_format(totals->nbytes).text : "-",
		   format_time(ns_to_seconds(totals->busy_ns)).text,
		   format_time(ns_to_seconds(totals->blocked_ns)).text);
	put_percent_cell(stream, stage, active_fraction(phase, stage));
	put_bar_cell(stream, stage, rate / max_rate,
		     format_rate(totals->nbytes, ns_to_seconds(totals->active_ns)).text);
	html_print(stream, "<td class=\"number\">%s</td>\n",
		   format_rate(totals->nbytes ? (uint64_t)peak_rate : 0, 1).text);
	if (peak_rate > 0 && totals->nbytes)
		put_percent_cell(stream, stage, rate / peak_rate);
	else
		html_print(stream, "<td class=\"number\">-</td>\n");
	html_print(stream, "</tr>\n");
}

/*
 * Write "sort was the bottleneck: active 81 % of the time", or "merge was active longest, but only
 * 18 % of the time: there was no bottleneck".
 */
static void put_bottleneck(const struct html_page *page, const struct phase_totals *phase)
{
	const enum stage stage = phase_longest_stage(phase);
	const double peak_rate = stage < N_STAGES ? page->summary->peak_rates[stage] : 0;
	const bool is_bottleneck = phase_bottleneck(phase) == stage;

	if (stage == N_STAGES)
		return;
	html_print(page->stream, "<p><strong>%s</strong>\n was %s %.0f %% of the time%s",
		   stage_name(stage),
		   is_bottleneck ? "the bottleneck: active" : "active longest, but only",
		   100 * active_fraction(phase, stage),
		   is_bottleneck ? "" : ": there was no bottleneck");
	if (peak_rate > 0 && phase->stages[stage].nbytes)
		html_print(page->stream, ", at %.0f %% of its peak rate",
			   100 * stage_rate(&phase->stages[stage]) / peak_rate);
	html_print(page->stream, ".</p>\n");
}

static void put_phase_stages(const struct html_page *page, enum phase id)
{
	static const struct html_column columns[] = { { "Stage", false }, { "Bytes", true },
						      { "Busy", true },   { "Blocked", true },
						      { "Active", true }, { "Rate", true },
						      { "Peak", true },   { "Of peak", true } };
	const struct phase_totals *phase = &page->totals.phases[id];
	bool is_idle = true, has_peak_rates = false;
	double max_rate = 1; /* has a bar of full length */
	char caption[96];

	html_print(page->stream, "<h3>%s, %s</h3>\n", phase_name(id),
		   format_time(phase_seconds(page, id)).text);
	put_bottleneck(page, phase);
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const struct stage_totals *totals = &phase->stages[stage];

		is_idle = is_idle && stage_is_idle(totals);
		has_peak_rates = has_peak_rates ||
				 (totals->nbytes && page->summary->peak_rates[stage] > 0);
		max_rate = fmax(max_rate, stage_rate(totals));
	}
	if (is_idle)
		return;
	if (!has_peak_rates)
		html_print(page->stream,
			   "<p>Peak rates were not measured: this is done only for phases of a "
			   "second and more, in a sort of records by one process.</p>\n");
	snprintf(caption, sizeof caption, "Stages of phase %s", phase_name(id));
	html_open_table(page->stream, caption, columns, 8);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (!stage_is_idle(&phase->stages[stage]))
			put_stage_row(page, phase, stage, max_rate);
	html_close_table(page->stream);
}

void html_page_write_stages(const struct html_page *page)
{
	html_open_section(page->stream, "stages", "Bytes through each stage");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (page->totals.phases[phase].has_begun)
			put_phase_stages(page, phase);
	html_print(page->stream, "</section>\n");
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
	const struct html_page *page;
	uint32_t n_bins;
	double bin_s, last_bin_s; /* the last bin may be shorter */
	struct chart_series series[N_STAGES];
	unsigned n_series;
	double peak;                /* the largest sum of the series */
	char classes[N_STAGES][32]; /* "work of-sort" */
};

/* A section with one chart over time. */
struct timeline_section {
	const char *id, *heading;
	const char *empty_text;   /* shown in place of a chart without rows */
	struct chart_frame frame; /* without rows and bins */
	/* Set the note and the scale of the current row. */
	void (*describe)(const struct timeline_values *timeline, const struct timeline_row *row,
			 char note[static NOTE_NBYTES], struct chart_row *chart_row);
	/* Write the table cells of the current row, after its name. */
	void (*put_cells)(const struct timeline_values *timeline, const struct timeline_row *row);
	const char *table_caption;
	struct html_column columns[5];
	unsigned n_columns;
	bool has_legend;
};

static double total_seconds(const struct timeline_values *timeline)
{
	const struct time_series *time_series = timeline->page->time_series;

	return ns_to_seconds(time_series->end_ns - time_series->begin_ns);
}

static void timeline_init(struct timeline_values *timeline, const struct html_page *page)
{
	const struct time_series *time_series = page->time_series;
	uint64_t last_ns;

	memset(timeline, 0, sizeof *timeline);
	timeline->page = page;
	timeline->n_bins = time_series_n_bins(time_series);
	timeline->bin_s = ns_to_seconds(time_series->bin_ns);
	last_ns = time_series->end_ns - time_series->begin_ns -
		  (timeline->n_bins - 1) * time_series->bin_ns;
	timeline->last_bin_s = last_ns ? ns_to_seconds(last_ns) : timeline->bin_s;
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		snprintf(timeline->classes[stage], sizeof timeline->classes[stage], "work of-%s",
			 stage_name(stage));
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
	const struct time_series_gauges *gauges = timeline->page->time_series->gauges;
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

/* Write the colours of the stages in any row. */
static void put_legend(FILE *stream, const struct timeline_row *rows, unsigned n)
{
	html_print(stream, "<figcaption>");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		bool is_used = false;

		for (unsigned i = 0; i < n; i++)
			is_used = is_used || rows[i].has_stage[stage];
		if (is_used)
			html_print(stream,
				   "<span class=\"key\"><i class=\"of-%s\"></i>\n%s</span>\n",
				   stage_name(stage), stage_name(stage));
	}
	html_print(stream, "</figcaption>\n");
}

/* Write the section of one chart of n rows and their table; of an empty chart, the sentence. */
static void write_section(const struct html_page *page, const struct timeline_section *section,
			  const struct timeline_row *rows, unsigned n)
{
	const struct time_series *series = page->time_series;
	FILE *const stream = page->stream;
	struct chart_frame frame = section->frame;
	struct timeline_values timeline;
	struct chart chart;

	html_open_section(stream, section->id, section->heading);
	if (page->rank_stats)
		html_print(stream, "<p>Rank 0 only, on %s; a trace has all ranks.</p>\n",
			   page->rank_stats->hosts[0]);
	if (n == 0) {
		html_print(stream, "<p>%s</p>\n</section>\n", section->empty_text);
		return;
	}
	timeline_init(&timeline, page);
	frame.n_rows = n;
	frame.n_bins = timeline.n_bins;
	frame.bin_s = timeline.bin_s;
	html_print(stream, "<figure role=\"region\" tabindex=\"0\" aria-label=\"%s\">\n",
		   frame.title);
	chart_open(&chart, stream, &frame);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (series->phases[phase].end_ns)
			chart_span(&chart, phase_name(phase),
				   ns_to_seconds(series->phases[phase].begin_ns - series->begin_ns),
				   ns_to_seconds(series->phases[phase].end_ns - series->begin_ns));
	for (unsigned i = 0; i < n; i++) {
		struct chart_row row = { .name = rows[i].name, .series = timeline.series };
		char note[NOTE_NBYTES] = "";

		fill_row(&timeline, &rows[i]);
		row.n = timeline.n_series;
		section->describe(&timeline, &rows[i], note, &row);
		row.note = note;
		chart_row(&chart, &row);
	}
	chart_close(&chart);
	put_legend(stream, rows, section->has_legend ? n : 0);
	html_print(stream, "</figure>\n");
	html_open_table(stream, section->table_caption ? section->table_caption : frame.title,
			section->columns, section->n_columns);
	for (unsigned i = 0; i < n; i++) {
		fill_row(&timeline, &rows[i]);
		html_print(stream, "<tr><th scope=\"row\">%s</th>\n", rows[i].name);
		section->put_cells(&timeline, &rows[i]);
		html_print(stream, "</tr>\n");
	}
	html_close_table(stream);
	html_print(stream, "</section>\n");
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

/* The last cell is "sort 61 %, merge 30 %". */
static void put_activity_cells(const struct timeline_values *timeline,
			       const struct timeline_row *row)
{
	const double total_s = total_seconds(timeline);
	uint64_t busy_ns = 0;
	char shares[200] = "";
	size_t n = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		busy_ns += row->has_stage[stage] ? sum_bins(row->bins[stage]) : 0;
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (row->has_stage[stage] && n < sizeof shares)
			n += (size_t)snprintf(shares + n, sizeof shares - n, "%s%s %.0f %%",
					      n ? ", " : "", stage_name(stage),
					      100 * (double)sum_bins(row->bins[stage]) /
						      (double)busy_ns);
	html_print(timeline->page->stream,
		   "<td class=\"number\">%s</td>\n<td class=\"number\">%.2f</td>\n"
		   "<td class=\"number\">%.1f</td>\n<td>%s</td>\n",
		   format_time(ns_to_seconds(busy_ns)).text,
		   total_s > 0 ? ns_to_seconds(busy_ns) / total_s : 0, timeline->peak, shares);
}

#define ACTIVITY_SECTION                                                                           \
	.describe = describe_activity, .put_cells = put_activity_cells, .n_columns = 5,            \
	.columns = { { "Role", false },                                                            \
		     { "Busy", true },                                                             \
		     { "Average active", true },                                                   \
		     { "Peak", true },                                                             \
		     { "Stages", false } },                                                        \
	.has_legend = true

void html_page_write_roles(const struct html_page *page)
{
	static const struct timeline_section section = {
		.id = "roles",
		.heading = "Activity",
		.empty_text = "No activity was recorded.",
		.frame = { .id = "roles-picture",
			   .title = "Activity of each role, by stage",
			   .description =
				   "A row for each role: the number of its active threads at "
				   "each moment, coloured by stage. The table below has the "
				   "sums.",
			   .row_height = 46 },
		ACTIVITY_SECTION,
	};
	struct timeline_row rows[N_TRACK_ROLES];
	unsigned n = 0;

	for (enum track_role role = 0; role < N_TRACK_ROLES; role++)
		n += set_activity(&rows[n], track_role_names(role), &page->time_series->host, role);
	write_section(page, &section, rows, n);
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

bool html_page_has_queues(const struct html_page *page)
{
	struct timeline_row rows[TIME_SERIES_MAX_QUEUES];

	return collect_queues(page->time_series, rows) > 0;
}

void html_page_write_queues(const struct html_page *page)
{
	static const struct timeline_section section = {
		.id = "queues",
		.heading = "Queues of the GPU",
		.frame = { .id = "queues-picture",
			   .title = "Queues of the GPU",
			   .description =
				   "A row for each queue: the share of each moment in which "
				   "it was active, coloured by stage. The table below has the "
				   "sums.",
			   .row_height = 34 },
		ACTIVITY_SECTION,
	};
	struct timeline_row rows[TIME_SERIES_MAX_QUEUES];
	const unsigned n = collect_queues(page->time_series, rows);

	if (n)
		write_section(page, &section, rows, n);
}

/* --- throughput --- */

static void describe_throughput(const struct timeline_values *timeline,
				const struct timeline_row *row, char note[static NOTE_NBYTES],
				struct chart_row *chart_row)
{
	(void)row;
	strcpy(note, format_rate((uint64_t)timeline->peak, 1).text);
	chart_row->max = timeline->peak > 0 ? timeline->peak : 1;
}

static void put_throughput_cells(const struct timeline_values *timeline,
				 const struct timeline_row *row)
{
	uint64_t nbytes = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		nbytes += row->has_stage[stage] ? sum_bins(row->bins[stage]) : 0;
	html_print(timeline->page->stream,
		   "<td class=\"number\">%s</td>\n<td class=\"number\">%s</td>\n"
		   "<td class=\"number\">%s</td>\n",
		   size_format(nbytes).text, format_rate(nbytes, total_seconds(timeline)).text,
		   format_rate((uint64_t)timeline->peak, 1).text);
}

void html_page_write_throughput(const struct html_page *page)
{
	/* Stages that move bytes instead of only processing them. */
	static const enum stage stages[] = { STAGE_READ,  STAGE_UPLOAD, STAGE_FETCH, STAGE_DOWNLOAD,
					     STAGE_SPILL, STAGE_WRITE,  STAGE_VERIFY };
	static const struct timeline_section section = {
		.id = "throughput",
		.heading = "Throughput",
		.empty_text = "No bytes were moved.",
		.frame = { .id = "throughput-picture",
			   .title = "Bytes through each stage, for each second",
			   .description =
				   "A row for each stage, scaled to its peak rate. The table "
				   "below has the sums.",
			   .row_height = 40 },
		.describe = describe_throughput,
		.put_cells = put_throughput_cells,
		.table_caption = "Bytes through each stage",
		.columns = { { "Stage", false },
			     { "Bytes", true },
			     { "Average", true },
			     { "Peak", true } },
		.n_columns = 4,
	};
	const struct time_series *time_series = page->time_series;
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
	write_section(page, &section, rows, n);
}

/* --- memory and space --- */

static void describe_gauge(const struct timeline_values *timeline, const struct timeline_row *row,
			   char note[static NOTE_NBYTES], struct chart_row *chart_row)
{
	snprintf(note, NOTE_NBYTES, "peak %s", size_format((uint64_t)timeline->peak).text);
	chart_row->limit = (double)row->limit_nbytes;
	chart_row->max = 1.05 * fmax(fmax(timeline->peak, chart_row->limit), 1);
}

static void put_gauge_cells(const struct timeline_values *timeline, const struct timeline_row *row)
{
	double sum = 0;

	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		sum += timeline->series[0].values[bin];
	html_print(timeline->page->stream,
		   "<td class=\"number\">%s</td>\n<td class=\"number\">%s</td>\n<td>%s%s</td>\n",
		   size_format((uint64_t)(sum / timeline->n_bins)).text,
		   size_format((uint64_t)timeline->peak).text,
		   row->limit_nbytes ? size_format(row->limit_nbytes).text : "-",
		   row->limit_nbytes ? row->limit_note : "");
}

void html_page_write_space(const struct html_page *page)
{
	const struct rank_stats *rank_stats = page->rank_stats;
	/* The time series is that of rank 0. */
	const struct sort_summary *summary = rank_stats ? &rank_stats->ranks[0].summary :
							  page->summary;
	const struct stats_totals *totals = rank_stats ? &rank_stats->ranks[0].totals :
							 &page->totals;
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
	const struct timeline_section section = {
		.id = "space",
		.heading = "Memory and space",
		.frame = { .id = "space-picture",
			   .title = is_sort ? "Memory, temporary space, and bytes written" :
					      "Memory",
			   .description = "The amount in use at each moment; a dashed line is the "
					  "limit. The table below has the numbers.",
			   .row_height = 84 },
		.describe = describe_gauge,
		.put_cells = put_gauge_cells,
		.table_caption = "Memory and space",
		.columns = { { "Item", false },
			     { "Average", true },
			     { "Peak", true },
			     { "Limit", false } },
		.n_columns = 4,
	};

	write_section(page, &section, rows, is_sort ? sizeof rows / sizeof rows[0] : 1);
}
