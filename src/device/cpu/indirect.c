/*
 * indirect - encode records as elements that refer to them, and decode these (see indirect.h)
 *
 * Elements are those of record_sort.h, and are made and gathered in the same way. But their numbers
 * count all records of the sort, not those of a chunk.
 *
 * A record may change between the time when its element was made and the time when it is gathered,
 * and even between two loads, because another process may overwrite the file. So the digest, the
 * order and the edges are computed from the written copies, and a record is never read twice. The
 * key in an element and the digest of the input may then belong to different versions of a record,
 * and differ. But whatever is written is in the order of its own keys, equal keys in the order of
 * their numbers, and is what was digested; otherwise the sort fails.
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

/* Return the element of the record that was written for element i. */
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

	assert(!op->strict); /* indirect layouts never drop records */
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
