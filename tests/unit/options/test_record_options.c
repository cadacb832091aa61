/*
 * test_record_options - options for records, keys and layouts of the output
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

static void keys_keep_their_order(void **state)
{
	struct options options;
	const struct key *keys;

	(void)state;
	options = PARSE_VALID("-R", "32", "-k", "8:i32be:r", "--key=0:b4", "-k4:u16", "-o", "out");
	keys = options.spec.keys;
	assert_int_equal(options.spec.record_nbytes, 32);
	assert_int_equal(options.spec.n_keys, 3);
	assert_true(keys[0].offset == 8 && keys[0].nbytes == 4 && keys[0].kind == KEY_SIGNED);
	assert_true(keys[0].big_endian && keys[0].descending);
	assert_true(keys[1].offset == 0 && keys[1].nbytes == 4 && keys[1].kind == KEY_BYTES);
	assert_false(keys[1].descending);
	assert_true(keys[2].offset == 4 && keys[2].nbytes == 2 && keys[2].kind == KEY_UNSIGNED);
	options_free(&options);
}

/* Reports have room for a limited text. */
static void long_key_lists_are_abbreviated(void **state)
{
	char text[KEYS_TEXT_NBYTES + 1];
	struct options options =
		PARSE_VALID("-R", "32", "-k", "8:i32be:r", "-k", "0:b4", "-o", "out");

	(void)state;
	text[KEYS_TEXT_NBYTES] = '#';
	keys_format(options.spec.keys, options.spec.n_keys, options.spec.record_nbytes, text);
	assert_string_equal(text, "8:i32be:r,0:b4");
	options_free(&options);
	options = PARSE_VALID("-R", "99", "-k", "10:i32be:r", "-k", "20:i32be:r", "-k",
			      "30:i32be:r", "-k", "40:i32be:r", "-k", "50:i32be:r", "-k",
			      "60:i32be:r", "-o", "out");
	keys_format(options.spec.keys, options.spec.n_keys, options.spec.record_nbytes, text);
	assert_string_equal(text,
			    "10:i32be:r,20:i32be:r,30:i32be:r,40:i32be:r,50:i32be:r,60:i3...");
	assert_int_equal(text[KEYS_TEXT_NBYTES], '#');
	options_free(&options);
}

static void a_record_without_keys_is_one(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("-R", "100", "-o", "out");
	assert_int_equal(options.spec.n_keys, 1);
	assert_int_equal(options.spec.keys[0].kind, KEY_BYTES);
	assert_int_equal(options.spec.keys[0].nbytes, 100);
	options_free(&options);
	options = PARSE_VALID("-R", "4", "-t", "f32", "-o", "out");
	assert_int_equal(options.spec.keys[0].kind, KEY_FLOAT);
	options_free(&options);
	options = PARSE_VALID("-t", "b65536", "-o", "out");
	options_free(&options);
}

static void reverse_makes_every_key_descending(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("-r", "-R8", "-k0:u32:r", "-k4:u32", "-o", "out");
	assert_true(options.spec.keys[0].descending && options.spec.keys[1].descending);
	options_free(&options);
}

static void direction_does_not_depend_on_the_order_of_options(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("-r", "-t", "i16", "-o", "out");
	assert_int_equal(options.spec.keys[0].nbytes, 2);
	assert_true(options.spec.keys[0].descending);
	options_free(&options);
}

static void any_number_of_keys_is_accepted(void **state)
{
	enum { N = 5000 };
	char **argv = calloc(2 * N + 5, sizeof *argv);
	struct options options;
	int argc = 0;

	(void)state;
	assert_non_null(argv);
	argv[argc++] = "gsort";
	argv[argc++] = "-R16";
	argv[argc++] = "-oout";
	for (int i = 0; i < N; i++) {
		argv[argc++] = "-k";
		argv[argc++] = i % 2 ? "3:u8" : "0:b2";
	}
	captured_messages_reset(true);
	assert_int_equal(parse_final_options(argc, argv, &options), 0);
	assert_int_equal(options.spec.n_keys, N);
	options_free(&options);
	free(argv);
}

static bool lacks_memory;

void *__real_reallocarray(void *memory, size_t n, size_t nbytes);
void *__wrap_reallocarray(void *memory, size_t n, size_t nbytes);
void *__wrap_reallocarray(void *memory, size_t n, size_t nbytes)
{
	return lacks_memory ? NULL : __real_reallocarray(memory, n, nbytes);
}

static void keys_without_memory_are_refused_with_their_number(void **state)
{
	(void)state;
	lacks_memory = true;
	ASSERT_REFUSED("no memory for 1 keys", "", "-R9", "-k0:u8", "-o", "out");
	lacks_memory = false;
}

static void direction_of_a_field_comes_after_its_order(void **state)
{
	static const char *const orders[] = { "n", "t", "numpy", "total" };

	(void)state;
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		char key[20], hint[40];

		snprintf(key, sizeof key, "0:r:%s", orders[i]);
		snprintf(hint, sizeof hint, ":r must be last; use 0:%s:r", orders[i]);
		ASSERT_REFUSED(key, hint, "-R", "32", "-k", key, "-o", "out");
	}
}

/*
 * Keys without an offset are names of fields, which may be any text. They are refused later, if the
 * input has no such field.
 */
static void keys_without_offset_are_names(void **state)
{
	static const char *const keys[] = { "u32",   "0",      "0:r",  ":u32",   "-1:u32",
					    "0:t:r", " 0:u32", "17.x", "0x1:u32" };

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		struct options options = PARSE_VALID("-R", "32", "-k", keys[i], "-o", "out");

		assert_int_equal(options.spec.record_spec, RECORD_SPEC_REQUESTS);
		assert_int_equal(options.spec.record_nbytes, 32);
		assert_string_equal(options.spec.key_requests[0].text, keys[i]);
		assert_int_equal(options.spec.key_requests[0].key.nbytes, 0);
		options_free(&options);
	}
}

/* Keys by offset also wait for the input if the record size is unknown. */
static void keys_without_record_size_wait_for_input(void **state)
{
	struct options options = PARSE_VALID("-k", "8:u32", "-o", "out");

	(void)state;
	assert_int_equal(options.spec.record_spec, RECORD_SPEC_REQUESTS);
	assert_int_equal(options.spec.key_requests[0].key.offset, 8);
	options_free(&options);
}

static void keys_lie_within_the_record(void **state)
{
	(void)state;
	ASSERT_REFUSED("-k, --key=29:u32le", "32", "-R32", "-k0:u32", "-k29:u32", "-o", "out");
	ASSERT_REFUSED("-k, --key=32:u8", "32", "-R32", "-k32:u8", "-o", "out");
	ASSERT_REFUSED("-k, --key", "reaches", "-R32", "-k18446744073709551615:u64", "-o", "out");
	ASSERT_REFUSED("-k, --key", "-t, --type", "-tu64", "-k0:u32", "-o", "out");
	ASSERT_REFUSED("-k, --key", "131072", "-R65536", "-k0:b65536", "-k0:b65536", "-o", "out");
}

/* The value must be refused before it is stored. */
static void invalid_record_size_is_named_in_refusal(void **state)
{
	const struct option_spec spec = { .name = "record-size", .letter = 'R', .argument = "N" };
	struct record_options record = { 0 };

	(void)state;
	captured_messages_reset(true);
	assert_int_equal(record_options_parse_size(&spec, "1x", &record), -EINVAL);
	assert_int_equal(record.record_nbytes, 0);
}

static int make_layout(const struct options *options, struct layout *ret_layout)
{
	const struct sort_spec spec = options->spec;

	return spec_layout(&spec, ret_layout);
}

static void shapes_reach_their_fields_and_the_layout(void **state)
{
	struct options options;
	struct layout layout;

	(void)state;
	options = PARSE_VALID("-R32", "-k8:u32be", "-k0:b3", "-u", "--count", "--keys-only",
			      "--limit=0", "--skip-bytes=1K", "--partial=drop", "-o", "out");
	assert_true(options.spec.count && options.spec.keys_only && !options.spec.argsort);
	assert_int_equal(options.spec.limit, 0);
	assert_int_equal(options.spec.skip_nbytes, 1024);
	assert_int_equal(options.spec.partial, PARTIAL_DROP);
	assert_int_equal(make_layout(&options, &layout), 0);
	assert_int_equal(layout.kind, LAYOUT_RECORDS);
	assert_int_equal(layout.output_nbytes, 8 + 4 + 3);
	assert_true(layout.projection.count_is_big_endian);
	layout_free(&layout);
	options_free(&options);

	options = PARSE_VALID("--limit=7", "-o", "out");
	assert_int_equal(make_layout(&options, &layout), 0);
	assert_int_equal(layout.kind, LAYOUT_RECORDS);
	layout_free(&layout);
	options_free(&options);

	options = PARSE_VALID("-o", "out");
	assert_true(options.spec.limit == UINT64_MAX);
	assert_int_equal(make_layout(&options, &layout), 0);
	assert_int_equal(layout.kind, LAYOUT_KEY_ONLY);
	layout_free(&layout);
	options_free(&options);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(keys_keep_their_order),
	cmocka_unit_test(long_key_lists_are_abbreviated),
	cmocka_unit_test(a_record_without_keys_is_one),
	cmocka_unit_test(reverse_makes_every_key_descending),
	cmocka_unit_test(direction_does_not_depend_on_the_order_of_options),
	cmocka_unit_test(any_number_of_keys_is_accepted),
	cmocka_unit_test(keys_without_memory_are_refused_with_their_number),
	cmocka_unit_test(direction_of_a_field_comes_after_its_order),
	cmocka_unit_test(keys_without_offset_are_names),
	cmocka_unit_test(keys_without_record_size_wait_for_input),
	cmocka_unit_test(keys_lie_within_the_record),
	cmocka_unit_test(invalid_record_size_is_named_in_refusal),
	cmocka_unit_test(shapes_reach_their_fields_and_the_layout),
};

UNIT_TESTS(record_options, tests, NULL, NULL)
