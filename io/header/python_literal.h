/*
 * python_literal - the subset of Python that .npy headers use
 *
 * Strings are converted to UTF-8 from Latin-1 or UTF-8, and from the escapes that repr() writes for
 * characters that cannot be printed: \
 * , \\xa0, \\u200b. The character NUL becomes the two bytes 0xc0 0x80. Strings are written in ASCII
 * only, which is valid in any encoding.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The remaining text, terminated by NUL. */
struct python_text {
	const char *next;
	bool is_latin1; /* else UTF-8 */
};

/* Skip blanks and comments. */
void python_skip_blanks(struct python_text *text);

/* Skip blanks, and `word` if it follows. Returns whether it does. */
bool python_accept(struct python_text *text, const char *word);

/* Skip blanks. Returns whether `word` follows. */
bool python_peek(struct python_text *text, const char *word);

/* Parse a number: 12, 1_000, 0x1f, 12L. Returns false if there is none, or it exceeds 64 bits. */
bool python_parse_number(struct python_text *text, uint64_t *ret_number);

/*
 * Parse a string: 'quoted', "quoted", r'', u'', '''of lines''', or several adjacent ones. The
 * caller frees *ret_string. Returns 0, -EINVAL if there is no string, or -ENOMEM; neither is
 * reported.
 */
int python_parse_string(struct python_text *text, char **ret_string);

/* Write a quoted string. */
void python_write_string(FILE *stream, const char *string);
