/*
 * text.c - quote untrusted text for one line of a terminal, and suggest a similar word (see text.h)
 */
#include "src/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/int_math.h"

/* Ranges of Unicode characters that affect the display of a line. */
static const struct {
	uint32_t first, last;
} controls[] = { { 0x80, 0x9f }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 } };

/*
 * Return the length of the UTF-8 sequence of two or more bytes at `s`, or 0 if it is invalid. A
 * '\0' ends it.
 */
static unsigned decode_codepoint(const unsigned char *s, uint32_t *ret_codepoint)
{
	static const uint32_t min_codepoint[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned n = s[0] >= 0xf8 ? 0 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t codepoint = s[0] & (0x7fu >> n);

	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		codepoint = codepoint << 6 | (s[i] & 0x3f);
	}
	*ret_codepoint = codepoint;
	return s[0] < 0xc0 || codepoint < min_codepoint[n] || codepoint > 0x10ffff ||
			       (codepoint >> 11) == 0x1b ?
		       0 :
		       n;
}

/* Return the length of the printable character at `s`, or 0. */
static unsigned printable_nbytes(const unsigned char *s)
{
	uint32_t codepoint;
	unsigned n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = decode_codepoint(s, &codepoint);
	for (size_t i = 0; n > 0 && i < sizeof controls / sizeof controls[0]; i++)
		if (codepoint >= controls[i].first && codepoint <= controls[i].last)
			return 0;
	return n;
}

/* Return the length of the escape. */
static unsigned escape_byte(unsigned char byte, char escape[static 8])
{
	static const char letters[] = "abtnvfr"; /* for bytes 7 to 13 */

	if (byte >= 7 && byte <= 13)
		return (unsigned)snprintf(escape, 8, "\\%c", letters[byte - 7]);
	return (unsigned)snprintf(escape, 8, "\\%03o", byte);
}

struct line_buffer {
	char *text;
	size_t nbytes, used;
};

static void append(struct line_buffer *line, const void *bytes, size_t n)
{
	if (n >= line->nbytes - line->used)
		n = line->nbytes - line->used - 1;
	memcpy(line->text + line->used, bytes, n);
	line->used += n;
}

/* Append all unprintable bytes at `position` as one $'...'. Returns the position after them. */
static const unsigned char *append_escaped(struct line_buffer *line, const unsigned char *position,
					   bool quoted)
{
	char escape[8];

	append(line, quoted ? "'$'" : "$'", quoted ? 3 : 2);
	while (*position && !printable_nbytes(position))
		append(line, escape, escape_byte(*position++, escape));
	append(line, "''", quoted ? 2 : 1);
	return position;
}

const char *quote_text(const char *text, char *line, size_t nbytes)
{
	struct line_buffer output = { line, nbytes, 0 };
	const unsigned char *position = (const unsigned char *)text;
	bool quoted = false;

	while (*position) {
		const unsigned n = printable_nbytes(position);

		quoted ^= *position == '\'';
		append(&output, position, n);
		position = n ? position + n : append_escaped(&output, position, quoted);
	}
	line[output.used] = '\0';
	return line;
}

/* Longer words are never suggested for; of longer candidates only the start is compared. */
enum { MAX_WORD_NBYTES = 31 };

/*
 * Return the Damerau-Levenshtein distance (optimal string alignment): the number of insertions,
 * deletions, changes and exchanges of neighbours that turn one word into the other. Row i of the
 * table is for the first i characters of a; only the last three rows are kept.
 */
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t rows[3][MAX_WORD_NBYTES + 1];

	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *row = rows[i % 3], *previous_row = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			row[j] = u64_min(previous_row[j - 1] + (a[i - 1] != b[j - 1]),
					 u64_min(previous_row[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = u64_min(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

/* At most two errors, and fewer in short words, which would resemble anything. */
const char *suggest_word(const char *word, size_t nbytes, const char *const *words, unsigned n)
{
	size_t min_distance = u64_min(nbytes / 3, 2) + 1;
	const char *suggestion = NULL;

	for (unsigned i = 0; i < n && nbytes <= MAX_WORD_NBYTES; i++) {
		const size_t d =
			edit_distance(word, nbytes, words[i], strnlen(words[i], MAX_WORD_NBYTES));

		if (d < min_distance) {
			min_distance = d;
			suggestion = words[i];
		}
	}
	return suggestion;
}
