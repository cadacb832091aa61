/*
 * print_message.h - messages, as lines on standard error
 */
#pragma once

#include "include/gsort.h"

/*
 * Print a message: "gsort: TEXT\n", "gsort: warning: TEXT\n", or "TEXT\n" for debug output. The
 * text is one line, quoted by the library.
 */
void cli_message(enum gsort_severity kind, const char *text);

/* Print a message of one of several processes: "gsort: PREFIX: TEXT\n". */
void cli_message_from(const char *prefix, enum gsort_severity kind, const char *text);

/*
 * Report an error of the program itself, quoted. %m is the text of r, a negative errno, which is
 * returned.
 */
int cli_error(int r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
