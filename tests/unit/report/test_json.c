/*
 * test_json - JSON as it is written
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "src/report/json.h"

#include <cmocka.h>

static char text[1024];

static struct json begin(void)
{
	memset(text, 0, sizeof text);
	return (struct json){ .stream = fmemopen(text, sizeof text, "w") };
}

static const char *end(struct json *json)
{
	fclose(json->stream);
	return text;
}

static void members_are_lines_with_commas_between_them(void **state)
{
	struct json json = begin();

	(void)state;
	json_open(&json, NULL, '{');
	json_u64(&json, "n", UINT64_MAX);
	json_open(&json, "list", '[');
	json_bool(&json, NULL, true);
	json_none(&json, NULL);
	json_open(&json, NULL, '{');
	json_close(&json);
	json_close(&json);
	json_number(&json, "s", 1.5, 3);
	json_close(&json);
	assert_string_equal(end(&json), "{\n  \"n\": 18446744073709551615,\n  \"list\": [\n"
					"    true,\n    null,\n    {}\n  ],\n  \"s\": 1.500\n}\n");
}

static void text_from_outside_is_escaped(void **state)
{
	struct json json = begin();

	(void)state;
	json_open(&json, NULL, '[');
	json_text(&json, NULL, "a \"b\" \\ \n \xff \xc3\xa9");
	json_text(&json, NULL, NULL);
	json_close(&json);
	assert_string_equal(end(&json),
			    "[\n  \"a \\\"b\\\" \\\\ $'\\\\n' $'\\\\377' \xc3\xa9\",\n  null\n]\n");
}

static void what_is_no_number_is_null(void **state)
{
	struct json json = begin();

	(void)state;
	json_open(&json, NULL, '[');
	json_number(&json, NULL, NAN, 3);
	json_number(&json, NULL, INFINITY, 3);
	json_close(&json);
	assert_string_equal(end(&json), "[\n  null,\n  null\n]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_lines_with_commas_between_them),
		cmocka_unit_test(text_from_outside_is_escaped),
		cmocka_unit_test(what_is_no_number_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
