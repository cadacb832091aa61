/*
 * unsupported_options - what users of GNU sort will try (see unsupported_options.h)
 */
#include "src/cli/unsupported_options.h"

#define NO_TEXT "records are no lines of text"

/* Its -t, -k and -R mean something else here. */
const struct unsupported_option unsupported_options[] = {
	{ "ignore-leading-blanks", 'b', NO_TEXT ": a key begins at the byte that -k says" },
	{ "dictionary-order", 'd', NO_TEXT ": bytes (-t bN) are compared as memcmp does" },
	{ "ignore-case", 'f', NO_TEXT ": bytes (-t bN) are compared as memcmp does" },
	{ "ignore-nonprinting", 'i', NO_TEXT ": bytes (-t bN) are compared as memcmp does" },
	{ "general-numeric-sort", 'g', NO_TEXT ": say with -t what the numbers are, f64 say" },
	{ "human-numeric-sort", 'h', NO_TEXT ": say with -t what the numbers are; help is --help" },
	{ "numeric-sort", 'n', NO_TEXT ": say with -t what the numbers are, i64 say" },
	{ "month-sort", 'M', NO_TEXT ": say with -t what the keys are" },
	{ "version-sort", 'V', NO_TEXT ": say with -t what the keys are; see also --version" },
	{ "sort", 0, NO_TEXT ": say with -t, or with -R and -k, how they sort" },
	{ "random-sort", 0, "there is no random order; -R, --record-size is the record's size" },
	{ "random-source", 0, "there is no random order" },
	{ "field-separator", 0,
	  NO_TEXT ", and have no fields: -k OFFSET:TYPE says where a key is" },
	{ "zero-terminated", 'z', NO_TEXT ": nothing ends them, -t or -R says how long they are" },
	{ "compress-program", 0, "gsort compresses by itself: see --temp-compress" },
	{ 0 },
};
