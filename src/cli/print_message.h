/*
 * print_message.h - messages, as lines on standard error
 */
#pragma once

#include "include/gsort.h"

/*
 * Print what is to be said: "gsort: TEXT\n", or "gsort: warning: TEXT\n", of a detail "TEXT\n". The
 * text is one line, as the library's are.
 */
void cli_message(enum gsort_severity kind, const char *text);

/* The same, of one of several processes that say such things: "gsort: SPEAKER: TEXT\n". */
void cli_message_from(const char *prefix, enum gsort_severity kind, const char *text);

/*
 * Say a failure of the program's own, whatever names are in it. Returns r, a negative errno, which
 * %m means.
 */
int cli_error(int r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
