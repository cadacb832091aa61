/*
 * test_cpu_tie_break - a group of equal keys that is too large for the buffer
 *
 * tests/backend/check_backend compares the order of ties with a sort by whole keys.
 */
#include "src/device/cpu/cpu_ops.h"
#include "src/record/key_prefix.h"
#include "tests/support/elements.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

/* Nothing is written beyond the buffer; the caller starts again with wide elements. */
TEST(group_beyond_buffer_is_refused)
{
	static const struct element_format narrow = { .element_nbytes = 8, .number_bits = 13 };
	enum { N = 100, RECORD_NBYTES = 100 };
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = RECORD_NBYTES }, KEYS("0:b9"));
	unsigned char *records = guarded_alloc(N * RECORD_NBYTES);
	void *elements = guarded_alloc(N * narrow.element_nbytes);
	uint128_t *buffer = guarded_alloc((N - 1) * sizeof *buffer);
	void *scratch = guarded_alloc(tie_break_scratch_nbytes(N));
	struct item_lookup_entry entry;
	uint32_t buckets[3];
	struct item_lookup items;

	memset(records, 0, N * RECORD_NBYTES);
	for (uint32_t i = 0; i < N; i++)
		element_put(&narrow, elements, i, 0, i);
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
