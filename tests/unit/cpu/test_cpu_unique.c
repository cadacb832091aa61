/*
 * test_cpu_unique - the first of equal elements is kept, for every type
 */
#include "src/device/cpu/cpu_ops.h"

#include "tests/support/unit_test.h"

#include "src/record/key_batch.h"
#include "tests/support/plain_layouts.h"

static void check_unique(const struct layout *layout, uint64_t n)
{
	const size_t nbytes = n * layout->element_nbytes;
	unsigned char *records = make_records(layout, n, n % 2 ? GEN_EQUAL : GEN_HUNDRED_KEYS);
	unsigned char *elements = guarded_alloc(nbytes);
	unsigned char *expected, record[16];
	struct digest dropped, expected_dropped = { 0 };
	uint64_t n_left, n_expected = 0;

	key_batch_encode(layout, records, n, elements, NULL);
	reference_sort_elements(elements, layout->element_nbytes, n);
	expected = guarded_copy(elements, nbytes);
	for (uint64_t i = 0; i < n; i++) {
		const encoded_key_t code = element_get(elements, layout->element_nbytes, i);

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
	for_each_key_only_layout(check_unique);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(unique_keeps_one_of_each_and_digests_the_others),
};

UNIT_TESTS(cpu_unique, tests, NULL, NULL)
