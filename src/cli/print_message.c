/*
 * print_message - messages, as lines on standard error (see print_message.h)
 */
#include "src/cli/print_message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Of a message with a word of the command line, and of that when each byte is escaped. */
enum { TEXT_NBYTES = 9216, LINE_NBYTES = 5 * TEXT_NBYTES + 8 };

void say(enum gsort_severity kind, const char *text)
{
	say_as(NULL, kind, text);
}

void say_as(const char *speaker, enum gsort_severity kind, const char *text)
{
	if (kind == GSORT_DEBUG)
		fprintf(stderr, "%s\n", text);
	else
		fprintf(stderr, "gsort: %s%s%s%s\n", speaker ? speaker : "", speaker ? ": " : "",
			kind == GSORT_WARNING ? "warning: " : "", text);
}

int complain(int r, const char *format, ...)
{
	char text[TEXT_NBYTES], line[LINE_NBYTES];
	va_list args;

	errno = -r;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	say(GSORT_ERROR, gsort_quote(text, line, sizeof line));
	return r;
}
