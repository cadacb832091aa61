/*
 * text.h - quote untrusted text for one line of a terminal, and suggest a similar word
 *
 * File names may contain newlines, escape sequences and invalid UTF-8. Messages show them as GNU
 * programs do and as the shell reads them: unprintable bytes become $'\n', or '$'\n'' within single
 * quotes. Everything else is unchanged.
 */
#pragma once

#include <stddef.h>

/* The maximum length of n quoted bytes, with the final '\0'. */
#define QUOTED_NBYTES(n) (5 * (n) + 8)

/*
 * Write the quoted `text` to `line`, truncated to nbytes, and return `line`. Escapes invalid UTF-8,
 * control characters, line separators and marks that change the writing direction.
 */
const char *quote_text(const char *text, char *line, size_t nbytes);

/* Return the one of n words that the nbytes at `word` are probably a misspelling of, or NULL. */
const char *suggest_word(const char *word, size_t nbytes, const char *const *words, unsigned n);
