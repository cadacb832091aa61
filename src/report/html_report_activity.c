/*
 * html_report_activity - who was at work, and with what, over time (see html_report_internal.h)
 */
#include <math.h>

#include "src/report/format_numbers.h"
#include "src/report/timeline_chart.h"

enum { NOTE_NBYTES = 64 };

/* Some who do the same: the stages that are their work, or all that a lane of a device did. */
struct workers {
	char name[32];
	const struct history_work *work;
	enum track_role role; /* N_TRACK_ROLES: any */
};

static bool has_work(const struct workers *workers, enum stage stage)
{
	return (workers->role == N_TRACK_ROLES || stage_role(stage) == workers->role) &&
	       picture_sum(workers->work->busy_ns[stage]) > 0;
}

static bool have_worked(const struct workers *workers)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_work(workers, stage))
			return true;
	return false;
}

/* As many as there may be; returns how many. Their roles, then the lanes of a device. */
static unsigned find_roles(const struct history *history,
			   struct workers found[static N_TRACK_ROLES])
{
	unsigned n = 0;

	for (enum track_role role = 0; role < N_TRACK_ROLES; role++) {
		struct workers *workers = &found[n];

		*workers = (struct workers){ .work = &history->host, .role = role };
		snprintf(workers->name, sizeof workers->name, "%s", track_role_names(role));
		n += have_worked(workers);
	}
	return n;
}

static unsigned find_lanes(const struct history *history,
			   struct workers found[static HISTORY_LANES])
{
	unsigned n = 0;

	for (uint32_t i = 0; i < history->n_lanes; i++) {
		struct workers *workers = &found[n];

		*workers = (struct workers){ .work = &history->lanes[i], .role = N_TRACK_ROLES };
		snprintf(workers->name, sizeof workers->name, "queue %u", i + 1);
		n += have_worked(workers);
	}
	return n;
}

/* How many of them were at work in each bin, by stage. Returns how many stages there are. */
static unsigned fill_series(struct picture *picture, const struct workers *workers,
			    bool used[static N_STAGES])
{
	unsigned n = 0;

	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		struct chart_series *series = &picture->series[n];

		if (!has_work(workers, stage))
			continue;
		used[stage] = true;
		series->class = picture->classes[stage];
		series->name = stage_name(stage);
		for (uint32_t bin = 0; bin < picture->n_bins; bin++)
			series->values[bin] = figures_s(workers->work->busy_ns[stage][bin]) /
					      picture_bin_s(picture, bin);
		n++;
	}
	return n;
}

/* As a whole number of workers; work that is cut between bins may seem a little more. */
static double whole(double peak)
{
	const double n = ceil(peak - 0.05);

	return n < 1 ? 1 : n;
}

static void put_workers_picture(struct writer *writer, const struct workers *workers, unsigned n,
				const struct chart_frame *frame)
{
	bool used[N_STAGES] = { false };
	struct picture picture;

	picture_init(&picture, writer);
	picture_open(&picture, *frame);
	for (unsigned i = 0; i < n; i++) {
		const unsigned n_series = fill_series(&picture, &workers[i], used);
		const double most = whole(picture_peak(&picture, n_series));
		char note[NOTE_NBYTES];

		snprintf(note, sizeof note, "peak %.0f", most);
		chart_row(&picture.chart,
			  &(struct chart_row){ .name = workers[i].name,
					       .note = workers[i].role < N_TRACK_ROLES ? note : "",
					       .series = picture.series,
					       .n = n_series,
					       .most = most });
	}
	picture_close(&picture, used);
}

/* "sort 61 %, merge 30 %" */
static void format_shares(const struct workers *workers, uint64_t all_ns, char *text, size_t room)
{
	size_t at = 0;

	text[0] = '\0';
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const uint64_t ns = picture_sum(workers->work->busy_ns[stage]);

		if (has_work(workers, stage) && at < room)
			at += (size_t)snprintf(text + at, room - at, "%s%s %.0f %%", at ? ", " : "",
					       stage_name(stage),
					       100 * (double)ns / (double)all_ns);
	}
}

static void put_workers_row(struct writer *writer, struct picture *picture,
			    const struct workers *workers)
{
	bool used[N_STAGES] = { false };
	const unsigned n_series = fill_series(picture, workers, used);
	const double all_s = figures_s(writer->history->end_ns - writer->history->begin_ns);
	struct html *html = &writer->html;
	uint64_t busy_ns = 0;
	char shares[200], busy[32];

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		busy_ns += used[stage] ? picture_sum(workers->work->busy_ns[stage]) : 0;
	format_shares(workers, busy_ns, shares, sizeof shares);
	html_open(html, "tr");
	page_head_cell(html, "%s", workers->name);
	figures_time(figures_s(busy_ns), busy);
	page_number(html, "%s", busy);
	page_number(html, "%.2f", all_s > 0 ? figures_s(busy_ns) / all_s : 0);
	page_number(html, "%.1f", picture_peak(picture, n_series));
	page_cell(html, "%s", shares);
	html_close(html);
}

static void put_workers(struct writer *writer, const struct workers *workers, unsigned n,
			const struct chart_frame *frame)
{
	static const struct page_column columns[] = { { "Role", false },
						      { "Busy", true },
						      { "Average active", true },
						      { "Peak", true },
						      { "Stages", false } };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct picture picture;

	put_workers_picture(writer, workers, n, frame);
	picture_init(&picture, writer);
	page_open_table(html, frame->title, columns, 5);
	for (unsigned i = 0; i < n; i++)
		put_workers_row(writer, &picture, &workers[i]);
	html_close_to(html, depth);
}

void page_write_roles(struct writer *writer)
{
	struct workers workers[N_TRACK_ROLES];
	const unsigned n = find_roles(writer->history, workers);
	const struct chart_frame frame = {
		.id = "roles-picture",
		.title = "Activity of each role, by stage",
		.description = "A row for each role: the number of its active threads at each "
			       "moment, coloured by stage. The table below has the sums.",
		.n_rows = n,
		.row_height = 46,
	};

	page_open_section_over_time(writer, "roles", "Activity");
	if (n)
		put_workers(writer, workers, n, &frame);
	else
		html_element(&writer->html, "p", "No activity was recorded.");
	html_close(&writer->html);
}

bool page_has_lanes(const struct writer *writer)
{
	struct workers workers[HISTORY_LANES];

	return find_lanes(writer->history, workers) > 0;
}

void page_write_lanes(struct writer *writer)
{
	struct workers workers[HISTORY_LANES];
	const unsigned n = find_lanes(writer->history, workers);
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
	page_open_section_over_time(writer, "queues", "Queues of the GPU");
	put_workers(writer, workers, n, &frame);
	html_close(&writer->html);
}
