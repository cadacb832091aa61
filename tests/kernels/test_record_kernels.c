/*
 * test_record_kernels.c - encode, decode, unique, cut and sample on the device, against the
 * reference
 *
 * The reference works record by record: layout_encode(), layout_decode(), digest_record(). Buffers
 * have exactly the length that the interface requires.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "src/record/layout.h"
#include "tests/kernels/device.h"
#include "tests/support/key_lists.h"
#include "tools/bench/kernel_keys.h"

/* Each record size, both byte orders, signed and float; several keys. */
static const char *const types[] = {
	"u8",
	"i16be",
	"b3",
	"u32",
	"f32be",
	"b5",
	"b6",
	"b7",
	"i64",
	"f64",
	"u64be",
	"b9",
	"b10",
	"b11",
	"b13",
	"b15",
	"b16",
	"i128be",
	"u128",
	"f64be",
	"f16",
	"u24",
	"i56be",
	"i72",
	"t64be",
	"f64:n",
	"f16:n",
	"2:u16 0:u16",
	"0:f16 2:bf16be:r",
	"0:u32 4:u32",
	"4:i32be:r 0:f32",
	"3:u32 0:u24",
	"8:u64 0:i64:r",
	"0:f64:r 8:f64be",
	"5:i72be 14:u16 0:u40:r",
};

#define FOR_EACH_TYPE(i) for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)

static struct layout layout_of(const char *type, bool descending)
{
	struct layout layout;
	struct key key;

	if (is_key_list(type)) {
		assert_int_equal(key_list_layout(type, descending, &layout), 0);
		assert_true(layout_is_key_only(&layout));
		free((void *)layout.record_keys.fields); /* not used here */
		return layout;
	}
	assert_int_equal(key_parse_type(type, &key), 0);
	key.descending = descending;
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	return layout;
}

/* Lengths at the limits of a tile of the small and the real geometry. */
static const uint64_t lengths[] = { 0, 1, 7, 127, 128, 129, 700 };
static const uint64_t long_lengths[] = { 1023, 1024, 1025, 100003, 3000001 };

static size_t n_lengths(void)
{
	return sizeof lengths / sizeof lengths[0] +
	       (device_is_fast() ? sizeof long_lengths / sizeof long_lengths[0] : 0);
}

static uint64_t length(size_t i)
{
	const size_t n = sizeof lengths / sizeof lengths[0];

	return i < n ? lengths[i] : long_lengths[i - n];
}

static void fill_random(unsigned char *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		bytes[i] = (unsigned char)(digest_mix64(i / 8 + 1) >> i % 8 * 8);
}

static struct digest digest_all(const unsigned char *records, uint64_t record_nbytes, uint64_t n)
{
	struct digest digest = { n, 0 };

	for (uint64_t i = 0; i < n; i++)
		digest.sum += digest_record(records + i * record_nbytes, record_nbytes);
	return digest;
}

static void assert_digest(struct digest actual, struct digest expected, const char *type)
{
	if (!digest_equal(actual, expected))
		fail_msg("%s: the digest differs", type);
}

/* Encode n random records. in_place: they are at the end of the elements' buffer. */
static void check_encode(const char *type, uint64_t n, bool in_place)
{
	const struct layout layout = layout_of(type, n % 2);
	const uint64_t R = layout.record_nbytes, E = layout.element_nbytes;
	const size_t scratch_nbytes = kernel_record_scratch_nbytes(n);
	unsigned char *records = malloc(n * R + 1), *elements = malloc(n * E + 1);
	unsigned char *buffer = kernel_memory_alloc(n * E);
	unsigned char *from = in_place ? buffer + n * (E - R) : kernel_memory_alloc(n * R);
	struct digest *digest = kernel_memory_alloc(sizeof *digest), actual, start = { 5, 7 },
		      expected;
	struct encode_task task = { from,   buffer,
				    n,      layout.encoding,
				    digest, kernel_memory_alloc(scratch_nbytes) };

	fill_random(records, n * R);
	kernel_memory_write(from, records, n * R);
	kernel_memory_write(digest, &start, sizeof start);
	assert_int_equal(launch_encode(&task, NULL), 0);
	kernel_memory_read(elements, buffer, n * E);
	kernel_memory_read(&actual, digest, sizeof actual);
	for (uint64_t i = 0; i < n; i++)
		if (element_get(elements, E, i) != layout_encode(&layout, records + i * R))
			fail_msg("%s: element %llu of %llu differs", type, (unsigned long long)i,
				 (unsigned long long)n);
	expected = digest_all(records, R, n);
	digest_add(&expected, start);
	assert_digest(actual, expected, type);
	kernel_memory_free(task.scratch, scratch_nbytes);
	kernel_memory_free(digest, sizeof *digest);
	if (!in_place)
		kernel_memory_free(from, n * R);
	kernel_memory_free(buffer, n * E);
	free(elements);
	free(records);
}

static void records_are_encoded(void **state)
{
	(void)state;
	FOR_EACH_TYPE(t)
	for (size_t i = 0; i < n_lengths(); i++)
		check_encode(types[t], length(i), false);
}

static void records_at_the_end_expand_in_place(void **state)
{
	(void)state;
	FOR_EACH_TYPE(t)
	for (size_t i = 0; i < n_lengths(); i++)
		check_encode(types[t], length(i), true);
}

/* Return an element. One in 11 is out of order, and neighbours may be equal. */
static encoded_key_t some_element(const struct layout *layout, uint64_t i)
{
	const encoded_key_t most = ~(encoded_key_t)0 >> (128 - layout->record_nbytes * 8);

	return i % 11 == 10 ? most - i % 3 : most / 70000 * (i / 2 % 60000);
}

static void put_element(unsigned char *elements, uint64_t E, uint64_t i, encoded_key_t element)
{
	memcpy(elements + i * E, &element, E);
}

static void check_decode(const char *type, uint64_t n, bool in_place, bool strict)
{
	const struct layout layout = layout_of(type, n % 2);
	const uint64_t R = layout.record_nbytes, E = layout.element_nbytes;
	const size_t scratch_nbytes = kernel_record_scratch_nbytes(n);
	unsigned char *elements = malloc(n * E + 1), *expected = malloc(n * R + 1);
	unsigned char *records = malloc(n * R + 1);
	unsigned char *from = kernel_memory_alloc(n * E),
		      *to = in_place ? from : kernel_memory_alloc(n * R);
	struct kernel_decode_result *result = kernel_memory_alloc(sizeof *result), actual;
	struct decode_task task = {
		from, to, n, layout.encoding, strict, result, kernel_memory_alloc(scratch_nbytes)
	};
	uint64_t n_disorders = 0;

	for (uint64_t i = 0; i < n; i++) {
		const encoded_key_t element = some_element(&layout, i);

		put_element(elements, E, i, element);
		layout_decode(&layout, element, expected + i * R);
		if (i > 0)
			n_disorders += strict ? element <= some_element(&layout, i - 1) :
						element < some_element(&layout, i - 1);
	}
	kernel_memory_write(from, elements, n * E);
	assert_int_equal(launch_decode(&task, NULL), 0);
	kernel_memory_read(records, to, n * R);
	kernel_memory_read(&actual, result, sizeof actual);
	if (memcmp(records, expected, n * R) != 0)
		fail_msg("%s: records differ, n %llu", type, (unsigned long long)n);
	assert_digest(actual.digest, digest_all(expected, R, n), type);
	assert_int_equal(actual.n_disorders, n_disorders);
	if (n > 0) {
		assert_true(element_get(elements, E, 0) ==
			    ((encoded_key_t)actual.first.hi << 64 | actual.first.lo));
		assert_true(element_get(elements, E, n - 1) ==
			    ((encoded_key_t)actual.last.hi << 64 | actual.last.lo));
	}
	kernel_memory_free(task.scratch, scratch_nbytes);
	kernel_memory_free(result, sizeof *result);
	if (!in_place)
		kernel_memory_free(to, n * R);
	kernel_memory_free(from, n * E);
	free(records);
	free(expected);
	free(elements);
}

static void elements_are_decoded_and_checked(void **state)
{
	(void)state;
	FOR_EACH_TYPE(t)
	for (size_t i = 0; i < n_lengths(); i++)
		check_decode(types[t], length(i), false, i % 2);
}

static void elements_are_decoded_in_place(void **state)
{
	(void)state;
	FOR_EACH_TYPE(t)
	for (size_t i = 0; i < n_lengths(); i++)
		check_decode(types[t], length(i), true, i % 2);
}

/* Return whether element i differs from the one before it. */
typedef bool is_new_fn(uint64_t i, uint64_t parameter);

/* Groups of equal elements, `stretch` long on average. */
static bool in_stretches(uint64_t i, uint64_t stretch)
{
	return i == 0 || digest_mix64(i) % stretch == 0;
}

static bool all_but_one(uint64_t i, uint64_t the_one)
{
	return i != the_one;
}

/* Check unique on sorted elements, some of which are equal. */
static void check_unique(const char *type, uint64_t n, is_new_fn *is_new, uint64_t parameter)
{
	const struct layout layout = layout_of(type, false);
	const uint64_t R = layout.record_nbytes, E = layout.element_nbytes;
	const size_t scratch_nbytes = kernel_record_scratch_nbytes(n);
	unsigned char *elements = malloc(n * E + 1), *kept = malloc(n * E + 1), record[16];
	unsigned char *memory = kernel_memory_alloc(n * E);
	struct kernel_unique_result *result = kernel_memory_alloc(sizeof *result), actual;
	struct unique_task task = { memory, n, layout.encoding, result,
				    kernel_memory_alloc(scratch_nbytes) };
	struct digest dropped = { 0, 0 };
	uint64_t n_kept = 0, value = 0;

	for (uint64_t i = 0; i < n; i++) {
		const bool new = is_new(i, parameter);

		value += new;
		put_element(elements, E, i, value);
		if (new) {
			put_element(kept, E, n_kept++, value);
		} else {
			layout_decode(&layout, value, record);
			digest_add(&dropped, digest_all(record, R, 1));
		}
	}
	kernel_memory_write(memory, elements, n * E);
	assert_int_equal(launch_unique(&task, NULL), 0);
	kernel_memory_read(&actual, result, sizeof actual);
	assert_int_equal(actual.n, n_kept);
	assert_digest(actual.dropped, dropped, type);
	kernel_memory_read(elements, memory, n_kept * E);
	assert_memory_equal(elements, kept, n_kept * E);
	kernel_memory_free(task.scratch, scratch_nbytes);
	kernel_memory_free(result, sizeof *result);
	kernel_memory_free(memory, n * E);
	free(kept);
	free(elements);
}

static void the_first_of_equal_elements_is_kept(void **state)
{
	static const char *const unique_types[] = { "u32", "b7", "i64", "b10", "u128" };

	(void)state;
	for (size_t t = 0; t < sizeof unique_types / sizeof unique_types[0]; t++)
		for (size_t i = 0; i < n_lengths(); i++) {
			check_unique(unique_types[t], length(i), in_stretches, 1);
			check_unique(unique_types[t], length(i), in_stretches, 3);
			check_unique(unique_types[t], length(i), in_stretches, 1000000000);
		}
}

/* Put two equal elements at each position, also across two tiles. */
static void two_equal_elements_among_others_are_found(void **state)
{
	(void)state;
	for (uint64_t i = 1; i < 400; i++)
		check_unique(i % 2 ? "u32" : "u128", 400, all_but_one, i);
	for (uint64_t i = 1023; device_is_fast() && i <= 8192; i += i % 1024 ? 1 : 1023)
		check_unique("u64", 10000, all_but_one, i);
}

/* Slices of the even numbers 0, 2, 4 ...; the last one is empty. */
static void splitters_cut_by_key_and_slice(void **state)
{
	enum { K = 300, LENGTH = 50 };
	const uint32_t sizes[] = { 4, 8, 16 };
	struct kernel_slice slices[K] = { 0 };
	uint64_t *cuts = kernel_memory_alloc(sizeof *cuts * K), actual[K];

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		const size_t nbytes = LENGTH * sizes[s];
		unsigned char *elements = malloc(nbytes), *memory = kernel_memory_alloc(nbytes);

		for (uint64_t i = 0; i < LENGTH; i++)
			put_element(elements, sizes[s], i, 2 * i);
		kernel_memory_write(memory, elements, nbytes);
		for (uint32_t i = 0; i + 1 < K; i++)
			slices[i] = (struct kernel_slice){ memory, LENGTH };
		for (uint64_t key = 0; key <= 2 * LENGTH; key++) {
			assert_int_equal(launch_cut(slices, K, sizes[s],
						    (struct kernel_key){ key, 0 }, 137, cuts, NULL),
					 0);
			kernel_memory_read(actual, cuts, sizeof actual);
			for (uint32_t i = 0; i + 1 < K; i++)
				assert_int_equal(actual[i], key >= 2 * LENGTH ? LENGTH :
							    i < 137           ? key / 2 + 1 :
										(key + 1) / 2);
			assert_int_equal(actual[K - 1], 0);
		}
		kernel_memory_free(memory, nbytes);
		free(elements);
	}
	kernel_memory_free(cuts, sizeof *cuts * K);
}

static void samples_are_every_stride_th_element(void **state)
{
	enum { N = 1000 };
	const uint32_t sizes[] = { 4, 8, 16 };

	(void)state;
	for (size_t s = 0; s < 3; s++)
		for (uint64_t stride = 1; stride <= 2 * N; stride = stride * 3 + 1) {
			const uint64_t n_keys = (N + stride - 1) / stride;
			unsigned char *elements = malloc(N * sizes[s]);
			void *memory = kernel_memory_alloc(N * sizes[s]);
			struct kernel_key *keys = kernel_memory_alloc(n_keys * sizeof *keys);
			struct kernel_key *actual = malloc(n_keys * sizeof *actual);

			keys_fill(elements, sizes[s], N, KEYS_RANDOM);
			kernel_memory_write(memory, elements, N * sizes[s]);
			assert_int_equal(launch_sample(memory, N, stride, sizes[s], keys, NULL), 0);
			kernel_memory_read(actual, keys, n_keys * sizeof *keys);
			for (uint64_t i = 0; i < n_keys; i++)
				assert_true(((encoded_key_t)actual[i].hi << 64 | actual[i].lo) ==
					    element_get(elements, sizes[s], i * stride));
			free(actual);
			kernel_memory_free(keys, n_keys * sizeof *keys);
			kernel_memory_free(memory, N * sizes[s]);
			free(elements);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_encoded),
		cmocka_unit_test(records_at_the_end_expand_in_place),
		cmocka_unit_test(elements_are_decoded_and_checked),
		cmocka_unit_test(elements_are_decoded_in_place),
		cmocka_unit_test(the_first_of_equal_elements_is_kept),
		cmocka_unit_test(two_equal_elements_among_others_are_found),
		cmocka_unit_test(splitters_cut_by_key_and_slice),
		cmocka_unit_test(samples_are_every_stride_th_element),
	};
	const char *why;

	if (!kernel_memory_is_available(&why)) {
		printf("skipped: no device: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
