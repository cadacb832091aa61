/*
 * test_html - values are formatted, and text is escaped
 */
#include <inttypes.h>
#include <string.h>

#include "src/report/html.h"
#include "tests/support/unit_test.h"

static char text[4096];

static FILE *begin(void)
{
	memset(text, 0, sizeof text);
	return fmemopen(text, sizeof text, "w");
}

static const char *end(FILE *stream)
{
	fclose(stream);
	return text;
}

TEST(values_are_formatted_as_by_printf)
{
	FILE *stream = begin();

	html_print(stream, "<b a=\"%d\">%u %ld%% %" PRIu64 " %zu|%5.1f|%.4g|%s</b>", -7,
		   4000000000u, -5000000000l, UINT64_MAX, (size_t)3, 2.25, 1e9, "x");
	assert_string_equal(end(stream), "<b a=\"-7\">4000000000 -5000000000% 18446744073709551615 "
					 "3|  2.2|1e+09|x</b>");
}

TEST(texts_are_escaped)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "<script>alert(\"1\" & '2')</script>",
		  "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;" },
		{ "\"><b onclick='x'>", "&quot;&gt;&lt;b onclick=&#39;x&#39;&gt;" },
		{ "100%d%s", "100%d%s" },
		{ "a\nb\xff\x1b[31m\xe2\x80\xae\xc3\xa9",
		  "a$&#39;\\n&#39;b$&#39;\\377\\033&#39;[31m$&#39;\\342\\200\\256&#39;\xc3\xa9" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		FILE *stream = begin();

		html_print(stream, "%s", cases[i].text);
		assert_string_equal(end(stream), cases[i].expected);
	}
}

TEST(long_text_is_whole)
{
	FILE *stream = begin();
	char name[2000];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	html_print(stream, "<td>%s</td>\n", name);
	assert_int_equal(strlen(end(stream)), sizeof name - 1 + strlen("<td></td>\n"));
}
