/*
 * indirect - elements that refer to records which stay where they are (see indirect.h)
 *
 * The same elements as those by which records are sorted (record_sort.h), made in the same way and
 * gathered in the same way. Only what they number is not a chunk, but all records of the sort.
 *
 * Nothing says that a record is the same when it is gathered as when its element was made, or from
 * one load to the next: somebody may be overwriting it. So all that is reported, the digest, the
 * order, the edges, is taken from the copies that are written, and never from a record again. The
 * key in an element and the digest of what was read may be of two records then, and need not agree:
 * what is written is in the order of its own keys, and of their numbers where they are equal, and
 * is all that was digested, or it is not written.
 */
#include "src/device/cpu/indirect.h"

#include <assert.h>

#include "src/device/cpu/gather.h"
#include "src/device/cpu/make_elements.h"

void cpu_encode_indirect(const struct encode_op *op)
{
	const struct element_format format = element_format_default(op->layout);

	cpu_make_elements(&(struct make_elements_op){ .layout = op->layout,
						      .format = &format,
						      .items = { op->records, op->n },
						      .first_number = op->first_number,
						      .elements = op->elements,
						      .digest = op->ret_digest });
}

/* What the i-th element would be, if it was made of the record that was written for it. */
static encoded_key_t output_element(const struct decode_op *op, const struct element_format *format,
				    uint64_t i)
{
	const struct layout *layout = op->layout;
	const unsigned char *record = op->records;
	_Alignas(uint128_t) unsigned char element[sizeof(uint128_t)];

	element_put(format, element, 0,
		    layout_key_prefix(&layout->item_keys, record + i * layout->record_nbytes),
		    element_number(format, op->elements, i));
	return element_get(element, format->element_nbytes, 0);
}

void cpu_decode_indirect(const struct decode_op *op)
{
	const struct element_format format = element_format_default(op->layout);
	struct item_lookup_entry entries[BACKEND_MAX_SOURCES];
	uint32_t buckets[2 * BACKEND_MAX_SOURCES + 1]; /* item_lookup_n_buckets() */
	struct item_lookup records;
	struct sort_op_result result;

	assert(!op->strict); /* nothing refers to records of which some are dropped */
	item_lookup_init(op->sources, op->n_sources, op->layout->record_nbytes, entries, buckets,
			 &records);
	cpu_gather(&(struct gather_op){ .layout = op->layout,
					.items = &records,
					.elements = op->elements,
					.n = op->n,
					.n_ordered = op->n,
					.format = &format,
					.out = op->records,
					.scattered = true,
					.may_change = true,
					.limit = UINT64_MAX,
					.ret = &result });
	*op->ret = (struct decode_result){ .digest = result.digest,
					   .n_disorders = result.n_disorders };
	if (op->n > 0) {
		op->ret->first = output_element(op, &format, 0);
		op->ret->last = output_element(op, &format, op->n - 1);
	}
}
