/*
 * api_text.c - functions of the library that need no sort (see include/gsort.h)
 *
 * gsort-gen and gsort-check call these through src/cli. They have a file of their own so that the
 * linker does not add the engine to these programs (tests/check_tool_symbols.py).
 */
#include "config.h"
#include "include/gsort.h"
#include "src/base/text.h"
#include "src/options/record_options.h"

const char *gsort_version(void)
{
	return GSORT_VERSION;
}

const char *gsort_describe_types(void)
{
	return RECORD_OPTIONS_TYPES;
}

const char *gsort_suggest(const char *word, size_t nbytes, const char *const *words, unsigned n)
{
	return word && words ? suggest_word(word, nbytes, words, n) : NULL;
}

const char *gsort_quote(const char *text, char *line, size_t nbytes)
{
	return text && line && nbytes ? quote_text(text, line, nbytes) : "";
}
