/*
 * order_check.c - are consecutive records in order, and what is their digest?
 *
 * Key-only records are encoded in batches that stay in the first-level cache, and neighbours are
 * compared without a branch. Only a batch that has a disorder is searched for it. Other records are
 * compared where they are, and hashed while they are in the cache.
 */
#include "src/check/order_check.h"

#include <string.h>

#include "src/record/key_batch.h"
#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"

/* --- Key-only records --- */

enum { BATCH_RECORDS = 512 };

/* Elements of consecutive records; the first one is that before the batch. */
union key_batch {
	uint32_t c4[1 + BATCH_RECORDS];
	uint64_t c8[1 + BATCH_RECORDS];
	uint128_t c16[1 + BATCH_RECORDS];
};

/* Disorders and equal neighbours among the n records of a batch. */
struct neighbour_counts {
	uint64_t n_descents, n_equal;
};

#define COUNT_NEIGHBOURS(codes)                                                                    \
	for (uint64_t i = 0; i < n; i++) {                                                         \
		result.n_descents += (codes)[i + 1] < (codes)[i];                                  \
		result.n_equal += (codes)[i + 1] == (codes)[i];                                    \
	}                                                                                          \
	break

static struct neighbour_counts count_neighbours(const union key_batch *batch,
						uint32_t element_nbytes, uint64_t n)
{
	struct neighbour_counts result = { 0 };

	switch (element_nbytes) {
	case 4:
		COUNT_NEIGHBOURS(batch->c4);
	case 8:
		COUNT_NEIGHBOURS(batch->c8);
	default:
		COUNT_NEIGHBOURS(batch->c16);
	}
	return result;
}

#undef COUNT_NEIGHBOURS

/* Index in the batch of the first record that is out of order. */
static uint64_t find_disorder(const union key_batch *batch, uint32_t element_nbytes, bool strict)
{
	encoded_key_t previous = element_get(batch, element_nbytes, 0);

	for (uint64_t i = 0;; i++) {
		const encoded_key_t key = element_get(batch, element_nbytes, i + 1);

		if (key < previous || (strict && key == previous))
			return i;
		previous = key;
	}
}

/* Check the n records of a batch that begins at record `start`. */
static void check_batch(const struct order_check_params *params, const union key_batch *batch,
			uint64_t start, uint64_t n, struct order_check_result *result)
{
	const uint32_t element_nbytes = params->layout->element_nbytes;
	const struct neighbour_counts counts = count_neighbours(batch, element_nbytes, n);
	const uint64_t n_disorders = counts.n_descents + (params->strict ? counts.n_equal : 0);

	if (n_disorders && !result->n_disorders)
		result->first_disorder =
			start + find_disorder(batch, element_nbytes, params->strict);
	result->n_disorders += n_disorders;
	result->n_equal += counts.n_equal;
}

static void check_encoded_keys(const struct order_check_params *params,
			       struct order_check_result *result)
{
	const struct layout *layout = params->layout;
	const unsigned char *records = params->records;
	union key_batch batch;
	char *encoded_keys = (char *)&batch;
	uint64_t i = params->previous ? 0 : 1;

	key_batch_encode(layout, params->previous ? params->previous : records, 1, encoded_keys,
			 params->previous ? NULL : &result->digest);
	while (i < params->n) {
		const uint64_t n = params->n - i < BATCH_RECORDS ? params->n - i : BATCH_RECORDS;

		key_batch_encode(layout, records + i * layout->record_nbytes, n,
				 encoded_keys + layout->element_nbytes, &result->digest);
		check_batch(params, &batch, i, n, result);
		memcpy(encoded_keys, encoded_keys + n * layout->element_nbytes,
		       layout->element_nbytes);
		i += n;
	}
}

/* --- Other records --- */

/* What is looked at of a record. */
struct record_view {
	const struct key_fields *keys;
	struct key_prefix prefix;
	uint64_t nbytes;                   /* size of a record */
	uint64_t body_offset, body_nbytes; /* the part that is digested */
};

static void record_view_init(const struct layout *layout, bool are_items,
			     struct record_view *ret_view)
{
	*ret_view = (struct record_view){
		.keys = are_items ? &layout->item_keys : &layout->record_keys,
		.nbytes = order_record_nbytes(layout, are_items),
		.body_offset = are_items ? layout->body_offset : 0,
		.body_nbytes = are_items ? layout->body_nbytes : layout->record_nbytes,
	};
	key_prefix_make(ret_view->keys, ret_view->nbytes, &ret_view->prefix);
}

/* A record and the beginning of its key, which is made once and compared twice. */
struct keyed_record {
	const unsigned char *record;
	uint128_t prefix;
};

static struct keyed_record load_keyed_record(const struct record_view *view,
					     const unsigned char *record)
{
	return (struct keyed_record){ record, key_prefix_load(&view->prefix, record) };
}

static int compare_key_tails(const struct key_fields *keys, const unsigned char *a,
			     const unsigned char *b)
{
	const struct key_field *field = keys->fields;
	const uint32_t offset = field->offset + KEY_PREFIX_NBYTES;
	int order;

	if (!key_tail_is_bytes(keys))
		return key_tail_compare(keys, KEY_PREFIX_NBYTES, a, b);
	order = memcmp(a + offset, b + offset, field->nbytes - KEY_PREFIX_NBYTES);
	return field->descending ? -order : order;
}

static int compare_keyed_records(const struct record_view *view, const struct keyed_record *a,
				 const struct keyed_record *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return view->keys->key_nbytes > KEY_PREFIX_NBYTES ?
		       compare_key_tails(view->keys, a->record, b->record) :
		       0;
}

static void check_records(const struct order_check_params *params,
			  struct order_check_result *result)
{
	const unsigned char *records = params->records;
	struct keyed_record previous = { 0 };
	struct record_view view;

	record_view_init(params->layout, params->are_items, &view);
	if (params->previous)
		previous = load_keyed_record(&view, params->previous);
	for (uint64_t i = 0; i < params->n; i++) {
		const struct keyed_record next =
			load_keyed_record(&view, records + i * view.nbytes);
		const int order = previous.record ? compare_keyed_records(&view, &previous, &next) :
						    -1;

		result->digest.sum += hash_bytes(next.record + view.body_offset, view.body_nbytes);
		result->n_equal += order == 0;
		if (order > 0 || (order == 0 && params->strict)) {
			if (!result->n_disorders++)
				result->first_disorder = i;
		}
		previous = next;
	}
	result->digest.n_records += params->n;
}

static uint64_t sum_counts(const struct order_check_params *params)
{
	const unsigned char *items = params->records;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < params->n; i++)
		sum += layout_item_count(params->layout, items + i * params->layout->item_nbytes);
	return sum;
}

void order_check(const struct order_check_params *params, struct order_check_result *ret_result)
{
	struct order_check_result result = { .first_disorder = params->n, .counts_sum = params->n };

	if (!layout_is_key_only(params->layout))
		check_records(params, &result);
	else if (params->n)
		check_encoded_keys(params, &result);
	if (params->are_items && params->layout->projection.has_count)
		result.counts_sum = sum_counts(params);
	*ret_result = result;
}
