/*
 * test_npy - .npy headers are parsed, refused and written
 */
#include "io/header/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

/* Make a header of the text. Returns its size. */
static size_t make_header(unsigned version, const char *text, unsigned char bytes[static 1024])
{
	const size_t begin = version == 1 ? 10 : 12, n = strlen(text) + 1;

	memcpy(bytes, "\x93NUMPY", 6);
	bytes[6] = (unsigned char)version;
	bytes[7] = 0;
	for (size_t i = 8; i < begin; i++)
		bytes[i] = (unsigned char)(n >> 8 * (i - 8));
	memcpy(bytes + begin, text, n);
	bytes[begin + n - 1] = '\n';
	return begin + n;
}

static int parse_text(unsigned version, const char *text, struct npy *ret_npy)
{
	unsigned char bytes[1024];
	const size_t n = make_header(version, text, bytes);
	uint64_t header_nbytes;

	assert_true(npy_parse_prefix(bytes, n, &header_nbytes));
	assert_int_equal(header_nbytes, n);
	captured_messages_reset(true);
	return npy_parse(bytes, n, "a.npy", ret_npy);
}

static int parse(const char *descr, const char *shape, struct npy *ret_npy)
{
	char text[512];

	snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': %s, }", descr,
		 shape);
	return parse_text(1, text, ret_npy);
}

/* Format each field as "NAME:OFFSET:TYPExN", separated by blanks. */
static void assert_fields(const char *descr, uint64_t nbytes, const char *expected)
{
	char text[512] = "";
	struct npy npy;
	size_t at = 0;

	assert_int_equal(parse(descr, "(7,)", &npy), 0);
	assert_int_equal(npy.n_records, 7);
	assert_int_equal(npy.fields.record_nbytes, nbytes);
	for (size_t i = 0; i < npy.fields.n; i++) {
		const struct field *field = &npy.fields.fields[i];

		at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%u:%s", i ? " " : "",
				       field->name, (unsigned)field->key.offset,
				       key_format_type(&field->key).text);
		if (field->n > 1)
			at += (size_t)snprintf(text + at, sizeof text - at, "x%u", field->n);
	}
	assert_string_equal(text, expected);
	npy_free(&npy);
}

TEST(sizes_after_types_belong_to_them)
{
	struct npy npy;

	assert_fields("('S', 8)", 8, ":0:b8");
	assert_fields("[('a', 'S', 3), ('b', '>U', 2), ('c', 'V', 1), ('d', '<i4')]", 16,
		      "a:0:b3 b:3:u32bex2 c:11:b1 d:12:i32le");
	assert_fields("[('a', ('S', 3), (2,)), ('b', 'S0', 2)]", 8, "a:0:b6 b:6:b2");
	assert_int_equal(parse("[('a', ('U', 3), 2)]", "(7,)", &npy), 0);
	assert_string_equal(npy.descr, "[('a', '<U3', (2,))]");
	npy_free(&npy);
	assert_int_equal(parse("[('\\u1000', '<M8[0s]')]", "(7,)", &npy), 0);
	assert_string_equal(npy.descr, "[('\\u1000', '<M8[0s]')]");
	npy_free(&npy);
}

/* All of Python's syntax for strings and numbers. */
TEST(headers_that_are_written_by_hand_are_understood)
{
	static const char *const texts[] = {
		"# by hand\n{'descr': '<i4', 'fortran_order': False, # C\n'shape': (1_000,)}\n#",
		"{r'descr': '''<i4''',\f'fortran_order': False, \\\n'shape': (0x3e8,)}",
		"{'de' \"scr\": U\"<\" r'i' '4', 'fortran_order': False, 'shape': (+1000L,)}",
		"{'descr': '<\\\ni4', 'fortran_order': False, 'shape': (0b1111101000,)}",
		"{\"\"\"descr\"\"\": '\\x3ci4', 'fortran_order': False, 'shape': (0o1750,)}",
	};
	struct npy npy;

	for (unsigned version = 1; version <= 3; version++)
		for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
			assert_int_equal(parse_text(version, texts[i], &npy), 0);
			assert_string_equal(npy.descr, "'<i4'");
			assert_int_equal(npy.n_records, 1000);
			npy_free(&npy);
		}
}

TEST(malformed_dictionaries_are_refused)
{
	static const struct {
		const char *text, *message;
	} all[] = {
		{ "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}}", "at '}" },
		{ "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}, 1", "at ', 1" },
		{ "{'descr': '<i4', 'descr': '<i8', 'shape': (3,)}", "two entries 'descr'" },
		{ "{'descr': '<i4', 'shape': (3,)}", "it has no 'fortran_order'" },
		{ "{'descr': '<i4', 'fortran_order': False}", "it has no 'shape'" },
		{ "{'descr': '>>i4', 'fortran_order': False, 'shape': (3,)}", "unsupported type" },
		{ "{'descr': '<i4', 'shape': (18446744073709551616,)}", "cannot be parsed" },
		{ "{'descr': '<i4', 'shape': (0x,)}", "cannot be parsed" },
		{ "{'descr': '<i4', 'shape': (1__0,)}", "at '__0" },
		{ "{'descr': '<i4'''', 'shape': (3,)}", "cannot be parsed" },
		{ "{'descr': '''<i4', 'shape': (3,)}", "cannot be parsed" },
	};
	struct npy npy;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		assert_int_equal(parse_text(1, all[i].text, &npy), -EINVAL);
		npy_free(&npy);
		if (!strstr(captured_messages_error(), all[i].message))
			assert_string_equal(captured_messages_error(), all[i].message);
	}
}

static void assert_refused(const char *descr, const char *shape, const char *message)
{
	struct npy npy;

	assert_int_equal(parse(descr, shape, &npy), -EINVAL);
	npy_free(&npy);
	if (!strstr(captured_messages_error(), message))
		assert_string_equal(captured_messages_error(), message);
}

TEST(what_cannot_be_sorted_is_refused_by_name)
{
	struct npy npy;

	assert_refused("'|O'", "(5,)", "Python objects");
	assert_refused("[('a', '<i4'), ('b', '|O')]", "(5,)", "Python objects");
	assert_refused("'<f16'", "(5,)", "unsupported type '<f16'");
	assert_refused("'<c32'", "(5,)", "'<c32'");
	assert_refused("'<q8'", "(5,)", "'<q8'");
	assert_refused("'integer'", "(5,)", "unsupported type");
	assert_refused("'object'", "(5,)", "Python objects");
	assert_refused("'<i99999999999999999999'", "(5,)", "unsupported type");
	assert_refused("'|S0'", "(5,)", "no bytes");
	assert_refused("'<f8'", "(5, 0)", "no bytes");
	assert_refused("'<f8'", "(5, 8193)", "65536");
	assert_refused("'<f8'", "(5, 4294967296, 4294967296)", "2^64");
	assert_refused("[('a', '<f8')]", "(5, 2)", "rows of structures");
	assert_refused("('<f8', (2,))", "(5,)", "arrays as items");
	assert_refused("'2<f8'", "(5,)", "arrays as items");
	assert_refused("'<i8,<q8'", "(5,)", "'<q8'");
	assert_refused("'<i8,'", "(5,)", "an empty type in its 'descr'");
	assert_refused("'|S00000000000000000000000000000000000000000000000000000000000012'", "(5,)",
		       "unsupported type 'S000");
	assert_refused("[('a', 3)]", "(5,)", "cannot be parsed at '3)]");
	assert_refused("[('a', '<f8', (2,)]", "(5,)", "cannot be parsed");
	assert_refused("[('a']", "(5,)", "cannot be parsed at ']");
	assert_refused("['a', '<f8')]", "(5,)", "cannot be parsed");
	assert_refused("['a'", "(5,)", "cannot be parsed at ''a'");
	assert_refused("'<f8'", "(5,", "cannot be parsed");
	assert_int_equal(parse_text(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (5, 2)}",
				    &npy),
			 -EINVAL);
	npy_free(&npy);
	assert_non_null(strstr(captured_messages_error(), "Fortran order"));
	assert_int_equal(parse_text(1, "{'shape': (5, 2)}", &npy), -EINVAL);
	npy_free(&npy);
	assert_int_equal(parse_text(1, "{'what': 3}", &npy), -EINVAL);
	npy_free(&npy);
}

TEST(dimensions_are_as_many_as_numpy_has)
{
	char shape[256] = "(5", *at = shape + 2;
	struct npy npy;

	for (unsigned i = 1; i < 64; i++)
		at = stpcpy(at, ",1");
	strcpy(at, ")");
	assert_int_equal(parse("'<i4'", shape, &npy), 0);
	npy_free(&npy);
	strcpy(at, ",1)");
	assert_refused("'<i4'", shape, "more than 64 dimensions");
}

/* Truncated headers, and headers with a changed byte, are parsed or refused. */
TEST(damaged_headers_do_not_crash)
{
	static const char text[] =
		"{'descr': [('a', '<f8', (2,)), ('b', [('c', '<U3')]), ['d', "
		"('<i2,(2,)u1', 3)]], 'fortran_order': False, 'shape': (10, ), }";
	unsigned char bytes[1024], *cut;
	const size_t n = make_header(1, text, bytes);
	struct npy npy;

	for (size_t end = 13; end < n; end++) {
		cut = malloc(end);
		memcpy(cut, bytes, end);
		captured_messages_reset(true);
		npy_parse(cut, end, "cut", &npy);
		npy_free(&npy);
		free(cut);
	}
	for (size_t i = 10; i < n; i++)
		for (unsigned byte = 0; byte < 128; byte++) {
			const unsigned char before = bytes[i];

			bytes[i] = (unsigned char)byte;
			captured_messages_reset(true);
			npy_parse(bytes, n, "damaged", &npy);
			npy_free(&npy);
			bytes[i] = before;
		}
}

/* Some types have the size of a key of bytes, but are no keys. */
TEST(opaque_field_is_no_key)
{
	const struct key bytes = { .nbytes = 32, .kind = KEY_BYTES, .big_endian = true };
	struct npy npy;
	struct key *keys;
	uint32_t n_keys;

	assert_int_equal(parse("[('a', '<c32')]", "(7,)", &npy), 0);
	assert_int_equal(schema_resolve_typed(&npy.fields, &bytes, "a.npy", &keys, &n_keys),
			 -EINVAL);
	npy_free(&npy);
}

static void assert_written(const char *descr, const char *shape, struct output_header_params params,
			   uint64_t n, const char *expected)
{
	struct output_header header;
	struct npy npy;
	char text[512];
	size_t nbytes;

	assert_int_equal(parse(descr, shape, &npy), 0);
	if (!params.keys)
		assert_int_equal(schema_resolve_keys(&npy.fields, NULL, 0, "a.npy",
						     (struct key **)&params.keys, &params.n_keys),
				 0);
	assert_int_equal(npy_make_header(&npy, &params, &header), 0);
	nbytes = header.nbytes;
	assert_int_equal(nbytes % 64, 0);
	output_header_set_count(&header, UINT64_MAX);
	assert_int_equal(header.bytes[nbytes - 1], '\n');
	output_header_set_count(&header, n);
	assert_int_equal(header.bytes[nbytes - 1], '\n');
	snprintf(text, sizeof text, "%.*s", (int)(nbytes - 11), header.bytes + 10);
	text[strlen(text) - strspn(strrchr(text, '}') + 1, " ")] = '\0';
	assert_string_equal(text, expected);
	output_header_free(&header);
	free((void *)params.keys);
	npy_free(&npy);
}

TEST(written_headers_describe_their_records)
{
	const struct output_header_params same = { 0 }, index = { .index = true };
	const struct output_header_params count = { .count = true };
	const struct output_header_params keys = { .keys_only = true };
	const struct output_header_params both = { .count = true,
						   .keys_only = true,
						   .count_is_be = true };

	assert_written("'<f8'", "(5,)", same, 12345,
		       "{'descr': '<f8', 'fortran_order': False, 'shape': (12345,), }");
	assert_written("'<f8'", "(5, 3)", same, 2,
		       "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
	assert_written("[('a', '<i2'), ('b', [('c', '|S3')])]", "(5,)", same, 0,
		       "{'descr': [('a', '<i2'), ('b', [('c', '|S3')])], 'fortran_order': False, "
		       "'shape': (0,), }");
	assert_written("'<f8'", "(5, 3)", index, 5,
		       "{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }");
	assert_written("'>f8'", "(5,)", both, 5,
		       "{'descr': [('count', '>u8'), ('value', '>f8')], 'fortran_order': False, "
		       "'shape': (5,), }");
	assert_written("'<U2'", "(5,)", keys, 5,
		       "{'descr': '<U2', 'fortran_order': False, 'shape': (5,), }");
	assert_written("'<i4'", "(5, 3)", count, 5,
		       "{'descr': [('count', '<u8'), ('value', '<i4', (3,))], 'fortran_order': "
		       "False, 'shape': (5,), }");
	assert_written("[('count', '<i2'), ('', '|V2'), ('s', '|S3', (2,))]", "(5,)", both, 5,
		       "{'descr': [('count_', '>u8'), ('count', '<i2'), ('s', '|S3', (2,))], "
		       "'fortran_order': False, 'shape': (5,), }");
}

/* numpy refuses a structure with equal names or titles. */
TEST(written_field_names_are_unique)
{
	const struct output_header_params count = { .count = true };
	const struct output_header_params both = { .count = true, .keys_only = true };
	struct output_header_params keys = { .keys_only = true };
	struct key twice[] = { { .nbytes = 4, .kind = KEY_SIGNED },
			       { .nbytes = 4, .kind = KEY_SIGNED },
			       { .offset = 4, .nbytes = 1, .kind = KEY_UNSIGNED } };

	assert_written("[('count', '<i4'), ('count_', '<i4')]", "(5,)", count, 5,
		       "{'descr': [('count__', '<u8'), ('count', '<i4'), ('count_', '<i4')], "
		       "'fortran_order': False, 'shape': (5,), }");
	assert_written("[('count', [('a', '<i4')])]", "(5,)", count, 5,
		       "{'descr': [('count_', '<u8'), ('count', [('a', '<i4')])], "
		       "'fortran_order': False, 'shape': (5,), }");
	assert_written("[(('count', 'q'), '<i4')]", "(5,)", count, 5,
		       "{'descr': [('count_', '<u8'), (('count', 'q'), '<i4')], "
		       "'fortran_order': False, 'shape': (5,), }");
	assert_written("[('r', '|i1'), ('', '|V7'), ('count', '<f8')]", "(5,)", count, 5,
		       "{'descr': [('count_', '<u8'), ('r', '|i1'), ('', '|V7'), ('count', "
		       "'<f8')], 'fortran_order': False, 'shape': (5,), }");
	assert_written("[('y', '|i1'), ('', '|V7'), (('count', 'x'), '<f8')]", "(5,)", count, 5,
		       "{'descr': [('count_', '<u8'), ('y', '|i1'), ('', '|V7'), (('count', 'x'), "
		       "'<f8')], 'fortran_order': False, 'shape': (5,), }");
	assert_written("[('b', [('c', '<i4')]), ('b.c', '<i2'), ('b.c_', '<i2')]", "(5,)", both, 5,
		       "{'descr': [('count', '<u8'), ('b.c', '<i4'), ('b.c__', '<i2'), ('b.c_', "
		       "'<i2')], 'fortran_order': False, 'shape': (5,), }");
	assert_written("[('it\\'s \"q\"', '<i4'), ('\xe4', '<i4')]", "(5,)", keys, 5,
		       "{'descr': [('it\\'s \"q\"', '<i4'), ('\\xe4', '<i4')], "
		       "'fortran_order': False, 'shape': (5,), }");
	keys.n_keys = 3;
	keys.keys = memcpy(malloc(sizeof twice), twice, sizeof twice);
	assert_written("[('a', '<i4'), ('', '|V4')]", "(5,)", keys, 5,
		       "{'descr': [('a', '<i4'), ('a_', '<i4'), ('key2', '|u1')], "
		       "'fortran_order': False, 'shape': (5,), }");
}

/* A part of a text field is not a field. */
TEST(a_part_of_a_field_is_not_the_field)
{
	struct output_header_params keys = { .keys_only = true, .n_keys = 1 };
	const struct key first = { .nbytes = 4, .kind = KEY_UNSIGNED };

	keys.keys = memcpy(malloc(sizeof first), &first, sizeof first);
	assert_written("[('a', '<U2')]", "(5,)", keys, 5,
		       "{'descr': [('key0', '<u4')], 'fortran_order': False, 'shape': (5,), }");
	keys.keys = memcpy(malloc(sizeof first), &first, sizeof first);
	assert_written("'<U2'", "(5, 3)", keys, 5,
		       "{'descr': [('key0', '<u4')], 'fortran_order': False, 'shape': (5,), }");
}
