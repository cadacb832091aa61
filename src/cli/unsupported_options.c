/*
 * unsupported_options - what users of GNU sort will try (see unsupported_options.h)
 */
#include "src/cli/unsupported_options.h"

#include <ctype.h>
#include <string.h>

#include "config.h"

#define NO_TEXT "records are no lines of text"

/* "2,2", "1.3,1.5", "2n,2": columns of text. "2" and "1.3" can be columns of an array. */
static bool is_text_key(const char *value)
{
	const size_t n = value ? strspn(value, "0123456789") : 0;

	if (n == 0)
		return false;
	value += n;
	if (*value == '.')
		value += 1 + strspn(value + 1, "0123456789");
	return value[strspn(value, "bdfgiMhnRrV")] == ',';
}

/* ",", "\t": one character that separates columns. */
static bool is_separator(const char *value)
{
	return value && *value &&
	       ((!value[1] && !isalnum((unsigned char)*value)) || strcmp(value, "\\t") == 0 ||
		strcmp(value, "\\0") == 0);
}

static bool is_missing(const char *value)
{
	return !value;
}

/* Its -t, -k and -R mean something else here. */
const struct unsupported_option unsupported_options[] = {
	{ "ignore-leading-blanks", 'b', NO_TEXT ": a key begins at the byte that -k says", NULL },
	{ "dictionary-order", 'd', NO_TEXT ": bytes (-t bN) are compared as memcmp does", NULL },
	{ "ignore-case", 'f', NO_TEXT ": bytes (-t bN) are compared as memcmp does", NULL },
	{ "ignore-nonprinting", 'i', NO_TEXT ": bytes (-t bN) are compared as memcmp does", NULL },
	{ "general-numeric-sort", 'g', NO_TEXT ": say with -t what the numbers are, f64 say",
	  NULL },
	{ "human-numeric-sort", 'h', NO_TEXT ": say with -t what the numbers are; help is --help",
	  NULL },
	{ "numeric-sort", 'n', NO_TEXT ": say with -t what the numbers are, i64 say", NULL },
	{ "month-sort", 'M', NO_TEXT ": say with -t what the keys are", NULL },
	{ "version-sort", 'V', NO_TEXT ": say with -t what the keys are; see also --version",
	  NULL },
	{ "sort", 0, NO_TEXT ": say with -t, or with -R and -k, how they sort", NULL },
	{ "random-sort", 0, "there is no random order; -R, --record-size is the record's size",
	  NULL },
	{ "random-source", 0, "there is no random order", NULL },
	{ "field-separator", 0, NO_TEXT ", and have no fields: -k OFFSET:TYPE says where a key is",
	  NULL },
	{ "zero-terminated", 'z', NO_TEXT ": nothing ends them, -t or -R says how long they are",
	  NULL },
	{ "compress-program", 0, GSORT_PROGRAM " compresses by itself: see --temp-compress", NULL },
	{ "key", 'k', NO_TEXT " with columns: write OFFSET:TYPE, and repeat -k for each key",
	  is_text_key },
	{ "type", 't', NO_TEXT " with separators: -t is the type, and -k OFFSET:TYPE a key",
	  is_separator },
	{ "record-size", 'R', "there is no random order; -R needs the record's size in bytes",
	  is_missing },
	{ 0 },
};
