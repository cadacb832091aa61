/*
 * test_key_batch.c - key_batch_encode() and key_batch_decode() follow the definition, for keys in
 * any order
 */
#include "src/record/key_batch.h"

#include "tests/support/unit_test.h"

#include "src/record/layout.h"
#include "tests/support/elements.h"
#include "tests/support/key_lists.h"
#include "tests/support/decode_key.h"

/* Lengths around the blocks of key_batch_encode(). */
static const uint64_t lengths[] = { 0, 1, 2, 3, 7, 8, 9, 100, 255, 256, 257, 511, 512, 513, 1000 };
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static unsigned char *make_records(const struct layout *layout, uint64_t n, enum gen_dist dist)
{
	unsigned char *records = guarded_alloc(n * layout->record_nbytes);
	struct gen gen;

	gen_init(layout, dist, n, n, &gen);
	gen_fill(&gen.set, 0, n, records);
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
	key_batch_encode(layout, records, n, elements, &digest);
	assert_encoded(layout, records, elements, n);
	assert_true(digest_equal(digest, expected));

	/* Again without a digest, from the end of the same memory. */
	memcpy(elements + elements_nbytes - records_nbytes, records, records_nbytes);
	key_batch_encode(layout, elements + elements_nbytes - records_nbytes, n, elements, NULL);
	assert_encoded(layout, records, elements, n);
	guarded_free(records, records_nbytes);
	guarded_free(elements, elements_nbytes);
}

static void check_decode(const struct layout *layout, uint64_t n)
{
	const size_t records_nbytes = n * layout->record_nbytes;
	const size_t elements_nbytes = n * layout->element_nbytes;
	unsigned char *expected = make_records(layout, n, GEN_RANDOM);
	unsigned char *elements = guarded_alloc(elements_nbytes);
	unsigned char *records = guarded_alloc(records_nbytes);
	struct decode_result result;

	key_batch_encode(layout, expected, n, elements, NULL);
	key_batch_decode(layout, elements, n, false, records, &result);
	assert_memory_equal(records, expected, records_nbytes);
	assert_true(digest_equal(result.digest, reference_digest(layout, expected, n)));

	/* Again in place. */
	key_batch_decode(layout, elements, n, false, elements, &result);
	assert_memory_equal(elements, expected, records_nbytes);
	assert_true(digest_equal(result.digest, reference_digest(layout, expected, n)));
	guarded_free(expected, records_nbytes);
	guarded_free(elements, elements_nbytes);
	guarded_free(records, records_nbytes);
}

/* Check a layout against the definition of its normalised key (normalised_key.h). */
static void check_definition(const char *list, bool reversed)
{
	struct layout layout;
	unsigned char record[16], decoded[16];

	assert_int_equal(key_list_layout(list, reversed, &layout), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		const encoded_key_t key_bits = 8 * layout.record_nbytes;
		encoded_key_t code;

		for (unsigned j = 0; j < layout.record_nbytes; j++)
			record[j] = (unsigned char)(digest_mix64(16 * i + j) >> 56);
		code = layout_encode(&layout, record);
		assert_true(code ==
			    layout_key_prefix(&layout.record_keys, record) >> (128 - key_bits));
		layout_decode(&layout, code, decoded);
		assert_memory_equal(decoded, record, layout.record_nbytes);
	}
	layout_free(&layout);
}

TEST(multi_key_encoding_is_normalised_key)
{
	for (unsigned i = 0; i < 2 * N_COVERING_LISTS; i++)
		check_definition(covering_lists[i / 2], i % 2);
}

/* Make a list of keys of random order, size, type and direction. */
static void pick_list(uint64_t seed, char list[static 256])
{
	unsigned starts[16], n = 0, used = 0;
	size_t at = 0;

	for (unsigned begin = 0; begin < 1 + seed % 16; n++) {
		starts[n] = begin;
		begin += 1 + digest_mix64(seed + 1000 * n) % (1 + seed % 16 - begin);
	}
	starts[n] = 1 + seed % 16;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t random = digest_mix64(seed * 64 + i);
		unsigned k = random % n, nbytes;

		while (used >> k & 1)
			k = (k + 1) % n;
		used |= 1u << k;
		nbytes = starts[k + 1] - starts[k];
		at += (size_t)sprintf(list + at, "%s%u:%s%u%s%s", i ? " " : "", starts[k],
				      (nbytes == 4 || nbytes == 8) && random >> 20 & 1 ? "f" :
				      random >> 21 & 1                                 ? "i" :
											 "u",
				      8 * nbytes, random >> 22 & 1 ? "be" : "",
				      random >> 23 & 1 ? ":r" : "");
	}
}

TEST(any_key_order_can_be_encoded)
{
	char list[256];

	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct layout layout;

		pick_list(seed, list);
		assert_int_equal(key_list_layout(list, false, &layout), 0);
		assert_true(layout_is_key_only(&layout));
		check_encode(&layout, lengths[seed % N_LENGTHS]);
		check_decode(&layout, lengths[seed % N_LENGTHS]);
		layout_free(&layout);
		check_definition(list, false);
	}
}
