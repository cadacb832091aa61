/*
 * test_cpu_tie_break - ties, adversarial ones too, against a sort by whole keys
 */
#include "src/device/cpu/cpu_ops.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/record/key_prefix.h"
#include "tests/support/elements.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

enum { RECORD_NBYTES = 100 };

/* What qsort() must know. */
static struct {
	const struct key_fields *keys;
	const unsigned char *records;
} reference;

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int order = key_compare(reference.keys, reference.records + x * RECORD_NBYTES,
				      reference.records + y * RECORD_NBYTES);

	return order ? order : (x > y) - (x < y);
}

/* The numbers of n records in the order of their keys. */
static uint32_t *sort_by_reference(const struct layout *layout, const unsigned char *records,
				   uint64_t n)
{
	uint32_t *numbers = guarded_alloc(n * sizeof *numbers);

	for (uint32_t i = 0; i < n; i++)
		numbers[i] = i;
	reference.keys = &layout->item_keys;
	reference.records = records;
	qsort(numbers, n, sizeof *numbers, compare_numbers);
	return numbers;
}

/* Sorted elements. */
static void *make_elements(const struct layout *layout, const struct element_format *format,
			   const unsigned char *records, uint64_t n)
{
	void *elements = guarded_alloc(n * format->element_nbytes);
	struct key_prefix prefix;

	key_prefix_make(&layout->item_keys, RECORD_NBYTES, &prefix);
	for (uint32_t i = 0; i < n; i++)
		element_put(format, elements, i,
			    key_prefix_load(&prefix, records + i * RECORD_NBYTES), i);
	reference_sort_elements(elements, format->element_nbytes, n);
	return elements;
}

static void check_element_format(const struct layout *layout, const struct element_format *format,
				 const unsigned char *records, uint64_t n)
{
	const struct slice slices[] = { { records, n / 3 },
					{ records + n / 3 * RECORD_NBYTES, n - n / 3 } };
	const size_t sort_nbytes = cpu_sort_scratch_nbytes(n, 16);
	uint32_t *expected = sort_by_reference(layout, records, n);
	void *elements = make_elements(layout, format, records, n);
	uint128_t *buffer = guarded_alloc(n * sizeof *buffer);
	void *sort_scratch = guarded_alloc(sort_nbytes);
	void *scratch = guarded_alloc(tie_break_scratch_nbytes(n));
	struct item_lookup_entry entries[2];
	uint32_t buckets[8];
	struct item_lookup items;

	item_lookup_init(slices, 2, RECORD_NBYTES, entries, buckets, &items);
	assert_true(cpu_break_ties(&(struct tie_break_op){ .keys = &layout->item_keys,
							   .items = &items,
							   .format = format,
							   .elements = elements,
							   .n = n,
							   .wide_buffer = buffer,
							   .wide_buffer_n = n,
							   .sort_scratch = sort_scratch,
							   .scratch = scratch }));
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(element_number(format, elements, i), expected[i]);
	guarded_free(elements, n * format->element_nbytes);
	guarded_free(expected, n * sizeof *expected);
	guarded_free(buffer, n * sizeof *buffer);
	guarded_free(sort_scratch, sort_nbytes);
	guarded_free(scratch, tie_break_scratch_nbytes(n));
}

static void check_layout(struct layout layout, const unsigned char *records, uint64_t n)
{
	static const struct element_format narrow = { .element_nbytes = 8, .number_bits = 13 };
	const struct element_format wide = element_format_default(&layout);

	check_element_format(&layout, &narrow, records, n);
	check_element_format(&layout, &wide, records, n);
	layout_free(&layout);
}

static void check(const unsigned char *records, uint64_t n)
{
	const struct layout_params request = { .record_nbytes = RECORD_NBYTES };

	check_layout(make_layout_of_keys(request, KEYS("0:b100")), records, n);
	check_layout(make_layout_of_keys(request, KEYS("0:b99:r")), records, n);
	check_layout(make_layout_of_keys(request, KEYS("0:b13", "13:u64", "3:b90:r")), records, n);
	check_layout(make_layout_of_keys(request, KEYS("0:u128", "20:i64be:r", "16:f32", "30:b70")),
		     records, n);
}

/* n records that are all the same; guarded, to be filled with differences. */
static unsigned char *equal_records(uint64_t n)
{
	unsigned char *records = guarded_alloc(n * RECORD_NBYTES);

	return memset(records, 0x55, n * RECORD_NBYTES);
}

/* Lengths around those of groups that are sorted in another way. */
static const uint64_t lengths[] = { 0, 1, 2, 3, 15, 16, 17, 18, 33, 300 };
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static void equal_keys_stay_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_LENGTHS; i++) {
		unsigned char *records = equal_records(lengths[i]);

		check(records, lengths[i]);
		guarded_free(records, lengths[i] * RECORD_NBYTES);
	}
}

/* One group is everything, and is told apart by one byte, wherever it is. */
static void any_byte_of_the_key_decides(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_LENGTHS; i++)
		for (unsigned at = 0; at < RECORD_NBYTES; at += i == N_LENGTHS - 1 ? 7 : 1) {
			unsigned char *records = equal_records(lengths[i]);

			for (uint64_t j = 0; j < lengths[i]; j++)
				records[j * RECORD_NBYTES + at] =
					(unsigned char)random_number(at, j);
			check(records, lengths[i]);
			guarded_free(records, lengths[i] * RECORD_NBYTES);
		}
}

static void keys_with_sixteen_bytes_in_common_are_sorted(void **state)
{
	enum { N = 1000 };
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	(void)state;
	for (unsigned i = 0; i < N; i++)
		memset(records + i * RECORD_NBYTES, 7, 16);
	check(records, N);
	guarded_free(records, N * RECORD_NBYTES);
}

/* Half of the records in each; and one of them alone in one. */
static void two_groups_are_sorted(void **state)
{
	enum { N = 500 };

	(void)state;
	for (unsigned n_first = 1; n_first <= N / 2; n_first *= 2) {
		unsigned char *records = equal_records(N);

		for (unsigned i = 0; i < N; i++) {
			records[i * RECORD_NBYTES] = i * n_first % N < n_first;
			records[i * RECORD_NBYTES + 90] = (unsigned char)random_number(2, i);
		}
		check(records, N);
		guarded_free(records, N * RECORD_NBYTES);
	}
}

/* Every round splits a group in two, until the key ends. */
static void groups_within_groups_are_sorted(void **state)
{
	enum { N = 4000 };
	unsigned char *records = equal_records(N);

	(void)state;
	for (unsigned i = 0; i < N; i++)
		for (unsigned at = 3; at < RECORD_NBYTES; at += 8)
			records[i * RECORD_NBYTES + at] = random_number(i, at) & 1;
	check(records, N);
	guarded_free(records, N * RECORD_NBYTES);
}

/* Nothing is written behind the room; the caller starts again with wide elements. */
static void group_beyond_buffer_is_refused(void **state)
{
	static const struct element_format narrow = { .element_nbytes = 8, .number_bits = 13 };
	enum { N = 100 };
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS("0:b9"));
	unsigned char *records = equal_records(N);
	void *elements = make_elements(&layout, &narrow, records, N);
	uint128_t *buffer = guarded_alloc((N - 1) * sizeof *buffer);
	void *scratch = guarded_alloc(tie_break_scratch_nbytes(N));
	struct item_lookup_entry entry;
	uint32_t buckets[3];
	struct item_lookup items;

	(void)state;
	item_lookup_init(&(struct slice){ records, N }, 1, RECORD_NBYTES, &entry, buckets, &items);
	assert_false(cpu_break_ties(&(struct tie_break_op){ .keys = &layout.item_keys,
							    .items = &items,
							    .format = &narrow,
							    .elements = elements,
							    .n = N,
							    .wide_buffer = buffer,
							    .wide_buffer_n = N - 1,
							    .scratch = scratch }));
	guarded_free(elements, N * narrow.element_nbytes);
	guarded_free(buffer, (N - 1) * sizeof *buffer);
	guarded_free(scratch, tie_break_scratch_nbytes(N));
	guarded_free(records, N * RECORD_NBYTES);
	layout_free(&layout);
}

/* A staircase: the i-th record differs from the next ones at byte i / 40 and nowhere before. */
static void every_round_may_take_away_a_few_only(void **state)
{
	enum { N = 40 * RECORD_NBYTES };
	unsigned char *records = equal_records(N);

	(void)state;
	for (unsigned i = 0; i < N; i++)
		records[i * RECORD_NBYTES + i * 7919 % N / 40] = (unsigned char)i;
	check(records, N);
	guarded_free(records, N * RECORD_NBYTES);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(equal_keys_stay_in_order),
	cmocka_unit_test(any_byte_of_the_key_decides),
	cmocka_unit_test(keys_with_sixteen_bytes_in_common_are_sorted),
	cmocka_unit_test(two_groups_are_sorted),
	cmocka_unit_test(groups_within_groups_are_sorted),
	cmocka_unit_test(group_beyond_buffer_is_refused),
	cmocka_unit_test(every_round_may_take_away_a_few_only),
};

UNIT_TESTS(cpu_tie_break, tests, NULL, NULL)
