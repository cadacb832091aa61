/*
 * html_report_activity - who was at work, and with what, over time (see html_report_internal.h)
 */
#include <math.h>

#include "src/report/format_numbers.h"
#include "src/report/timeline_chart.h"

enum { NOTE_NBYTES = 64 };

/* Some who do the same: the stages that are their work, or all that a lane of a device did. */
struct activity_row {
	char name[32];
	const struct stage_busy_times *activity;
	enum track_role role; /* N_TRACK_ROLES: any */
};

static bool row_has_stage(const struct activity_row *row, enum stage stage)
{
	return (row->role == N_TRACK_ROLES || stage_role(stage) == row->role) &&
	       timeline_chart_sum(row->activity->busy_ns[stage]) > 0;
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
					      timeline_chart_bin_s(timeline, bin);
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

	timeline_chart_init(&timeline, writer);
	timeline_chart_open(&timeline, *frame);
	for (unsigned i = 0; i < n; i++) {
		const unsigned n_series = fill_series(&timeline, &rows[i], used);
		const double max_active = round_up_peak(timeline_chart_peak(&timeline, n_series));
		char note[NOTE_NBYTES];

		snprintf(note, sizeof note, "peak %.0f", max_active);
		chart_row(&timeline.chart,
			  &(struct chart_row){ .name = rows[i].name,
					       .note = rows[i].role < N_TRACK_ROLES ? note : "",
					       .series = timeline.series,
					       .n = n_series,
					       .max = max_active });
	}
	timeline_chart_close(&timeline, used);
}

/* "sort 61 %, merge 30 %" */
static void format_stage_shares(const struct activity_row *row, uint64_t total_ns, char *text,
				size_t capacity)
{
	size_t length = 0;

	text[0] = '\0';
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const uint64_t ns = timeline_chart_sum(row->activity->busy_ns[stage]);

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
		busy_ns += used[stage] ? timeline_chart_sum(row->activity->busy_ns[stage]) : 0;
	format_stage_shares(row, busy_ns, shares, sizeof shares);
	html_open(html, "tr");
	html_report_header_cell(html, "%s", row->name);
	format_time(ns_to_seconds(busy_ns), busy);
	html_report_number_cell(html, "%s", busy);
	html_report_number_cell(html, "%.2f", total_s > 0 ? ns_to_seconds(busy_ns) / total_s : 0);
	html_report_number_cell(html, "%.1f", timeline_chart_peak(timeline, n_series));
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
	timeline_chart_init(&timeline, writer);
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
