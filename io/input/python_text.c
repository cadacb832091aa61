/*
 * python_text - the little of Python that a header of numpy is written in (see python_text.h)
 */
#include "io/input/python_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_CHARACTER = 0x10ffff };

void python_skip_blanks(struct python_text *text)
{
	text->at += strspn(text->at, " \t\r\n");
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
	static const char digits[] = "0123456789abcdef";
	uint32_t value = 0;
	unsigned n = 0;

	for (; n < most && **at; n++, ++*at) {
		const char lower = **at >= 'A' && **at <= 'F' ? (char)(**at + 'a' - 'A') : **at;
		const char *found = memchr(digits, lower, base);

		if (!found)
			break;
		value = value * base + (uint32_t)(found - digits);
	}
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

static bool take_character(struct python_text *text, uint32_t *ret_character)
{
	if (*text->at == '\\') {
		text->at++;
		return take_escaped(&text->at, ret_character);
	}
	if (!text->is_latin1)
		return take_utf8(&text->at, ret_character);
	*ret_character = (unsigned char)*text->at++;
	return true;
}

/* How many bytes there are up to the end of a string. */
static size_t count_to(const char *at, char quote)
{
	size_t n = 0;

	while (at[n] && at[n] != quote)
		n += at[n] == '\\' && at[n + 1] ? 2 : 1;
	return n;
}

/* What is up to the quote, with room for it. */
static int take_up_to(struct python_text *text, char quote, char *to)
{
	uint32_t character;

	while (*text->at && *text->at != quote) {
		if (!take_character(text, &character))
			return -EINVAL;
		to += put_utf8(character, to);
	}
	*to = '\0';
	return python_take(text, (const char[]){ quote, '\0' }) ? 0 : -EINVAL;
}

int python_take_string(struct python_text *text, char **ret_string)
{
	enum { MOST_TIMES = 2 }; /* a character of Latin-1 takes so many bytes */
	char *string, quote;
	int r;

	python_skip_blanks(text);
	text->at += (*text->at == 'u'); /* of Python 2 */
	quote = *text->at;
	if (quote != '\'' && quote != '"')
		return -EINVAL;
	text->at++;
	string = malloc(MOST_TIMES * count_to(text->at, quote) + 1);
	if (!string)
		return -ENOMEM;
	r = take_up_to(text, quote, string);
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
