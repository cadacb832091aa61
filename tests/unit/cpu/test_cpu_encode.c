/*
 * test_cpu_encode - encode, decode and unique against the reference of record.h, for every type
 */
#include "src/device/cpu/encode.h"
#include "src/device/cpu/unique.h"
#include "tests/support/elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Around the blocks that encode works in. */
static const uint64_t lengths[] = { 0, 1, 2, 3, 7, 8, 9, 100, 255, 256, 257, 511, 512, 513, 1000 };
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef void check_fn(const struct layout *layout, uint64_t n);

/* check() for every type of the command line, in both directions, and every length. */
static void for_all_layouts(check_fn *check)
{
	static const char *const types[] = { "u8",  "u16", "u32", "u64",  "u128", "i8",
					     "i16", "i32", "i64", "i128", "f32",  "f64" };
	char names[12 + 12 + 16][8];
	unsigned n_names = 0;

	for (unsigned i = 0; i < 12; i++) {
		snprintf(names[n_names++], sizeof names[0], "%s", types[i]);
		snprintf(names[n_names++], sizeof names[0], "%sbe", types[i]);
	}
	for (unsigned i = 1; i <= 16; i++)
		snprintf(names[n_names++], sizeof names[0], "b%u", i);
	for (unsigned i = 0; i < 2 * n_names; i++) {
		struct layout layout;
		struct key key;

		assert_int_equal(key_parse_type(names[i / 2], &key), 0);
		key.descending = i % 2;
		assert_int_equal(layout_make_plain(&key, &layout), 0);
		for (unsigned j = 0; j < N_LENGTHS; j++)
			check(&layout, lengths[j]);
	}
}

static unsigned char *make_records(const struct layout *layout, uint64_t n, enum gen_dist dist)
{
	unsigned char *records = guarded_alloc(n * layout->record_nbytes);
	struct gen gen;

	gen_make(layout, dist, n, n, &gen);
	gen_fill(&gen, 0, n, records);
	return records;
}

static struct digest reference_digest(const struct layout *layout, const unsigned char *records,
				      uint64_t n)
{
	struct digest digest = { .n_records = n };

	for (uint64_t i = 0; i < n; i++)
		digest.sum +=
			digest_record(records + i * layout->record_nbytes, layout->record_nbytes);
	return digest;
}

static void assert_encoded(const struct layout *layout, const unsigned char *records,
			   const void *elements, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		assert_true(element_get(elements, layout->element_nbytes, i) ==
			    layout_encode(layout, records + i * layout->record_nbytes));
}

static void check_encode(const struct layout *layout, uint64_t n)
{
	const size_t records_nbytes = n * layout->record_nbytes;
	const size_t elements_nbytes = n * layout->element_nbytes;
	unsigned char *records = make_records(layout, n, GEN_NAN);
	unsigned char *elements = guarded_alloc(elements_nbytes);
	struct digest digest = { .n_records = 3, .sum = 5 };
	struct digest expected = reference_digest(layout, records, n);

	digest_add(&expected, digest);
	cpu_encode(&(struct encode_op){ .layout = layout,
					.records = records,
					.elements = elements,
					.n = n,
					.ret_digest = &digest });
	assert_encoded(layout, records, elements, n);
	assert_true(digest_equal(digest, expected));

	/* Again without a digest, from the end of the same memory. */
	memcpy(elements + elements_nbytes - records_nbytes, records, records_nbytes);
	cpu_encode(&(struct encode_op){ .layout = layout,
					.records = elements + elements_nbytes - records_nbytes,
					.elements = elements,
					.n = n });
	assert_encoded(layout, records, elements, n);
	guarded_free(records, records_nbytes);
	guarded_free(elements, elements_nbytes);
}

static void encode_equals_the_reference(void **state)
{
	(void)state;
	for_all_layouts(check_encode);
}

static void check_decode(const struct layout *layout, uint64_t n)
{
	const size_t records_nbytes = n * layout->record_nbytes;
	const size_t elements_nbytes = n * layout->element_nbytes;
	unsigned char *expected = make_records(layout, n, GEN_RANDOM);
	unsigned char *elements = guarded_alloc(elements_nbytes);
	unsigned char *records = guarded_alloc(records_nbytes);
	struct decode_result result;

	cpu_encode(&(struct encode_op){
		.layout = layout, .records = expected, .elements = elements, .n = n });
	cpu_decode(&(struct decode_op){ .layout = layout,
					.elements = elements,
					.records = records,
					.n = n,
					.ret = &result });
	assert_memory_equal(records, expected, records_nbytes);
	assert_true(digest_equal(result.digest, reference_digest(layout, expected, n)));

	/* Again in place. */
	cpu_decode(&(struct decode_op){ .layout = layout,
					.elements = elements,
					.records = elements,
					.n = n,
					.ret = &result });
	assert_memory_equal(elements, expected, records_nbytes);
	assert_true(digest_equal(result.digest, reference_digest(layout, expected, n)));
	guarded_free(expected, records_nbytes);
	guarded_free(elements, elements_nbytes);
	guarded_free(records, records_nbytes);
}

static void decode_equals_the_reference(void **state)
{
	(void)state;
	for_all_layouts(check_decode);
}

static void check_disorders(const struct layout *layout, uint64_t n)
{
	unsigned char *elements = guarded_alloc(n * layout->element_nbytes);
	unsigned char *records = make_records(layout, n, GEN_FEW);
	uint64_t expected[2] = { 0, 0 };

	for (unsigned strict = 0; strict < 2; strict++) {
		const struct decode_op op = { .layout = layout,
					      .elements = elements,
					      .records = elements,
					      .n = n,
					      .strict = strict,
					      .ret = &(struct decode_result){ .n_disorders = 99 } };
		code_t first = 0, previous = 0;

		cpu_encode(&(struct encode_op){
			.layout = layout, .records = records, .elements = elements, .n = n });
		for (uint64_t i = 0; i < n; i++) {
			const code_t element = element_get(elements, layout->element_nbytes, i);

			if (i == 0)
				first = element;
			else
				expected[strict] += element < previous ||
						    (strict && element == previous);
			previous = element;
		}
		cpu_decode(&op);
		assert_int_equal(op.ret->n_disorders, expected[strict]);
		assert_true(n == 0 || (op.ret->first == first && op.ret->last == previous));
	}
	guarded_free(elements, n * layout->element_nbytes);
	guarded_free(records, n * layout->record_nbytes);
}

static void decode_counts_every_disorder_and_keeps_the_edges(void **state)
{
	(void)state;
	for_all_layouts(check_disorders);
}

static void check_unique(const struct layout *layout, uint64_t n)
{
	const size_t nbytes = n * layout->element_nbytes;
	unsigned char *records = make_records(layout, n, n % 2 ? GEN_EQUAL : GEN_FEW);
	unsigned char *elements = guarded_alloc(nbytes);
	unsigned char *expected, record[16];
	struct digest dropped, expected_dropped = { 0 };
	uint64_t n_left, n_expected = 0;

	cpu_encode(&(struct encode_op){
		.layout = layout, .records = records, .elements = elements, .n = n });
	elements_sort(elements, layout->element_nbytes, n);
	expected = guarded_copy(elements, nbytes);
	for (uint64_t i = 0; i < n; i++) {
		const code_t code = element_get(elements, layout->element_nbytes, i);

		if (i == 0 || code != element_get(elements, layout->element_nbytes, i - 1)) {
			memcpy(expected + n_expected++ * layout->element_nbytes,
			       elements + i * layout->element_nbytes, layout->element_nbytes);
			continue;
		}
		layout_decode(layout, code, record);
		digest_add(&expected_dropped, reference_digest(layout, record, 1));
	}
	cpu_unique(&(struct unique_elements_op){ .elements = elements,
						 .n = n,
						 .element_nbytes = layout->element_nbytes,
						 .layout = layout,
						 .ret_n = &n_left,
						 .ret_dropped = &dropped });
	assert_int_equal(n_left, n_expected);
	assert_memory_equal(elements, expected, n_expected * layout->element_nbytes);
	assert_true(digest_equal(dropped, expected_dropped));
	guarded_free(records, n * layout->record_nbytes);
	guarded_free(elements, nbytes);
	guarded_free(expected, nbytes);
}

static void unique_keeps_one_of_each_and_digests_the_others(void **state)
{
	(void)state;
	for_all_layouts(check_unique);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encode_equals_the_reference),
		cmocka_unit_test(decode_equals_the_reference),
		cmocka_unit_test(decode_counts_every_disorder_and_keeps_the_edges),
		cmocka_unit_test(unique_keeps_one_of_each_and_digests_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
