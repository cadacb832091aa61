/*
 * quote - text from outside, fit for one line of a terminal (see quote.h)
 */
#include "src/base/quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Characters of Unicode from `first` to `last` that do something to the line. */
static const struct {
	uint32_t first, last;
} controls[] = { { 0x80, 0x9f }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 } };

static bool is_control(uint32_t codepoint)
{
	for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++)
		if (codepoint >= controls[i].first && codepoint <= controls[i].last)
			return true;
	return false;
}

/* Bytes of the character at `s`, of more than one; 0 if they are none. A '\0' ends it. */
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

/* Bytes at `s` that can be printed as they are: a character, or 0. */
static unsigned printable_nbytes(const unsigned char *s)
{
	uint32_t codepoint;
	unsigned n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = decode_codepoint(s, &codepoint);
	return n && !is_control(codepoint) ? n : 0;
}

/* Returns how many bytes of `escape` it takes. */
static unsigned escape_byte(unsigned char byte, char escape[static 8])
{
	static const char letters[] = "abtnvfr"; /* of 7 to 13 */

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

/* All bytes from `s` on that cannot be printed, as one $'...'. Returns what is behind. */
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
