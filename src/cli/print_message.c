/*
 * print_message.c - messages, as lines on standard error (see print_message.h)
 */
#include "src/cli/print_message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "config.h"

/* A message with a word of the command line, and the same message with each byte escaped. */
enum { TEXT_NBYTES = 9216, LINE_NBYTES = 5 * TEXT_NBYTES + 8 };

void cli_message(enum gsort_severity kind, const char *text)
{
	cli_message_from(NULL, kind, text);
}

void cli_message_from(const char *prefix, enum gsort_severity kind, const char *text)
{
	if (kind == GSORT_DEBUG)
		fprintf(stderr, "%s\n", text);
	else
		fprintf(stderr, GSORT_PROGRAM ": %s%s%s%s\n", prefix ? prefix : "",
			prefix ? ": " : "", kind == GSORT_WARNING ? "warning: " : "", text);
}

int cli_error(int r, const char *format, ...)
{
	char text[TEXT_NBYTES], line[LINE_NBYTES];
	va_list args;

	errno = -r;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	cli_message(GSORT_ERROR, gsort_quote(text, line, sizeof line));
	return r;
}
