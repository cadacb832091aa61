/*
 * parsed_options.h - parse command lines that must be valid or must be refused
 */
#pragma once

#include <string.h>

#include "src/options/options.h"
#include "tests/support/captured_messages.h"
#include "tests/support/final_options.h"
#include "tests/support/unit_test.h"

enum { MAX_ARGS = 20 };

/* Parse "gsort" and the words, which end with NULL. */
static inline int parse_words(struct options *ret_options, va_list words)
{
	char *argv[MAX_ARGS + 2] = { "gsort" };
	int argc = 1;

	captured_messages_reset(true);
	while ((argv[argc] = va_arg(words, char *)) != NULL)
		assert_true(++argc <= MAX_ARGS);
	return parse_final_options(argc, argv, ret_options);
}

/* Parse a command line that must be valid and return its options. The words end with NULL. */
static inline struct options parse_valid(const char *word, ...)
{
	struct options options;
	va_list words;
	int r;

	(void)word;
	va_start(words, word);
	r = parse_words(&options, words);
	va_end(words);
	if (r != 0)
		print_error("assert_words_refused: %s\n", captured_messages_error());
	assert_int_equal(r, 0);
	return options;
}

/* Assert that the words are refused with a message that contains both texts. They end with NULL. */
static inline void assert_words_refused(const char *text, const char *other_text, ...)
{
	struct options options;
	va_list words;
	int r;

	va_start(words, other_text);
	r = parse_words(&options, words);
	va_end(words);
	assert_true(r < 0);
	if (!strstr(captured_messages_error(), text) ||
	    !strstr(captured_messages_error(), other_text))
		fail_msg("message '%s' has no '%s' or no '%s'", captured_messages_error(), text,
			 other_text);
}

/* Without argv[0] and the final NULL. */
#define PARSE_VALID(...) parse_valid("gsort", __VA_ARGS__, NULL)
#define ASSERT_REFUSED(part, other_text, ...)                                                      \
	assert_words_refused(part, other_text, __VA_ARGS__, NULL)
