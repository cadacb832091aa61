/*
 * python_literal - the little of Python that a header of numpy is written in (see python_literal.h)
 */
#include "io/header/python_literal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_CHARACTER = 0x10ffff };

/* Behind # is what is for people; a backslash ends a line that goes on. */
void python_skip_blanks(struct python_text *text)
{
	for (;;) {
		text->at += strspn(text->at, " \t\r\n\f");
		if (*text->at == '#')
			text->at += strcspn(text->at, "\n");
		else if (text->at[0] == '\\' && text->at[1] == '\n')
			text->at += 2;
		else
			return;
	}
}

bool python_begins(struct python_text *text, const char *word)
{
	python_skip_blanks(text);
	return strncmp(text->at, word, strlen(word)) == 0;
}

bool python_take(struct python_text *text, const char *word)
{
	if (!python_begins(text, word))
		return false;
	text->at += strlen(word);
	return true;
}

/* --- numbers --- */

/* Which digit to that base? -1: none. */
static int find_digit(char c, unsigned base)
{
	static const char digits[] = "0123456789abcdef";
	const char lower = c >= 'A' && c <= 'F' ? (char)(c + 'a' - 'A') : c;
	const char *found = memchr(digits, lower, base);

	return found ? (int)(found - digits) : -1;
}

/* 0x, 0o or 0b, which is passed; else 10. */
static unsigned take_base(struct python_text *text)
{
	static const char letters[] = "xXoObB";
	static const unsigned bases[] = { 16, 8, 2 };
	const char *found = text->at[0] == '0' && text->at[1] ? strchr(letters, text->at[1]) : NULL;

	if (!found)
		return 10;
	text->at += 2;
	return bases[(found - letters) / 2];
}

bool python_take_number(struct python_text *text, uint64_t *ret_number)
{
	uint64_t number = 0;
	unsigned base;
	int digit;

	python_take(text, "+");
	python_skip_blanks(text);
	base = take_base(text);
	if (find_digit(*text->at, base) < 0)
		return false;
	while ((digit = find_digit(*text->at, base)) >= 0) {
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, (unsigned)digit, &number))
			return false;
		text->at++;
		text->at += *text->at == '_' && find_digit(text->at[1], base) >= 0;
	}
	text->at += *text->at == 'L'; /* of Python 2 */
	*ret_number = number;
	return true;
}

/* --- characters --- */

/* How many bytes follow the first one; -1: none begins so. */
static int count_following(unsigned char first)
{
	return first < 0x80                   ? 0 :
	       first >= 0xc2 && first <= 0xdf ? 1 :
	       (first & 0xf0) == 0xe0         ? 2 :
	       first >= 0xf0 && first <= 0xf4 ? 3 :
						-1;
}

/* The character of UTF-8 at *at, which is moved behind it. False: there is none. */
static bool take_utf8(const char **at, uint32_t *ret_character)
{
	const unsigned char *bytes = (const unsigned char *)*at;
	const bool is_nul = bytes[0] == 0xc0 && bytes[1] == 0x80;
	const int n = is_nul ? 1 : count_following(bytes[0]);
	uint32_t character = n > 0 ? bytes[0] & (0x3fu >> n) : bytes[0];

	if (n < 0)
		return false;
	for (int i = 1; i <= n; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return false;
		character = character << 6 | (bytes[i] & 0x3f);
	}
	*at += n + 1;
	*ret_character = character;
	return true;
}

/* At most 4 bytes; returns how many. */
static size_t put_utf8(uint32_t character, char *to)
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

/* So many digits to that base; fewer if there are none at least, of octal ones. */
static bool take_digits(const char **at, unsigned least, unsigned most, unsigned base,
			uint32_t *ret_value)
{
	uint32_t value = 0;
	unsigned n = 0;
	int digit;

	for (; n < most && (digit = find_digit(**at, base)) >= 0; n++, ++*at)
		value = value * base + (uint32_t)digit;
	*ret_value = value;
	return n >= least;
}

/* What is behind a backslash. */
static bool take_escaped(const char **at, uint32_t *ret_character)
{
	static const char letters[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
	const char letter = **at, *found = letter ? strchr(letters, letter) : NULL;
	const unsigned n = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;

	if (found) {
		++*at;
		*ret_character = (unsigned char)meant[found - letters];
		return true;
	}
	if (n > 0) {
		++*at;
		return take_digits(at, n, n, 16, ret_character) && *ret_character <= LAST_CHARACTER;
	}
	return take_digits(at, 1, 3, 8, ret_character);
}

static bool take_plain(struct python_text *text, uint32_t *ret_character)
{
	if (!text->is_latin1)
		return take_utf8(&text->at, ret_character);
	*ret_character = (unsigned char)*text->at++;
	return true;
}

static bool take_character(struct python_text *text, uint32_t *ret_character)
{
	if (*text->at != '\\')
		return take_plain(text, ret_character);
	text->at++;
	return take_escaped(&text->at, ret_character);
}

/* Of a piece of a string: r'raw', or what has escapes; quotes are 1, or 3 each. */
struct piece {
	char quote;
	size_t n_quotes;
	bool is_raw;
};

/* A piece's begin, which is passed. */
static bool begin_piece(struct python_text *text, struct piece *ret_piece)
{
	const char *at;
	bool is_raw;

	python_skip_blanks(text);
	at = text->at;
	is_raw = *at == 'r' || *at == 'R';
	at += is_raw || *at == 'u' || *at == 'U';
	if (*at != '\'' && *at != '"')
		return false;
	*ret_piece = (struct piece){ *at, at[1] == *at && at[2] == *at ? 3 : 1, is_raw };
	text->at = at + ret_piece->n_quotes;
	return true;
}

static bool is_end(const struct piece *piece, const char *at)
{
	size_t n = 0;

	while (n < piece->n_quotes && at[n] == piece->quote)
		n++;
	return n == piece->n_quotes;
}

/* How many bytes there are up to the end of a piece. */
static size_t count_to_end(const struct piece *piece, const char *at)
{
	size_t n = 0;

	while (at[n] && !is_end(piece, at + n))
		n += at[n] == '\\' && at[n + 1] ? 2 : 1;
	return n;
}

/* Up to `end`, with room for it at *to, which is moved behind it. */
static int take_characters(struct python_text *text, bool is_raw, const char *end, char **to)
{
	uint32_t character;

	while (text->at < end) {
		if (!is_raw && text->at[0] == '\\' && text->at[1] == '\n') {
			text->at += 2;
			continue;
		}
		if (!(is_raw ? take_plain(text, &character) : take_character(text, &character)))
			return -EINVAL;
		*to += put_utf8(character, *to);
	}
	return text->at == end ? 0 : -EINVAL;
}

/* Behind the n bytes that there are of the string. */
static int append_piece(struct python_text *text, const struct piece *piece, char **string,
			size_t *n)
{
	enum { MOST_TIMES = 2 }; /* a character of Latin-1 takes so many bytes */
	const char *const end = text->at + count_to_end(piece, text->at);
	char *longer = realloc(*string, *n + MOST_TIMES * (size_t)(end - text->at) + 1), *to;
	int r;

	if (!longer)
		return -ENOMEM;
	*string = longer;
	to = longer + *n;
	r = *end ? take_characters(text, piece->is_raw, end, &to) : -EINVAL;
	if (r < 0)
		return r;
	*to = '\0';
	*n = (size_t)(to - longer);
	text->at = end + piece->n_quotes;
	return 0;
}

int python_take_string(struct python_text *text, char **ret_string)
{
	char *string = NULL;
	struct piece piece;
	size_t n = 0;
	int r = -EINVAL;

	while (begin_piece(text, &piece)) {
		r = append_piece(text, &piece, &string, &n);
		if (r < 0)
			break;
	}
	if (r < 0)
		free(string);
	else
		*ret_string = string;
	return r;
}

void python_put_string(FILE *stream, const char *string)
{
	const char quote = strchr(string, '\'') && !strchr(string, '"') ? '"' : '\'';
	uint32_t c = 0;

	fputc(quote, stream);
	for (const char *at = string; *at;) {
		if (!take_utf8(&at, &c)) /* which has come from nowhere */
			c = (unsigned char)*at++;
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
