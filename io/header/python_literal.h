/*
 * python_literal - the little of Python that a header of numpy is written in
 *
 * Names are UTF-8 here, whatever they are in the text: characters of Latin-1 or of UTF-8, or what
 * Python's repr() writes of those that cannot be printed, \n, \xa0, \u200b. The character NUL,
 * which would end a string, is the two bytes 0xc0 0x80. What is written has nothing but ASCII, so
 * it is right in any encoding.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is yet to be read, ended by NUL. */
struct python_text {
	const char *next;
	bool is_latin1; /* else UTF-8 */
};

/* And comments. */
void python_skip_blanks(struct python_text *text);

/* Is this the next, after blanks? Then it is passed. */
bool python_accept(struct python_text *text, const char *word);

/* The same, and it is not passed. */
bool python_peek(struct python_text *text, const char *word);

/* 12, 1_000, 0x1f, 12L; false: there is none, or one of more than 64 bits. */
bool python_parse_number(struct python_text *text, uint64_t *ret_number);

/*
 * 'quoted' or "quoted", r'', u'', '''of lines''', and several behind each other, which are one;
 * *ret_string is to be freed. Returns 0; without a message, -EINVAL if it is none, or -ENOMEM.
 */
int python_parse_string(struct python_text *text, char **ret_string);

/* Write a string in quotes. */
void python_write_string(FILE *stream, const char *string);
