/*
 * html.c - write a page of HTML, element by element, with SVG charts (see html.h)
 *
 * A chart is drawn from bins, so a second and a day take the same number of bytes. An area is a
 * path in units of its own: a bin wide, and 1/CHART_Y_UNITS of the row high. A transformation
 * scales it, so its numbers are short integers, and bins of equal height are one step. Stacked
 * areas are drawn from the highest sum to the lowest, each down to the base line.
 */
#include "src/report/html.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text.h"

/* --- elements --- */

/* Elements without content and end tag. */
static bool is_void(const char *element)
{
	static const char *const void_elements[] = { "meta", "col", "br", "hr" };

	for (size_t i = 0; i < sizeof void_elements / sizeof void_elements[0]; i++)
		if (!strcmp(element, void_elements[i]))
			return true;
	return false;
}

static void end_tag(struct html *html)
{
	if (html->in_tag)
		fputc('>', html->stream);
	html->in_tag = false;
}

void html_open(struct html *html, const char *element)
{
	assert(html->depth < HTML_MAX_DEPTH);
	end_tag(html);
	fprintf(html->stream, "<%s", element);
	html->open_elements[html->depth++] = element;
	html->in_tag = true;
}

void html_close(struct html *html)
{
	const char *element = html->open_elements[--html->depth];

	end_tag(html);
	if (!is_void(element))
		fprintf(html->stream, "</%s>\n", element);
}

void html_close_to(struct html *html, unsigned depth)
{
	while (html->depth > depth)
		html_close(html);
}

static void put_escaped(struct html *html, const char *text)
{
	for (const char *c = text; *c; c++)
		switch (*c) {
		case '<':
			fputs("&lt;", html->stream);
			break;
		case '>':
			fputs("&gt;", html->stream);
			break;
		case '&':
			fputs("&amp;", html->stream);
			break;
		case '"':
			fputs("&quot;", html->stream);
			break;
		case '\'':
			fputs("&#39;", html->stream);
			break;
		default:
			fputc(*c, html->stream);
		}
}

/* The text is omitted if memory is short. */
static void put_text(struct html *html, const char *format, va_list args)
{
	char *text, *line;

	if (vasprintf(&text, format, args) < 0)
		return;
	line = malloc(QUOTED_NBYTES(strlen(text)));
	if (line)
		put_escaped(html, quote_text(text, line, QUOTED_NBYTES(strlen(text))));
	free(line);
	free(text);
}

void html_attribute(struct html *html, const char *name, const char *format, ...)
{
	va_list args;

	assert(html->in_tag);
	fprintf(html->stream, " %s=\"", name);
	va_start(args, format);
	put_text(html, format, args);
	va_end(args);
	fputc('"', html->stream);
}

void html_text(struct html *html, const char *format, ...)
{
	va_list args;

	end_tag(html);
	va_start(args, format);
	put_text(html, format, args);
	va_end(args);
}

void html_open_with_class(struct html *html, const char *element, const char *class)
{
	html_open(html, element);
	html_attribute(html, "class", "%s", class);
}

void html_element(struct html *html, const char *element, const char *format, ...)
{
	va_list args;

	html_open(html, element);
	end_tag(html);
	va_start(args, format);
	put_text(html, format, args);
	va_end(args);
	html_close(html);
}

void html_element_with_class(struct html *html, const char *element, const char *class,
			     const char *format, ...)
{
	va_list args;

	html_open_with_class(html, element, class);
	end_tag(html);
	va_start(args, format);
	put_text(html, format, args);
	va_end(args);
	html_close(html);
}

FILE *html_begin_attribute(struct html *html, const char *name)
{
	assert(html->in_tag);
	fprintf(html->stream, " %s=\"", name);
	return html->stream;
}

void html_end_attribute(struct html *html)
{
	fputc('"', html->stream);
}

void html_raw(struct html *html, const char *text)
{
	end_tag(html);
	fputs(text, html->stream);
}

/* --- charts over time --- */

enum { CHART_HEADER_HEIGHT = 26, CHART_AXIS_HEIGHT = 30, CHART_ROW_GAP = 14, CHART_Y_UNITS = 200 };

static double row_top(const struct chart *chart, unsigned row)
{
	return CHART_HEADER_HEIGHT + (double)row * (chart->frame.row_height + CHART_ROW_GAP);
}

/* The base line of the last row. */
static double plot_bottom(const struct chart *chart)
{
	return row_top(chart, chart->frame.n_rows) - CHART_ROW_GAP;
}

static double duration_s(const struct chart *chart)
{
	return chart->frame.n_bins * chart->frame.bin_s;
}

static double time_to_x(const struct chart *chart, double time_s)
{
	return CHART_LEFT + CHART_PLOT * time_s / duration_s(chart);
}

static void put_number(struct html *html, const char *name, double number)
{
	html_attribute(html, name, "%.4g", round(number * 10) / 10);
}

__attribute__((format(printf, 5, 6))) static void
chart_text(struct html *html, const char *class, double x, double y, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	html_open_with_class(html, "text", class);
	put_number(html, "x", x);
	put_number(html, "y", y);
	html_text(html, "%s", text);
	html_close(html);
}

static void chart_box(struct html *html, const char *class, double x, double y, double width,
		      double height)
{
	html_open_with_class(html, "rect", class);
	put_number(html, "x", x);
	put_number(html, "y", y);
	put_number(html, "width", width < 1 ? 1 : width);
	put_number(html, "height", height);
	html_close(html);
}

static void chart_line(struct html *html, const char *class, double x1, double y1, double x2,
		       double y2)
{
	html_open_with_class(html, "line", class);
	put_number(html, "x1", x1);
	put_number(html, "y1", y1);
	put_number(html, "x2", x2);
	put_number(html, "y2", y2);
	html_close(html);
}

static void chart_open_svg(struct html *html, const struct chart_frame *frame, unsigned height)
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
	chart_open_svg(html, frame, (unsigned)plot_bottom(chart) + CHART_AXIS_HEIGHT);
}

void chart_span(struct chart *chart, const char *name, double begin_s, double end_s)
{
	const double x = time_to_x(chart, begin_s), end_x = time_to_x(chart, end_s);
	const double character_width = 6.4; /* average of the labels' font */

	chart_box(chart->html, "span", x, CHART_HEADER_HEIGHT - 4, end_x - x,
		  plot_bottom(chart) - CHART_HEADER_HEIGHT + 4);
	if (end_x - x > character_width * (double)strlen(name))
		chart_text(chart->html, "label", x + 4, CHART_HEADER_HEIGHT - 10, "%s", name);
}

/* Return the sum of the first n_series, in units from the top. */
static long stacked_y(const struct chart_row *row, unsigned n_series, uint32_t bin)
{
	double sum = 0;

	for (unsigned i = 0; i < n_series; i++)
		sum += row->series[i].values[bin];
	sum = sum < row->max ? sum : row->max;
	return CHART_Y_UNITS - lround(sum / row->max * CHART_Y_UNITS);
}

static void put_path(const struct chart *chart, const struct chart_row *row, unsigned n_series)
{
	FILE *stream = html_begin_attribute(chart->html, "d");
	long current_y = CHART_Y_UNITS;
	uint32_t n_level = 0;

	fprintf(stream, "M0 %d", CHART_Y_UNITS);
	for (uint32_t bin = 0; bin < chart->frame.n_bins; bin++, n_level++) {
		const long y = stacked_y(row, n_series, bin);

		if (y == current_y)
			continue;
		if (n_level)
			fprintf(stream, "h%u", n_level);
		fprintf(stream, "v%ld", y - current_y);
		current_y = y;
		n_level = 0;
	}
	fprintf(stream, "h%uV%dz", n_level, CHART_Y_UNITS);
	html_end_attribute(chart->html);
}

static void put_area(const struct chart *chart, const struct chart_row *row, unsigned n_series,
		     double top)
{
	struct html *html = chart->html;

	html_open_with_class(html, "path", row->series[n_series - 1].class);
	html_attribute(html, "transform", "translate(%d %.5g)scale(%.5g %.4g)", CHART_LEFT, top,
		       (double)CHART_PLOT / chart->frame.n_bins,
		       (double)chart->frame.row_height / CHART_Y_UNITS);
	put_path(chart, row, n_series);
	html_element(html, "title", "%s", row->series[n_series - 1].name);
	html_close(html);
}

void chart_row(struct chart *chart, const struct chart_row *row)
{
	const double top = row_top(chart, chart->row++), height = chart->frame.row_height;
	struct html *html = chart->html;

	chart_text(html, "name", 0, top + 14, "%s", row->name);
	chart_text(html, "note", 0, top + 30, "%s", row->note);
	chart_line(html, "top", CHART_LEFT, top, CHART_LEFT + CHART_PLOT, top);
	for (unsigned n_series = row->n; n_series > 0; n_series--)
		put_area(chart, row, n_series, top);
	if (row->limit > 0) {
		const double y = top + height * (1 - row->limit / row->max);

		chart_line(html, "limit", CHART_LEFT, y, CHART_LEFT + CHART_PLOT, y);
	}
	chart_line(html, "ground", CHART_LEFT, top + height, CHART_LEFT + CHART_PLOT, top + height);
}

/* Return the seconds between two ticks of the axis, of which there are at most about 8. */
static double choose_tick_step(double duration_s)
{
	static const double minutes[] = { 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200 };
	static const double mantissas[] = { 1, 2, 5 };
	const double min_step = duration_s / 8;
	double power = 1e-5;

	for (; power <= 10; power *= 10)
		for (size_t i = 0; i < sizeof mantissas / sizeof mantissas[0]; i++)
			if (power * mantissas[i] >= min_step && power * mantissas[i] <= 30)
				return power * mantissas[i];
	for (size_t i = 0; i < sizeof minutes / sizeof minutes[0]; i++)
		if (minutes[i] >= min_step)
			return minutes[i];
	return ceil(min_step / 86400) * 86400;
}

/* Format "0.25 s", with as many digits as the step needs; "30 min", "2:30 h". */
static void format_tick(double time_s, double step_s, char text[static 32])
{
	const unsigned minutes = (unsigned)(time_s / 60 + 0.5);

	if (time_s <= 0)
		snprintf(text, 32, "0");
	else if (step_s >= 60 && minutes >= 60)
		snprintf(text, 32, "%u:%02u h", minutes / 60, minutes % 60);
	else if (step_s >= 60)
		snprintf(text, 32, "%u min", minutes);
	else if (step_s < 0.001)
		snprintf(text, 32, "%.4g ms", time_s * 1000);
	else
		snprintf(text, 32, "%.4g s", time_s);
}

static void put_axis(const struct chart *chart)
{
	const double total_s = duration_s(chart), step_s = choose_tick_step(total_s),
		     bottom = plot_bottom(chart);

	for (unsigned i = 0; i * step_s <= total_s; i++) {
		const double x = time_to_x(chart, i * step_s);
		char text[32];

		format_tick(i * step_s, step_s, text);
		chart_line(chart->html, "mark", x, CHART_HEADER_HEIGHT, x, bottom + 5);
		chart_text(chart->html,
			   i == 0               ? "first mark" :
			   x > CHART_WIDTH - 30 ? "last mark" :
						  "mark",
			   x, bottom + 20, "%s", text);
	}
}

void chart_close(struct chart *chart)
{
	put_axis(chart);
	html_close_to(chart->html, chart->depth);
}
