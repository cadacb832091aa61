/*
 * python_literal - the subset of Python that .npy headers use (see python_literal.h)
 */
#include "io/header/python_literal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE_POINT = 0x10ffff };

/* A # begins a comment; a backslash continues a line. */
void python_skip_blanks(struct python_text *text)
{
	for (;;) {
		text->next += strspn(text->next, " \t\r\n\f");
		if (*text->next == '#')
			text->next += strcspn(text->next, "\n");
		else if (text->next[0] == '\\' && text->next[1] == '\n')
			text->next += 2;
		else
			return;
	}
}

bool python_peek(struct python_text *text, const char *word)
{
	python_skip_blanks(text);
	return strncmp(text->next, word, strlen(word)) == 0;
}

bool python_accept(struct python_text *text, const char *word)
{
	if (!python_peek(text, word))
		return false;
	text->next += strlen(word);
	return true;
}

/* --- numbers --- */

/* Return the value of a digit, or -1. */
static int digit_value(char c, unsigned base)
{
	static const char digits[] = "0123456789abcdef";
	const char lower = c >= 'A' && c <= 'F' ? (char)(c + 'a' - 'A') : c;
	const char *match = memchr(digits, lower, base);

	return match ? (int)(match - digits) : -1;
}

/* Skip 0x, 0o or 0b, and return the base; 10 without one. */
static unsigned parse_number_base(struct python_text *text)
{
	static const char letters[] = "xXoObB";
	static const unsigned bases[] = { 16, 8, 2 };
	const char *match = text->next[0] == '0' && text->next[1] ? strchr(letters, text->next[1]) :
								    NULL;

	if (!match)
		return 10;
	text->next += 2;
	return bases[(match - letters) / 2];
}

bool python_parse_number(struct python_text *text, uint64_t *ret_number)
{
	uint64_t number = 0;
	unsigned base;
	int digit;

	python_accept(text, "+");
	python_skip_blanks(text);
	base = parse_number_base(text);
	if (digit_value(*text->next, base) < 0)
		return false;
	while ((digit = digit_value(*text->next, base)) >= 0) {
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, (unsigned)digit, &number))
			return false;
		text->next++;
		text->next += *text->next == '_' && digit_value(text->next[1], base) >= 0;
	}
	text->next += *text->next == 'L'; /* a suffix of Python 2 */
	*ret_number = number;
	return true;
}

/* --- characters --- */

/* Return the number of bytes that follow the first one; -1: it is invalid. */
static int count_utf8_continuations(unsigned char first)
{
	return first < 0x80                   ? 0 :
	       first >= 0xc2 && first <= 0xdf ? 1 :
	       (first & 0xf0) == 0xe0         ? 2 :
	       first >= 0xf0 && first <= 0xf4 ? 3 :
						-1;
}

/* Decode a character, and advance *text. Returns false if it is invalid. */
static bool decode_utf8(const char **text, uint32_t *ret_character)
{
	const unsigned char *bytes = (const unsigned char *)*text;
	const bool is_nul = bytes[0] == 0xc0 && bytes[1] == 0x80;
	const int n = is_nul ? 1 : count_utf8_continuations(bytes[0]);
	uint32_t character = n > 0 ? bytes[0] & (0x3fu >> n) : bytes[0];

	if (n < 0)
		return false;
	for (int i = 1; i <= n; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return false;
		character = character << 6 | (bytes[i] & 0x3f);
	}
	*text += n + 1;
	*ret_character = character;
	return true;
}

/* Encode a character in at most 4 bytes. Returns their number. */
static size_t encode_utf8(uint32_t character, char *to)
{
	const unsigned n = character == 0      ? 2 :
			   character < 0x80    ? 1 :
			   character < 0x800   ? 2 :
			   character < 0x10000 ? 3 :
						 4;

	if (n == 1) {
		to[0] = (char)character;
		return 1;
	}
	for (unsigned i = n; i-- > 1; character >>= 6)
		to[i] = (char)(0x80 | (character & 0x3f));
	to[0] = (char)(0xf00u >> n | character);
	return n;
}

/* --- strings --- */

/* Parse min_digits to max_digits digits. */
static bool parse_escape_digits(const char **text, unsigned min_digits, unsigned max_digits,
				unsigned base, uint32_t *ret_value)
{
	uint32_t value = 0;
	unsigned n = 0;
	int digit;

	for (; n < max_digits && (digit = digit_value(**text, base)) >= 0; n++, ++*text)
		value = value * base + (uint32_t)digit;
	*ret_value = value;
	return n >= min_digits;
}

/* Parse what follows a backslash. */
static bool parse_escape(const char **text, uint32_t *ret_character)
{
	static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
	const char letter = **text, *match = letter ? strchr(letters, letter) : NULL;
	const unsigned n = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;

	if (match) {
		++*text;
		*ret_character = (unsigned char)values[match - letters];
		return true;
	}
	if (n > 0) {
		++*text;
		return parse_escape_digits(text, n, n, 16, ret_character) &&
		       *ret_character <= MAX_CODE_POINT;
	}
	return parse_escape_digits(text, 1, 3, 8, ret_character);
}

static bool parse_plain_character(struct python_text *text, uint32_t *ret_character)
{
	if (!text->is_latin1)
		return decode_utf8(&text->next, ret_character);
	*ret_character = (unsigned char)*text->next++;
	return true;
}

static bool parse_character(struct python_text *text, uint32_t *ret_character)
{
	if (*text->next != '\\')
		return parse_plain_character(text, ret_character);
	text->next++;
	return parse_escape(&text->next, ret_character);
}

/* A literal of a string: raw (r'...') or with escapes, in single or triple quotes. */
struct string_literal {
	char quote;
	size_t n_quotes;
	bool is_raw;
};

/* Parse the beginning of a literal. */
static bool begin_literal(struct python_text *text, struct string_literal *ret_literal)
{
	const char *next;
	bool is_raw;

	python_skip_blanks(text);
	next = text->next;
	is_raw = *next == 'r' || *next == 'R';
	next += is_raw || *next == 'u' || *next == 'U';
	if (*next != '\'' && *next != '"')
		return false;
	*ret_literal = (struct string_literal){ *next, next[1] == *next && next[2] == *next ? 3 : 1,
						is_raw };
	text->next = next + ret_literal->n_quotes;
	return true;
}

static bool is_literal_end(const struct string_literal *literal, const char *text)
{
	size_t n = 0;

	while (n < literal->n_quotes && text[n] == literal->quote)
		n++;
	return n == literal->n_quotes;
}

/* Return the number of bytes up to the closing quotes. */
static size_t literal_nbytes(const struct string_literal *literal, const char *text)
{
	size_t n = 0;

	while (text[n] && !is_literal_end(literal, text + n))
		n += text[n] == '\\' && text[n + 1] ? 2 : 1;
	return n;
}

/* Decode the text up to `end` to *to, which has sufficient room and is advanced. */
static int decode_characters(struct python_text *text, bool is_raw, const char *end, char **to)
{
	uint32_t character;

	while (text->next < end) {
		if (!is_raw && text->next[0] == '\\' && text->next[1] == '\n') {
			text->next += 2;
			continue;
		}
		if (!(is_raw ? parse_plain_character(text, &character) :
			       parse_character(text, &character)))
			return -EINVAL;
		*to += encode_utf8(character, *to);
	}
	return text->next == end ? 0 : -EINVAL;
}

/* Append a literal to the string of n bytes. */
static int append_literal(struct python_text *text, const struct string_literal *literal,
			  char **string, size_t *n)
{
	enum { MAX_EXPANSION = 2 }; /* bytes of UTF-8 for a character of Latin-1 */
	const char *const end = text->next + literal_nbytes(literal, text->next);
	char *new_string = realloc(*string, *n + MAX_EXPANSION * (size_t)(end - text->next) + 1),
	     *to;
	int r;

	if (!new_string)
		return -ENOMEM;
	*string = new_string;
	to = new_string + *n;
	r = *end ? decode_characters(text, literal->is_raw, end, &to) : -EINVAL;
	if (r < 0)
		return r;
	*to = '\0';
	*n = (size_t)(to - new_string);
	text->next = end + literal->n_quotes;
	return 0;
}

int python_parse_string(struct python_text *text, char **ret_string)
{
	char *string = NULL;
	struct string_literal literal;
	size_t n = 0;
	int r = -EINVAL;

	while (begin_literal(text, &literal)) {
		r = append_literal(text, &literal, &string, &n);
		if (r < 0)
			break;
	}
	if (r < 0)
		free(string);
	else
		*ret_string = string;
	return r;
}

void python_write_string(FILE *stream, const char *string)
{
	const char quote = strchr(string, '\'') && !strchr(string, '"') ? '"' : '\'';
	uint32_t c = 0;

	fputc(quote, stream);
	for (const char *next = string; *next;) {
		if (!decode_utf8(&next, &c)) /* not from python_parse_string() */
			c = (unsigned char)*next++;
		if (c == '\\' || c == (unsigned char)quote)
			fprintf(stream, "\\%c", (char)c);
		else if (c >= ' ' && c <= '~')
			fputc((char)c, stream);
		else if (c <= 0xff)
			fprintf(stream, "\\x%02" PRIx32, c);
		else
			fprintf(stream, c <= 0xffff ? "\\u%04" PRIx32 : "\\U%08" PRIx32, c);
	}
	fputc(quote, stream);
}
