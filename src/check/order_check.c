/*
 * order_check - are consecutive records in order, and what do they hold? (see order_check.h)
 *
 * Plain keys are encoded in batches that stay in the first-level cache, and neighbours are compared
 * as codes without a branch; only a batch that has a disorder is looked at again to find where.
 * Other records are compared where they are, and hashed while they are in the cache for that.
 */
#include "src/check/order_check.h"

#include <string.h>

#include "src/record/key_encode.h"
#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"
#include "src/record/key_tail.h"

/* --- Codes --- */

enum { BATCH_RECORDS = 512 };

/* Codes of consecutive records; the first is the one before the batch. */
union batch {
	uint32_t c4[1 + BATCH_RECORDS];
	uint64_t c8[1 + BATCH_RECORDS];
	uint128_t c16[1 + BATCH_RECORDS];
};

/* Descents and equal neighbours among the n records of a batch. */
struct neighbours {
	uint64_t n_descents, n_equal;
};

#define COUNT_NEIGHBOURS(codes)                                                                    \
	for (uint64_t i = 0; i < n; i++) {                                                         \
		found.n_descents += (codes)[i + 1] < (codes)[i];                                   \
		found.n_equal += (codes)[i + 1] == (codes)[i];                                     \
	}                                                                                          \
	break

static struct neighbours count_neighbours(const union batch *batch, uint32_t element_nbytes,
					  uint64_t n)
{
	struct neighbours found = { 0 };

	switch (element_nbytes) {
	case 4:
		COUNT_NEIGHBOURS(batch->c4);
	case 8:
		COUNT_NEIGHBOURS(batch->c8);
	default:
		COUNT_NEIGHBOURS(batch->c16);
	}
	return found;
}

#undef COUNT_NEIGHBOURS

/* The first record of the batch, from 0, that is not in order with the one before it. */
static uint64_t find_disorder(const union batch *batch, uint32_t element_nbytes, bool strict)
{
	code_t previous = element_get(batch, element_nbytes, 0);

	for (uint64_t i = 0;; i++) {
		const code_t code = element_get(batch, element_nbytes, i + 1);

		if (code < previous || (strict && code == previous))
			return i;
		previous = code;
	}
}

/* The n records of a batch, which begins at record `start`. */
static void check_batch(const struct order_op *op, const union batch *batch, uint64_t start,
			uint64_t n, struct order_found *found)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	const struct neighbours neighbours = count_neighbours(batch, element_nbytes, n);
	const uint64_t n_disorders = neighbours.n_descents + (op->strict ? neighbours.n_equal : 0);

	if (n_disorders && !found->n_disorders)
		found->first_disorder = start + find_disorder(batch, element_nbytes, op->strict);
	found->n_disorders += n_disorders;
	found->n_equal += neighbours.n_equal;
}

static void check_codes(const struct order_op *op, struct order_found *found)
{
	const struct layout *layout = op->layout;
	const unsigned char *records = op->records;
	union batch batch;
	char *codes = (char *)&batch;
	uint64_t i = op->previous ? 0 : 1;

	codes_encode(layout, op->previous ? op->previous : records, 1, codes,
		     op->previous ? NULL : &found->digest);
	while (i < op->n) {
		const uint64_t n = op->n - i < BATCH_RECORDS ? op->n - i : BATCH_RECORDS;

		codes_encode(layout, records + i * layout->record_nbytes, n,
			     codes + layout->element_nbytes, &found->digest);
		check_batch(op, &batch, i, n, found);
		memcpy(codes, codes + n * layout->element_nbytes, layout->element_nbytes);
		i += n;
	}
}

/* --- Records --- */

/* What of a record is looked at. */
struct view {
	const struct key_fields *keys;
	struct key_prefix prefix;
	uint64_t nbytes;                   /* of a record */
	uint64_t body_offset, body_nbytes; /* what of it is digested */
};

static void make_view(const struct layout *layout, bool are_items, struct view *ret_view)
{
	*ret_view = (struct view){
		.keys = are_items ? &layout->item_keys : &layout->record_keys,
		.nbytes = order_record_nbytes(layout, are_items),
		.body_offset = are_items ? layout->body_offset : 0,
		.body_nbytes = are_items ? layout->body_nbytes : layout->record_nbytes,
	};
	key_prefix_make(ret_view->keys, ret_view->nbytes, &ret_view->prefix);
}

/* A record and the beginning of its key, which is made once and compared twice. */
struct keyed {
	const unsigned char *record;
	uint128_t prefix;
};

static struct keyed make_keyed(const struct view *view, const unsigned char *record)
{
	return (struct keyed){ record, key_prefix_load(&view->prefix, record) };
}

static int compare_rest(const struct key_fields *keys, const unsigned char *a,
			const unsigned char *b)
{
	const struct key_field *field = keys->fields;
	const uint32_t at = field->offset + KEY_PREFIX_NBYTES;
	int order;

	if (!key_rest_is_bytes(keys))
		return key_rest_compare(keys, KEY_PREFIX_NBYTES, a, b);
	order = memcmp(a + at, b + at, field->nbytes - KEY_PREFIX_NBYTES);
	return field->descending ? -order : order;
}

static int compare(const struct view *view, const struct keyed *a, const struct keyed *b)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return view->keys->key_nbytes > KEY_PREFIX_NBYTES ?
		       compare_rest(view->keys, a->record, b->record) :
		       0;
}

static void check_records(const struct order_op *op, struct order_found *found)
{
	const unsigned char *records = op->records;
	struct keyed previous = { 0 };
	struct view view;

	make_view(op->layout, op->are_items, &view);
	if (op->previous)
		previous = make_keyed(&view, op->previous);
	for (uint64_t i = 0; i < op->n; i++) {
		const struct keyed next = make_keyed(&view, records + i * view.nbytes);
		const int order = previous.record ? compare(&view, &previous, &next) : -1;

		found->digest.sum += hash_bytes(next.record + view.body_offset, view.body_nbytes);
		found->n_equal += order == 0;
		if (order > 0 || (order == 0 && op->strict)) {
			if (!found->n_disorders++)
				found->first_disorder = i;
		}
		previous = next;
	}
	found->digest.n_records += op->n;
}

static uint64_t sum_counts(const struct order_op *op)
{
	const unsigned char *items = op->records;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < op->n; i++)
		sum += layout_item_count(op->layout, items + i * op->layout->item_nbytes);
	return sum;
}

void order_check(const struct order_op *op, struct order_found *ret_found)
{
	struct order_found found = { .first_disorder = op->n, .n_counted = op->n };

	if (!layout_is_plain(op->layout))
		check_records(op, &found);
	else if (op->n)
		check_codes(op, &found);
	if (op->are_items && op->layout->intake.has_count)
		found.n_counted = sum_counts(op);
	*ret_found = found;
}
