/*
 * test_quote - quoted text is one line without escape sequences
 */
#include <string.h>

#include "src/base/text.h"
#include "tests/support/unit_test.h"

static const char *quote_string(const char *text)
{
	static char line[512];

	return quote_text(text, line, sizeof line);
}

TEST(text_stays_as_it_is)
{
	static const char *const texts[] = { "",
					     "a b: c",
					     "it's",
					     "caf\303\251",
					     "\342\202\254",
					     "\360\237\230\200",
					     "\302\240",
					     "\357\277\275" };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_string_equal(quote_string(texts[i]), texts[i]);
}

TEST(control_characters_are_escaped_as_gnu_does)
{
	assert_string_equal(quote_string("a\nb"), "a$'\\n'b");
	assert_string_equal(quote_string("'a\nb'"), "'a'$'\\n''b'");
	assert_string_equal(quote_string("'\n' \n"), "''$'\\n''' $'\\n'");
	assert_string_equal(quote_string("\a\b\t\v\f\r\033[2J\177"),
			    "$'\\a\\b\\t\\v\\f\\r\\033'[2J$'\\177'");
}

TEST(invalid_utf8_text_is_escaped)
{
	static const char *const texts[][2] = {
		{ "\377", "$'\\377'" },
		{ "\200", "$'\\200'" },
		{ "\303", "$'\\303'" },
		{ "\303a", "$'\\303'a" },
		{ "\300\201", "$'\\300\\201'" },                   /* an overlong encoding */
		{ "\340\201\201", "$'\\340\\201\\201'" },          /* an overlong encoding */
		{ "\355\240\200", "$'\\355\\240\\200'" },          /* a surrogate */
		{ "\364\220\200\200", "$'\\364\\220\\200\\200'" }, /* beyond the last code point */
		{ "\302\233m", "$'\\302\\233'm" },                 /* starts an escape sequence */
		{ "\342\200\250", "$'\\342\\200\\250'" },          /* ends a line */
		{ "\342\200\256", "$'\\342\\200\\256'" }, /* changes the writing direction */
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_string_equal(quote_string(texts[i][0]), texts[i][1]);
}

TEST(long_text_is_cut_and_the_worst_fits)
{
	char text[] = "\n'\n'\n'\n'", line[QUOTED_NBYTES(sizeof text)], small[8];

	assert_int_equal(strlen(quote_text("123456789", small, sizeof small)), sizeof small - 1);
	assert_int_equal(strlen(quote_text("123456\n", small, sizeof small)), sizeof small - 1);
	quote_text(text, line, sizeof line);
	assert_string_equal(line, "$'\\n'''$'\\n'''$'\\n'''$'\\n'''");
}
