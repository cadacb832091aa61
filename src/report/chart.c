/*
 * chart - pictures over time (see chart.h)
 *
 * An area is a path in units of its own, a bin wide and 1/UNITS of the row high, which a
 * transformation brings to its place: so its numbers are short and whole, and bins of the same
 * height are one step. Areas that are added up are drawn from the highest sum to the lowest, each
 * over the one before, down to the ground.
 */
#include "src/report/chart.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 26, FOOT = 30, GAP = 14, UNITS = 200 };

static double row_top(const struct chart *chart, unsigned row)
{
	return HEAD + (double)row * (chart->frame.row_height + GAP);
}

/* The ground of the last row. */
static double ground(const struct chart *chart)
{
	return row_top(chart, chart->frame.n_rows) - GAP;
}

static double length_s(const struct chart *chart)
{
	return chart->frame.n_bins * chart->frame.bin_s;
}

static double x_of(const struct chart *chart, double at_s)
{
	return CHART_LEFT + CHART_PLOT * at_s / length_s(chart);
}

static void put_number(struct html *html, const char *name, double number)
{
	html_attribute(html, name, "%.4g", round(number * 10) / 10);
}

void chart_text(struct html *html, const char *class, double x, double y, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	html_open_of(html, "text", class);
	put_number(html, "x", x);
	put_number(html, "y", y);
	html_text(html, "%s", text);
	html_close(html);
}

void chart_box(struct html *html, const char *class, double x, double y, double width,
	       double height)
{
	html_open_of(html, "rect", class);
	put_number(html, "x", x);
	put_number(html, "y", y);
	put_number(html, "width", width < 1 ? 1 : width);
	put_number(html, "height", height);
	html_close(html);
}

void chart_line(struct html *html, const char *class, double x1, double y1, double x2, double y2)
{
	html_open_of(html, "line", class);
	put_number(html, "x1", x1);
	put_number(html, "y1", y1);
	put_number(html, "x2", x2);
	put_number(html, "y2", y2);
	html_close(html);
}

void chart_open_picture(struct html *html, const struct chart_frame *frame, unsigned height)
{
	html_open(html, "svg");
	html_attribute(html, "viewBox", "0 0 %d %u", CHART_WIDTH, height);
	html_attribute(html, "role", "img");
	html_attribute(html, "aria-labelledby", "%s-title %s-text", frame->id, frame->id);
	html_open(html, "title");
	html_attribute(html, "id", "%s-title", frame->id);
	html_text(html, "%s", frame->title);
	html_close(html);
	html_open(html, "desc");
	html_attribute(html, "id", "%s-text", frame->id);
	html_text(html, "%s", frame->description);
	html_close(html);
}

void chart_open(struct chart *chart, struct html *html, const struct chart_frame *frame)
{
	*chart = (struct chart){ .html = html, .frame = *frame, .depth = html->depth };
	chart_open_picture(html, frame, (unsigned)ground(chart) + FOOT);
}

void chart_span(struct chart *chart, const char *name, double begin_s, double end_s)
{
	const double x = x_of(chart, begin_s), end_x = x_of(chart, end_s);
	const double letter = 6.4; /* of the font of such texts, on average */

	chart_box(chart->html, "span", x, HEAD - 4, end_x - x, ground(chart) - HEAD + 4);
	if (end_x - x > letter * (double)strlen(name))
		chart_text(chart->html, "label", x + 4, HEAD - 10, "%s", name);
}

/* The sum of the first k series, as whole units from the top. */
static long unit_of(const struct chart_row *row, unsigned k, uint32_t bin)
{
	double sum = 0;

	for (unsigned i = 0; i < k; i++)
		sum += row->series[i].values[bin];
	sum = sum < row->most ? sum : row->most;
	return UNITS - lround(sum / row->most * UNITS);
}

static void put_path(const struct chart *chart, const struct chart_row *row, unsigned k)
{
	FILE *stream = html_begin_attribute(chart->html, "d");
	long at = UNITS;
	uint32_t n_same = 0;

	fprintf(stream, "M0 %d", UNITS);
	for (uint32_t bin = 0; bin < chart->frame.n_bins; bin++, n_same++) {
		const long unit = unit_of(row, k, bin);

		if (unit == at)
			continue;
		if (n_same)
			fprintf(stream, "h%u", n_same);
		fprintf(stream, "v%ld", unit - at);
		at = unit;
		n_same = 0;
	}
	fprintf(stream, "h%uV%dz", n_same, UNITS);
	html_end_attribute(chart->html);
}

static void put_area(const struct chart *chart, const struct chart_row *row, unsigned k, double top)
{
	struct html *html = chart->html;

	html_open_of(html, "path", row->series[k - 1].class);
	html_attribute(html, "transform", "translate(%d %.5g)scale(%.5g %.4g)", CHART_LEFT, top,
		       (double)CHART_PLOT / chart->frame.n_bins,
		       (double)chart->frame.row_height / UNITS);
	put_path(chart, row, k);
	html_element(html, "title", "%s", row->series[k - 1].name);
	html_close(html);
}

void chart_row(struct chart *chart, const struct chart_row *row)
{
	const double top = row_top(chart, chart->row++), height = chart->frame.row_height;
	struct html *html = chart->html;

	chart_text(html, "name", 0, top + 14, "%s", row->name);
	chart_text(html, "note", 0, top + 30, "%s", row->note);
	chart_line(html, "top", CHART_LEFT, top, CHART_LEFT + CHART_PLOT, top);
	for (unsigned k = row->n; k > 0; k--)
		put_area(chart, row, k, top);
	if (row->limit > 0) {
		const double y = top + height * (1 - row->limit / row->most);

		chart_line(html, "limit", CHART_LEFT, y, CHART_LEFT + CHART_PLOT, y);
	}
	chart_line(html, "ground", CHART_LEFT, top + height, CHART_LEFT + CHART_PLOT, top + height);
}

/* Seconds from one mark of the axis to the next: some that people like, of which 8 fit at most. */
static double find_step(double length)
{
	static const double minutes[] = { 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200 };
	static const double parts[] = { 1, 2, 5 };
	const double least = length / 8;
	double power = 1e-5;

	for (; power <= 10; power *= 10)
		for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
			if (power * parts[i] >= least && power * parts[i] <= 30)
				return power * parts[i];
	for (size_t i = 0; i < sizeof minutes / sizeof minutes[0]; i++)
		if (minutes[i] >= least)
			return minutes[i];
	return ceil(least / 86400) * 86400;
}

/* "0.25 s", with as many digits as the step has; "30 min", "2:30 h" */
static void format_mark(double at_s, double step_s, char text[static 32])
{
	const unsigned minutes = (unsigned)(at_s / 60 + 0.5);

	if (at_s <= 0)
		snprintf(text, 32, "0");
	else if (step_s >= 60 && minutes >= 60)
		snprintf(text, 32, "%u:%02u h", minutes / 60, minutes % 60);
	else if (step_s >= 60)
		snprintf(text, 32, "%u min", minutes);
	else if (step_s < 0.001)
		snprintf(text, 32, "%.4g ms", at_s * 1000);
	else
		snprintf(text, 32, "%.4g s", at_s);
}

static void put_axis(const struct chart *chart)
{
	const double length = length_s(chart), step = find_step(length), y = ground(chart);

	for (unsigned i = 0; i * step <= length; i++) {
		const double x = x_of(chart, i * step);
		char text[32];

		format_mark(i * step, step, text);
		chart_line(chart->html, "mark", x, HEAD, x, y + 5);
		chart_text(chart->html,
			   i == 0               ? "first mark" :
			   x > CHART_WIDTH - 30 ? "last mark" :
						  "mark",
			   x, y + 20, "%s", text);
	}
}

void chart_close(struct chart *chart)
{
	put_axis(chart);
	html_close_to(chart->html, chart->depth);
}
