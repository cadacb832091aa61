/*
 * html - a page, element by element (see html.h)
 */
#include "src/report/html.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/quote.h"

/* Elements that hold nothing and have no end. */
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

/* What there is no memory for is left out; nothing depends on it. */
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
