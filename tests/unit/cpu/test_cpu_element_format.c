/*
 * test_cpu_element_format - which elements are chosen for which keys
 */
#include "src/device/cpu/element_format.h"

#include <stdlib.h>

#include "src/base/cancellation.h"
#include "src/device/cpu/cpu_ops.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

enum { N = 5000, RECORD_NBYTES = 20, NUMBER_BITS = 13 };

/* The form for N records with a key. */
static struct element_format format_of(const unsigned char *records, const char *key)
{
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS(key));
	struct element_sample sample;
	struct key_prefix prefix;
	struct element_format format;

	key_prefix_make(&layout.item_keys, RECORD_NBYTES, &prefix);
	element_sample_collect(&prefix, records, N, &sample);
	format = element_format_choose(&layout, &sample, element_sample_common_bits(&sample), N);
	layout_free(&layout);
	return format;
}

TEST(keys_that_differ_early_get_narrow_elements)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);
	const struct element_format format = format_of(records, "0:b20");

	assert_int_equal(format.element_nbytes, 8);
	assert_int_equal(format.number_bits, NUMBER_BITS);
	assert_int_equal(format.skipped_bits, 0);
	guarded_free(records, N * RECORD_NBYTES);
}

TEST(common_key_prefix_is_skipped)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);
	struct element_format format;

	for (unsigned i = 0; i < N; i++)
		memset(records + i * RECORD_NBYTES, 7, 5);
	format = format_of(records, "0:b20");
	assert_int_equal(format.element_nbytes, 8);
	assert_int_equal(format.skipped_bits, 40);
	assert_int_equal(element_format_tied_nbytes(&format), (40 + 64 - NUMBER_BITS) / 8);
	guarded_free(records, N * RECORD_NBYTES);
}

TEST(keys_with_equals_get_wide_elements)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		memset(records + i * RECORD_NBYTES, (int)random_number(2, i) & 63, 8);
	assert_int_equal(format_of(records, "0:b20").element_nbytes, 16);
	guarded_free(records, N * RECORD_NBYTES);
}

TEST(short_keys_with_equals_get_narrow_elements)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		memset(records + i * RECORD_NBYTES, (int)random_number(2, i) & 63, 8);
	assert_int_equal(format_of(records, "0:b6").element_nbytes, 8);
	guarded_free(records, N * RECORD_NBYTES);
}

/* The first of N records by all of their bytes, as many as `limit` says. */
static unsigned char *sort_first(const unsigned char *records, uint64_t limit)
{
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS("0:b20"));
	const size_t scratch_nbytes = cpu_records_scratch_nbytes(&layout, 0, N);
	void *scratch = guarded_alloc(scratch_nbytes);
	unsigned char *items = guarded_alloc(N * RECORD_NBYTES);
	struct sort_op_result result;
	struct digest read;

	cpu_sort_records(&(struct sort_op){ .layout = &layout,
					    .records = records,
					    .items = items,
					    .n = N,
					    .limit = limit,
					    .scratch = scratch,
					    .ret_input_digest = &read,
					    .ret = &result },
			 NULL);
	assert_int_equal(result.n, limit < N ? limit : N);
	digest_add(&result.digest, result.dropped);
	assert_true(digest_equal(read, result.digest));
	guarded_free(scratch, scratch_nbytes);
	layout_free(&layout);
	return items;
}

/* Sort the records; are they in order, and do as many as are wanted come first? */
static void assert_sorted(const unsigned char *records)
{
	enum { LIMIT = N / 10 }; /* little enough for the rest to be left unsorted */
	unsigned char *all = sort_first(records, UINT64_MAX), *first = sort_first(records, LIMIT);

	for (unsigned i = 1; i < N; i++)
		assert_true(memcmp(all + (i - 1) * RECORD_NBYTES, all + i * RECORD_NBYTES,
				   RECORD_NBYTES) <= 0);
	assert_memory_equal(first, all, LIMIT * RECORD_NBYTES);
	guarded_free(all, N * RECORD_NBYTES);
	guarded_free(first, N * RECORD_NBYTES);
}

/* Ties and numbers are undefined after a cancelled sort: nothing may follow them. */
TEST(cancelled_sort_gathers_nothing)
{
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS("0:b20"));
	const size_t scratch_nbytes = cpu_records_scratch_nbytes(&layout, 0, N);
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);
	void *scratch = guarded_alloc(scratch_nbytes);
	unsigned char *items = guarded_alloc(N * RECORD_NBYTES);
	struct cancellation cancellation;
	struct digest read;

	cancellation_init(&cancellation);
	cancellation_request(&cancellation);
	memset(items, 0x5a, N * RECORD_NBYTES);
	cpu_sort_records(&(struct sort_op){ .layout = &layout,
					    .records = records,
					    .items = items,
					    .n = N,
					    .limit = UINT64_MAX,
					    .scratch = scratch,
					    .ret_input_digest = &read },
			 &cancellation);
	for (unsigned i = 0; i < N * RECORD_NBYTES; i++)
		assert_int_equal(items[i], 0x5a);
	cancellation_destroy(&cancellation);
	guarded_free(items, N * RECORD_NBYTES);
	guarded_free(scratch, scratch_nbytes);
	guarded_free(records, N * RECORD_NBYTES);
	layout_free(&layout);
}

/* Is the i-th of N records one that element_sample_collect() looks at? */
static bool is_sampled(uint64_t i)
{
	for (uint64_t j = 0; j < ELEMENT_SAMPLE_N; j++)
		if (j * N / ELEMENT_SAMPLE_N == i)
			return true;
	return false;
}

/* The records that are looked at begin with what the others do not begin with. */
TEST(a_sample_may_promise_too_much_in_common)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		if (is_sampled(i))
			memset(records + i * RECORD_NBYTES, 7, 6);
	assert_sorted(records);
	guarded_free(records, N * RECORD_NBYTES);
}

/* The records that are looked at differ, and all others tie. */
TEST(a_sample_may_promise_too_few_ties)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		if (!is_sampled(i))
			memset(records + i * RECORD_NBYTES, 7, 15);
	assert_sorted(records);
	guarded_free(records, N * RECORD_NBYTES);
}

/* The limit is found in a sample, whose records are the smallest. */
TEST(a_sample_may_promise_too_many_small_keys)
{
	enum { STRIDE = N / 256 };
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		records[i * RECORD_NBYTES] = i % STRIDE == 0 ? 0 : records[i * RECORD_NBYTES] | 1;
	assert_sorted(records);
	guarded_free(records, N * RECORD_NBYTES);
}

static int compare_records(const void *a, const void *b)
{
	return memcmp(a, b, RECORD_NBYTES);
}

/*
 * Sort N records in slices that begin at the records that are looked at, and merge the slices; are
 * they in order?
 */
static void assert_slices_are_merged(unsigned char *records)
{
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS("0:b20"));
	const size_t scratch_nbytes = cpu_records_scratch_nbytes(&layout, ELEMENT_SAMPLE_N, N);
	void *scratch = guarded_alloc(scratch_nbytes);
	unsigned char *merged = guarded_alloc(N * RECORD_NBYTES);
	struct slice slices[ELEMENT_SAMPLE_N];
	struct sort_op_result result;

	for (uint64_t i = 0; i < ELEMENT_SAMPLE_N; i++) {
		const uint64_t begin = i * N / ELEMENT_SAMPLE_N;
		const uint64_t end = (i + 1) * N / ELEMENT_SAMPLE_N;

		slices[i] = (struct slice){ records + begin * RECORD_NBYTES, end - begin };
		qsort(records + begin * RECORD_NBYTES, end - begin, RECORD_NBYTES, compare_records);
	}
	cpu_merge_records(&(struct merge_op){ .layout = &layout,
					      .slices = slices,
					      .k = ELEMENT_SAMPLE_N,
					      .out = merged,
					      .limit = UINT64_MAX,
					      .scratch = scratch,
					      .ret = &result });
	assert_int_equal(result.n, N);
	assert_int_equal(result.n_disorders, 0);
	qsort(records, N, RECORD_NBYTES, compare_records);
	assert_memory_equal(merged, records, N * RECORD_NBYTES);
	guarded_free(merged, N * RECORD_NBYTES);
	guarded_free(scratch, scratch_nbytes);
	layout_free(&layout);
}

/* The first records of all slices differ, and all others tie. */
TEST(a_sample_of_slices_may_promise_too_few_ties)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	for (unsigned i = 0; i < N; i++)
		if (is_sampled(i))
			records[(size_t)i * RECORD_NBYTES] = 0;
		else
			memset(records + (size_t)i * RECORD_NBYTES, 7, 15);
	assert_slices_are_merged(records);
	guarded_free(records, N * RECORD_NBYTES);
}

TEST(slices_of_any_keys_are_merged)
{
	unsigned char *records = make_random_bytes(N * RECORD_NBYTES, 1);

	assert_slices_are_merged(records);
	for (unsigned i = 0; i < N; i++)
		memset(records + (size_t)i * RECORD_NBYTES, 7, 7);
	assert_slices_are_merged(records);
	for (unsigned i = 0; i < N; i++)
		memset(records + (size_t)i * RECORD_NBYTES, (int)random_number(2, i) & 63, 8);
	assert_slices_are_merged(records);
	guarded_free(records, N * RECORD_NBYTES);
}
