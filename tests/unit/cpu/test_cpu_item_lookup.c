/*
 * test_cpu_item_lookup - numbers through slices
 */
#include "src/device/cpu/gather.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

enum { ITEM_NBYTES = 3, MAX_TEST_SLICES = 100 };

/* Slices of n items each; the pointers are made up, and never followed. */
static void check(const uint64_t *n, uint32_t k)
{
	struct item_lookup_entry *entries =
		guarded_alloc(k * sizeof *entries);
	uint32_t *buckets = guarded_alloc(item_lookup_n_buckets(k) * sizeof *buckets);
	struct slice slices[MAX_TEST_SLICES];
	struct item_lookup lookup;
	uint64_t number = 0;

	for (uint32_t i = 0; i < k; i++)
		slices[i] = (struct slice){ (const void *)((i + 1) * UINT64_C(1) << 32), n[i] };
	item_lookup_init(slices, k, ITEM_NBYTES, entries, buckets, &lookup);
	for (uint32_t i = 0; i < k; i++)
		for (uint64_t j = 0; j < n[i]; j++)
			assert_ptr_equal(item_lookup_get(&lookup, number++),
					 (const char *)slices[i].elements + j * ITEM_NBYTES);
	assert_int_equal(lookup.n, number);
	guarded_free(entries, k * sizeof *entries);
	guarded_free(buckets, item_lookup_n_buckets(k) * sizeof *buckets);
}

static void numbers_lead_to_the_items_of_any_slices(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		const uint32_t k = 1 + (uint32_t)(random_number(seed, 0) % MAX_TEST_SLICES);
		uint64_t n[MAX_TEST_SLICES];

		for (uint32_t i = 0; i < k; i++)
			n[i] = random_number(seed, i) % (seed % 3 ? 20 : 3);
		check(n, k);
	}
}

static void a_long_slice_may_be_among_short_ones(void **state)
{
	uint64_t n[MAX_TEST_SLICES];

	(void)state;
	for (uint32_t at = 0; at < MAX_TEST_SLICES; at++) {
		for (uint32_t i = 0; i < MAX_TEST_SLICES; i++)
			n[i] = i == at ? 10000 : 1;
		check(n, MAX_TEST_SLICES);
	}
}

static void slices_may_all_be_empty(void **state)
{
	(void)state;
	check((const uint64_t[]){ 0, 0, 0 }, 3);
	check((const uint64_t[]){ 0 }, 1);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(numbers_lead_to_the_items_of_any_slices),
	cmocka_unit_test(a_long_slice_may_be_among_short_ones),
	cmocka_unit_test(slices_may_all_be_empty),
};

UNIT_TESTS(cpu_item_lookup, tests, NULL, NULL)
