/*
 * test_cpu_gather - disorder, and items of any length; tests/backend has the rest
 */
#include "src/device/cpu/gather.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

/* Gather items 0 to n - 1 of one slice, without elements or with those of 32-bit numbers. */
static struct sort_op_result gather(const struct layout *layout, const unsigned char *items,
				    uint64_t n, const uint64_t *elements, uint64_t limit,
				    bool scattered, unsigned char *out)
{
	static const struct element_format format = { .element_nbytes = 8, .number_bits = 32 };
	struct item_lookup_entry entry;
	uint32_t buckets[3];
	struct item_lookup lookup;
	struct sort_op_result result;

	item_lookup_init(&(struct slice){ items, n }, 1, layout->item_nbytes, &entry, buckets,
			 &lookup);
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &lookup,
					.elements = elements,
					.format = &format,
					.n = n,
					.n_ordered = n,
					.out = out,
					.scattered = scattered,
					.limit = limit,
					.ret = &result });
	return result;
}

/* The records are looked at, not the elements that brought them here. */
TEST(record_disorder_is_detected)
{
	enum { N = 6 };
	static const unsigned char records[N][9] = { "0003-a..", "0001-b..", "0002-c..",
						     "0001-d..", "0003-e..", "0001-f.." };
	static const uint64_t elements[N] = { 0, 3, 5, 2, 1, 4 };
	struct layout layout =
		make_layout_of_keys((struct layout_params){ .record_nbytes = 9 }, KEYS("0:b4"));
	unsigned char out[N * 9];

	for (uint64_t limit = N - 1; limit <= N; limit++)
		for (unsigned scattered = 0; scattered < 2; scattered++)
			assert_int_equal(gather(&layout, records[0], N, elements, limit, scattered,
						out)
						 .n_disorders,
					 2);
	layout_free(&layout);
}

TEST(disorder_past_prefix_is_detected)
{
	enum { LONG_NBYTES = 50 };
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = LONG_NBYTES }, KEYS("0:b50"));

	for (unsigned at = 0; at < LONG_NBYTES; at++) {
		unsigned char items[2 * LONG_NBYTES] = { 0 }, out[2 * LONG_NBYTES];

		items[at] = 1;
		assert_int_equal(
			gather(&layout, items, 2, NULL, UINT64_MAX, false, out).n_disorders, 1);
	}
	layout_free(&layout);
}

/* Items that are copied before they are looked at are so some at a time. */
TEST(disorder_is_detected_anywhere)
{
	enum { N_ITEMS = 40, LONG_NBYTES = 1000 };
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = LONG_NBYTES }, KEYS("0:u8"));
	unsigned char *items = make_random_bytes((uint64_t)N_ITEMS * LONG_NBYTES, 1);
	unsigned char *out = guarded_alloc((size_t)N_ITEMS * LONG_NBYTES);

	for (unsigned i = 0; i < N_ITEMS; i++)
		items[i * LONG_NBYTES] = 1;
	for (unsigned i = 0; i < N_ITEMS; i++) {
		items[i * LONG_NBYTES] = 0;
		assert_int_equal(
			gather(&layout, items, N_ITEMS, NULL, UINT64_MAX, true, out).n_disorders,
			i > 0);
		items[i * LONG_NBYTES] = 1;
	}
	guarded_free(items, (size_t)N_ITEMS * LONG_NBYTES);
	guarded_free(out, (size_t)N_ITEMS * LONG_NBYTES);
	layout_free(&layout);
}

/* Items of every length, from guarded memory into guarded memory. */
TEST(items_of_any_length_are_copied)
{
	enum { N_ITEMS = 20 };

	for (uint64_t nbytes = 1; nbytes < 2000; nbytes += nbytes < 150 ? 1 : 97) {
		struct layout layout = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = nbytes, .force_records = true },
			KEYS("0:u8"));
		unsigned char *items = make_random_bytes(N_ITEMS * nbytes, nbytes);
		unsigned char *out = guarded_alloc(N_ITEMS * nbytes);
		struct sort_op_result result[2];

		for (unsigned scattered = 0; scattered < 2; scattered++) {
			result[scattered] =
				gather(&layout, items, N_ITEMS, NULL, UINT64_MAX, scattered, out);
			assert_memory_equal(out, items, N_ITEMS * nbytes);
			memset(out, 0, N_ITEMS * nbytes);
		}
		assert_memory_equal(&result[0], &result[1], sizeof result[0]);
		guarded_free(items, N_ITEMS * nbytes);
		guarded_free(out, N_ITEMS * nbytes);
		layout_free(&layout);
	}
}
