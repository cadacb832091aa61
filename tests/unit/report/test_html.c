/*
 * test_html - text is escaped, and elements are closed in order
 */
#include <string.h>

#include "src/report/html.h"
#include "tests/support/unit_test.h"

static char text[4096];

static struct html begin(void)
{
	memset(text, 0, sizeof text);
	return (struct html){ .stream = fmemopen(text, sizeof text, "w") };
}

static const char *end(struct html *html)
{
	fclose(html->stream);
	return text;
}

static void elements_are_closed_in_order(void **state)
{
	struct html html = begin();

	(void)state;
	html_open_with_class(&html, "section", "wide");
	html_open(&html, "meta");
	html_attribute(&html, "name", "%d", 7);
	html_close(&html);
	html_open(&html, "p");
	html_open(&html, "b");
	html_text(&html, "x");
	html_close_to(&html, 0);
	assert_string_equal(end(&html), "<section class=\"wide\"><meta name=\"7\"><p><b>x</b>\n"
					"</p>\n</section>\n");
}

static void markup_in_a_name_is_text(void **state)
{
	struct html html = begin();

	(void)state;
	html_element(&html, "td", "%s", "<script>alert(\"1\" & '2')</script>");
	assert_string_equal(end(&html), "<td>&lt;script&gt;alert(&quot;1&quot; &amp; "
					"&#39;2&#39;)&lt;/script&gt;</td>\n");
}

static void attribute_values_are_escaped(void **state)
{
	struct html html = begin();

	(void)state;
	html_open(&html, "a");
	html_attribute(&html, "href", "%s", "\"><b onclick='x'>");
	html_close(&html);
	assert_string_equal(end(&html),
			    "<a href=\"&quot;&gt;&lt;b onclick=&#39;x&#39;&gt;\"></a>\n");
}

static void invalid_utf8_is_escaped_in_html(void **state)
{
	struct html html = begin();

	(void)state;
	html_element(&html, "td", "%s", "a\nb\xff\x1b[31m\xe2\x80\xae\xc3\xa9");
	assert_string_equal(end(&html), "<td>a$&#39;\\n&#39;b$&#39;\\377\\033&#39;[31m"
					"$&#39;\\342\\200\\256&#39;\xc3\xa9</td>\n");
}

static void long_text_is_whole(void **state)
{
	struct html html = begin();
	char name[2000];

	(void)state;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	html_element(&html, "td", "%s", name);
	assert_int_equal(strlen(end(&html)), sizeof name - 1 + strlen("<td></td>\n"));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(elements_are_closed_in_order),
	cmocka_unit_test(markup_in_a_name_is_text),
	cmocka_unit_test(attribute_values_are_escaped),
	cmocka_unit_test(invalid_utf8_is_escaped_in_html),
	cmocka_unit_test(long_text_is_whole),
};

UNIT_TESTS(html, tests, NULL, NULL)
