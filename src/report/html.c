/*
 * html.c - write a page of HTML with tables and SVG charts (see html.h)
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

static void put_text(FILE *stream, const char *text)
{
	static const char special[] = "<>&\"'";
	static const char *const entities[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };
	const size_t nbytes = QUOTED_NBYTES(strlen(text));
	char *line = malloc(nbytes);

	for (const char *c = line ? quote_text(text, line, nbytes) : ""; *c; c++) {
		const char *match = strchr(special, *c);

		if (match)
			fputs(entities[match - special], stream);
		else
			fputc(*c, stream);
	}
	free(line);
}

/* Write one value. spec: a conversion such as "%.1f". */
static void put_value(FILE *stream, const char *spec, va_list *args)
{
	switch (spec[strlen(spec) - 1]) {
	case '%':
		fputc('%', stream);
		break;
	case 's':
		put_text(stream, va_arg(*args, const char *));
		break;
	case 'f':
	case 'g':
		fprintf(stream, spec, va_arg(*args, double));
		break;
	case 'd':
	case 'u':
		if (strstr(spec, "ll"))
			fprintf(stream, spec, va_arg(*args, unsigned long long));
		else if (strchr(spec, 'l'))
			fprintf(stream, spec, va_arg(*args, unsigned long));
		else if (strchr(spec, 'z'))
			fprintf(stream, spec, va_arg(*args, size_t));
		else
			fprintf(stream, spec, va_arg(*args, unsigned));
		break;
	default:
		assert(!"a conversion of html_print()");
	}
}

void html_print(FILE *stream, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (const char *next = format; *next;) {
		const size_t n = strcspn(next, "%");
		size_t spec_n;
		char spec[16];

		fwrite(next, 1, n, stream);
		next += n;
		if (!*next)
			break;
		spec_n = 2 + strspn(next + 1, "+-#0 .123456789lz");
		assert(spec_n < sizeof spec);
		snprintf(spec, sizeof spec, "%.*s", (int)spec_n, next);
		put_value(stream, spec, &args);
		next += spec_n;
	}
	va_end(args);
}

void html_begin_tag(FILE *stream, const char *tag, const char *class)
{
	if (class)
		fprintf(stream, "<%s class=\"%s\"", tag, class);
	else
		fprintf(stream, "<%s", tag);
}

void html_open_table(FILE *stream, const char *caption, const struct html_column *columns,
		     unsigned n)
{
	html_print(stream,
		   "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">\n",
		   caption);
	html_begin_tag(stream, "table", n == 2 ? "pairs" : NULL);
	html_print(stream, "><caption>%s</caption>\n<thead><tr>", caption);
	for (unsigned i = 0; i < n; i++) {
		html_begin_tag(stream, "th scope=\"col\"", columns[i].is_number ? "number" : NULL);
		html_print(stream, ">%s</th>\n", columns[i].name);
	}
	html_print(stream, "</tr></thead>\n<tbody>\n");
}

void html_close_table(FILE *stream)
{
	html_print(stream, "</tbody>\n</table>\n</div>\n");
}

void html_open_section(FILE *stream, const char *id, const char *heading)
{
	html_print(stream, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n", id, id,
		   heading);
}

/* --- charts over time --- */

enum { CHART_HEADER_HEIGHT = 26, CHART_AXIS_HEIGHT = 30, CHART_ROW_GAP = 14, CHART_Y_UNITS = 200 };

static double row_top(const struct chart *chart, unsigned row)
{
	return CHART_HEADER_HEIGHT + (double)row * (chart->frame.row_height + CHART_ROW_GAP);
}

/* Return the base line of the last row. */
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

/* Round to a tenth. */
static double tenth(double number)
{
	return round(number * 10) / 10;
}

/* Write a text. class: NULL: none. */
static void chart_text(const struct chart *chart, const char *class, double x, double y,
		       const char *text)
{
	html_begin_tag(chart->stream, "text", class);
	html_print(chart->stream, " x=\"%.4g\" y=\"%.4g\">%s</text>\n", tenth(x), tenth(y), text);
}

static void chart_line(const struct chart *chart, const char *class, double x1, double y1,
		       double x2, double y2)
{
	html_print(chart->stream,
		   "<line class=\"%s\" x1=\"%.4g\" y1=\"%.4g\" x2=\"%.4g\" y2=\"%.4g\"></line>\n",
		   class, tenth(x1), tenth(y1), tenth(x2), tenth(y2));
}

void chart_open(struct chart *chart, FILE *stream, const struct chart_frame *frame)
{
	*chart = (struct chart){ .stream = stream, .frame = *frame };
	html_print(stream,
		   "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-labelledby=\"%s-title %s-text\">\n"
		   "<title id=\"%s-title\">%s</title>\n<desc id=\"%s-text\">%s</desc>\n",
		   CHART_WIDTH, (unsigned)plot_bottom(chart) + CHART_AXIS_HEIGHT, frame->id,
		   frame->id, frame->id, frame->title, frame->id, frame->description);
}

void chart_span(struct chart *chart, const char *name, double begin_s, double end_s)
{
	const double x = time_to_x(chart, begin_s), end_x = time_to_x(chart, end_s);
	const double character_width = 6.4; /* average of the labels' font */

	html_print(
		chart->stream,
		"<rect class=\"span\" x=\"%.4g\" y=\"%d\" width=\"%.4g\" height=\"%.4g\"></rect>\n",
		tenth(x), CHART_HEADER_HEIGHT - 4, tenth(fmax(end_x - x, 1)),
		tenth(plot_bottom(chart) - CHART_HEADER_HEIGHT + 4));
	if (end_x - x > character_width * (double)strlen(name))
		chart_text(chart, NULL, x + 4, CHART_HEADER_HEIGHT - 10, name);
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
	FILE *const stream = chart->stream;
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
}

void chart_row(struct chart *chart, const struct chart_row *row)
{
	const double top = row_top(chart, chart->row++), height = chart->frame.row_height;
	const double bottom = top + height, right = CHART_LEFT + CHART_PLOT;

	chart_text(chart, "name", 0, top + 14, row->name);
	chart_text(chart, NULL, 0, top + 30, row->note);
	chart_line(chart, "top", CHART_LEFT, top, right, top);
	for (unsigned n_series = row->n; n_series > 0; n_series--) {
		const struct chart_series *series = &row->series[n_series - 1];

		html_print(
			chart->stream,
			"<path class=\"%s\" transform=\"translate(%d %.5g)scale(%.5g %.4g)\" d=\"",
			series->class, CHART_LEFT, top, (double)CHART_PLOT / chart->frame.n_bins,
			height / CHART_Y_UNITS);
		put_path(chart, row, n_series);
		html_print(chart->stream, "\"><title>%s</title>\n</path>\n", series->name);
	}
	if (row->limit > 0) {
		const double y = top + height * (1 - row->limit / row->max);

		chart_line(chart, "limit", CHART_LEFT, y, right, y);
	}
	chart_line(chart, "ground", CHART_LEFT, bottom, right, bottom);
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
	else if (minutes >= 60)
		snprintf(text, 32, "%u:%02u h", minutes / 60, minutes % 60);
	else if (step_s >= 60)
		snprintf(text, 32, "%u min", minutes);
	else if (step_s < 0.001)
		snprintf(text, 32, "%.4g ms", time_s * 1000);
	else
		snprintf(text, 32, "%.4g s", time_s);
}

void chart_close(struct chart *chart)
{
	const double total_s = duration_s(chart), step_s = choose_tick_step(total_s),
		     bottom = plot_bottom(chart);

	for (unsigned i = 0; i * step_s <= total_s; i++) {
		const double x = time_to_x(chart, i * step_s);
		char text[32];

		format_tick(i * step_s, step_s, text);
		chart_line(chart, "mark", x, CHART_HEADER_HEIGHT, x, bottom + 5);
		chart_text(chart,
			   i == 0               ? "first mark" :
			   x > CHART_WIDTH - 30 ? "last mark" :
						  "mark",
			   x, bottom + 20, text);
	}
	html_print(chart->stream, "</svg>\n");
}
