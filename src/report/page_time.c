/*
 * page_time - who was at work, and what moved, over time (see page_inside.h)
 *
 * Every picture has the same axis, so what stands above each other was at the same time.
 */
#include <math.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/chart.h"
#include "src/report/figures.h"
#include "src/report/page_inside.h"

enum { NOTE_NBYTES = 64 };

/* The rows of one picture, of which one is filled in after the other. */
struct picture {
	struct writer *writer;
	struct chart chart;
	uint32_t n_bins;
	double bin_s, last_s; /* the last bin may have less */
	struct chart_series series[N_STAGES];
	char classes[N_STAGES][PAGE_CLASS_NBYTES];
};

static void picture_init(struct picture *picture, struct writer *writer)
{
	const struct history *history = writer->history;
	const uint64_t all_ns = history->end_ns - history->begin_ns;

	memset(picture, 0, sizeof *picture);
	picture->writer = writer;
	picture->n_bins = history_n_bins(history);
	picture->bin_s = figures_s(history->bin_ns);
	picture->last_s = figures_s(all_ns - (picture->n_bins - 1) * history->bin_ns);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		page_class(stage, picture->classes[stage]);
}

static void picture_open(struct picture *picture, struct chart_frame frame)
{
	const struct history *history = picture->writer->history;

	frame.n_bins = picture->n_bins;
	frame.bin_s = picture->bin_s;
	page_open_figure(&picture->writer->html, frame.title);
	chart_open(&picture->chart, &picture->writer->html, &frame);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (history->phases[phase].end_ns)
			chart_span(&picture->chart, phase_name(phase),
				   figures_s(history->phases[phase].begin_ns - history->begin_ns),
				   figures_s(history->phases[phase].end_ns - history->begin_ns));
}

/* The picture, and the legend of what is in it. */
static void picture_close(struct picture *picture, const bool used[static N_STAGES])
{
	struct html *html = &picture->writer->html;

	chart_close(&picture->chart);
	html_open(html, "figcaption");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (!used[stage])
			continue;
		html_open_of(html, "span", "key");
		html_open(html, "i");
		html_attribute(html, "class", "of-%s", stage_name(stage));
		html_close(html);
		html_text(html, "%s", stage_name(stage));
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

static double bin_length_s(const struct picture *picture, uint32_t bin)
{
	const double s = bin + 1 < picture->n_bins ? picture->bin_s : picture->last_s;

	return s > 0 ? s : picture->bin_s;
}

static uint64_t sum_of(const uint64_t bins[static HISTORY_BINS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < HISTORY_BINS; i++)
		sum += bins[i];
	return sum;
}

/* --- Who was at work --- */

/* Some who do the same: the stages that are their work, or all that a lane of a device did. */
struct workers {
	char name[32];
	const struct history_work *work;
	enum track_role role; /* N_TRACK_ROLES: any */
};

static bool has_work(const struct workers *workers, enum stage stage)
{
	return (workers->role == N_TRACK_ROLES || stage_role(stage) == workers->role) &&
	       sum_of(workers->work->busy_ns[stage]) > 0;
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
		snprintf(workers->name, sizeof workers->name, "lane %u", i + 1);
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
					      bin_length_s(picture, bin);
		n++;
	}
	return n;
}

/* The most that all n series come to. */
static double peak_of(const struct picture *picture, unsigned n)
{
	double most = 0;

	for (uint32_t bin = 0; bin < picture->n_bins; bin++) {
		double sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += picture->series[i].values[bin];
		most = sum > most ? sum : most;
	}
	return most;
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
		const double most = whole(peak_of(&picture, n_series));
		char note[NOTE_NBYTES];

		snprintf(note, sizeof note, "%.0f at most", most);
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
		const uint64_t ns = sum_of(workers->work->busy_ns[stage]);

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
		busy_ns += used[stage] ? sum_of(workers->work->busy_ns[stage]) : 0;
	format_shares(workers, busy_ns, shares, sizeof shares);
	html_open(html, "tr");
	page_head_cell(html, "%s", workers->name);
	figures_time(figures_s(busy_ns), busy);
	page_number(html, "%s", busy);
	page_number(html, "%.2f", all_s > 0 ? figures_s(busy_ns) / all_s : 0);
	page_number(html, "%.1f", peak_of(picture, n_series));
	page_cell(html, "%s", shares);
	html_close(html);
}

static void put_workers(struct writer *writer, const struct workers *workers, unsigned n,
			const struct chart_frame *frame)
{
	static const struct page_column columns[] = { { "Who", false },
						      { "Busy", true },
						      { "At work on average", true },
						      { "At most", true },
						      { "With", false } };
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
		.title = "Who was at work, and with what",
		.description = "A row for each role: how many of its threads were at work at each "
			       "moment, coloured by stage. The table below has the sums.",
		.n_rows = n,
		.row_height = 46,
	};

	page_open_section(&writer->html, "roles", "Who was at work");
	if (n)
		put_workers(writer, workers, n, &frame);
	else
		html_element(&writer->html, "p", "Nobody.");
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
		.id = "lanes-picture",
		.title = "Lanes of the GPU",
		.description = "A row for each lane: the part of each moment in which it was at "
			       "work, coloured by stage. The table below has the sums.",
		.n_rows = n,
		.row_height = 34,
	};

	if (n == 0)
		return;
	page_open_section(&writer->html, "lanes", "Lanes of the GPU");
	put_workers(writer, workers, n, &frame);
	html_close(&writer->html);
}

/* --- What moved --- */

/* A stage that brings bytes from one place to another, and not only looks at them. */
static bool is_link(enum stage stage)
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

static bool has_moved(const struct writer *writer, enum stage stage)
{
	return is_link(stage) && sum_of(writer->history->nbytes[stage]) > 0;
}

static void fill_rates(struct picture *picture, enum stage stage)
{
	struct chart_series *series = &picture->series[0];

	series->class = picture->classes[stage];
	series->name = stage_name(stage);
	for (uint32_t bin = 0; bin < picture->n_bins; bin++)
		series->values[bin] = (double)picture->writer->history->nbytes[stage][bin] /
				      bin_length_s(picture, bin);
}

static void put_throughput_row(struct picture *picture, enum stage stage)
{
	char note[40];
	double peak;

	fill_rates(picture, stage);
	peak = peak_of(picture, 1);
	figures_rate((uint64_t)peak, 1, note);
	chart_row(&picture->chart, &(struct chart_row){ .name = stage_name(stage),
							.note = note,
							.series = picture->series,
							.n = 1,
							.most = peak > 0 ? peak : 1 });
}

static void put_throughput_numbers(struct picture *picture, enum stage stage)
{
	struct writer *writer = picture->writer;
	const uint64_t nbytes = sum_of(writer->history->nbytes[stage]);
	const double all_s = figures_s(writer->history->end_ns - writer->history->begin_ns);
	struct html *html = &writer->html;
	char size[32], rate[40];

	fill_rates(picture, stage);
	html_open(html, "tr");
	page_head_cell(html, "%s", stage_name(stage));
	size_format(nbytes, size);
	page_number(html, "%s", size);
	figures_rate(nbytes, all_s, rate);
	page_number(html, "%s", rate);
	figures_rate((uint64_t)peak_of(picture, 1), 1, rate);
	page_number(html, "%s", rate);
	html_close(html);
}

void page_write_throughput(struct writer *writer)
{
	static const struct page_column columns[] = { { "Link", false },
						      { "Bytes", true },
						      { "Over all the time", true },
						      { "At most", true } };
	struct chart_frame frame = {
		.id = "throughput-picture",
		.title = "Bytes over each link, for each second",
		.description = "A row for each link, as high as the most that it has moved, which "
			       "stands beside it. The table below has the sums.",
		.row_height = 40,
	};
	const bool none[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct picture picture;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		frame.n_rows += has_moved(writer, stage);
	page_open_section(html, "throughput", "Throughput");
	if (frame.n_rows == 0) {
		html_element(html, "p", "Nothing moved.");
		html_close(html);
		return;
	}
	picture_init(&picture, writer);
	picture_open(&picture, frame);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_moved(writer, stage))
			put_throughput_row(&picture, stage);
	picture_close(&picture, none);
	page_open_table(html, "Bytes over each link", columns, 4);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_moved(writer, stage))
			put_throughput_numbers(&picture, stage);
	html_close_to(html, depth);
}

/* --- Memory and space --- */

/* What was looked at, of one kind; where nobody looked it was as before. */
struct gauge {
	const char *name, *class;
	size_t offset; /* in struct history_gauges */
	uint64_t limit_nbytes;
	const char *limit; /* what that is */
};

static void fill_gauge(struct picture *picture, const struct gauge *gauge)
{
	const struct history *history = picture->writer->history;
	struct chart_series *series = &picture->series[0];
	uint64_t nbytes = 0;

	series->class = gauge->class;
	series->name = gauge->name;
	for (uint32_t bin = 0; bin < picture->n_bins; bin++) {
		const struct history_gauges *seen = &history->gauges[bin];

		if (seen->memory_nbytes)
			memcpy(&nbytes, (const char *)seen + gauge->offset, sizeof nbytes);
		series->values[bin] = (double)nbytes;
	}
}

static void put_gauge(struct picture *picture, const struct gauge *gauge)
{
	char peak_text[32], note[NOTE_NBYTES];
	double peak;

	fill_gauge(picture, gauge);
	peak = peak_of(picture, 1);
	size_format((uint64_t)peak, peak_text);
	snprintf(note, sizeof note, "%s at most", peak_text);
	chart_row(&picture->chart,
		  &(struct chart_row){
			  .name = gauge->name,
			  .note = note,
			  .series = picture->series,
			  .n = 1,
			  .most = 1.05 * fmax(fmax(peak, (double)gauge->limit_nbytes), 1),
			  .limit = (double)gauge->limit_nbytes,
		  });
}

static void put_gauge_numbers(struct picture *picture, const struct gauge *gauge)
{
	struct html *html = &picture->writer->html;
	char size[32], limit[32];
	double sum = 0;

	fill_gauge(picture, gauge);
	for (uint32_t bin = 0; bin < picture->n_bins; bin++)
		sum += picture->series[0].values[bin];
	html_open(html, "tr");
	page_head_cell(html, "%s", gauge->name);
	size_format((uint64_t)(sum / picture->n_bins), size);
	page_number(html, "%s", size);
	size_format((uint64_t)peak_of(picture, 1), size);
	page_number(html, "%s", size);
	size_format(gauge->limit_nbytes, limit);
	page_cell(html, "%s%s", gauge->limit_nbytes ? limit : "-",
		  gauge->limit_nbytes ? gauge->limit : "");
	html_close(html);
}

void page_write_space(struct writer *writer)
{
	static const struct page_column columns[] = {
		{ "What", false }, { "On average", true }, { "At most", true }, { "Limit", false }
	};
	const struct sort_facts *facts = writer->facts;
	const struct gauge gauges[] = {
		{ "memory", "gauge of-memory", offsetof(struct history_gauges, memory_nbytes),
		  facts->buffer_nbytes, ", -S; 32 MiB may come on top" },
		{ "temporary", "gauge of-temporary",
		  offsetof(struct history_gauges, temporary_nbytes),
		  facts->plan.most_temporary_nbytes, ", planned" },
		{ "written", "gauge of-written", offsetof(struct history_gauges, written_nbytes), 0,
		  "" },
	};
	const bool is_sort = facts->backend[0]; /* a check takes nothing else */
	const unsigned n = is_sort ? sizeof gauges / sizeof gauges[0] : 1;
	const struct chart_frame frame = {
		.id = "space-picture",
		.title = is_sort ? "Memory, temporary space, and what was written" : "Memory",
		.description = "What was taken at each moment; a broken line is the limit. The "
			       "table below has the numbers.",
		.n_rows = n,
		.row_height = 84,
	};
	const bool none[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct picture picture;

	page_open_section(html, "space", "Memory and space");
	picture_init(&picture, writer);
	picture_open(&picture, frame);
	for (unsigned i = 0; i < n; i++)
		put_gauge(&picture, &gauges[i]);
	picture_close(&picture, none);
	page_open_table(html, "Memory and space", columns, 4);
	for (unsigned i = 0; i < n; i++)
		put_gauge_numbers(&picture, &gauges[i]);
	html_close_to(html, depth);
}
