/*
 * quote - text from outside, fit for one line of a terminal
 *
 * Names of files hold whatever somebody put there: newlines, escape sequences, bytes of another
 * character set. In a message they are shown as the shell reads them and GNU programs write them:
 * what a terminal would not print becomes $'\n', in single quotes '$'\n''. All else stays.
 */
#pragma once

#include <stddef.h>

/* The room that n bytes of text may take, with the final '\0'. */
#define QUOTED_NBYTES(n) (5 * (n) + 8)

/*
 * Write `text` to `line`, cut where `nbytes` end, and return `line`. What is no valid UTF-8, is a
 * control character, ends a line or turns the direction of writing is written as an escape.
 */
const char *quote_text(const char *text, char *line, size_t nbytes);
