/*
 * cpu_ops.c - the operations of the CPU back end that take one pass (see cpu_ops.h)
 */
#include "src/device/cpu/cpu_ops.h"

#include <assert.h>
#include <string.h>

#include "src/device/cpu/gather.h"
#include "src/record/delta_pack.h"
#include "src/record/key_batch.h"

/* --- cut and sample --- */

/*
 * A binary search that keeps the start and the length of the range. The comparison only moves
 * `first`, which needs no branch. Half of the branches would be mispredicted.
 */
#define BOUND_DEFINE(suffix, type)                                                                 \
	/* Return the number of elements below key, or not above it if equal_before. */            \
	static uint64_t bound_##suffix(const type *elements, uint64_t n, type key,                 \
				       bool equal_before)                                          \
	{                                                                                          \
		const type *first = elements;                                                      \
                                                                                                   \
		while (n > 0) {                                                                    \
			const uint64_t half = (n + 1) / 2;                                         \
			const type element = first[half - 1];                                      \
			const bool before = (element < key) | (equal_before & (element == key));   \
                                                                                                   \
			first += before ? half : 0;                                                \
			n -= half;                                                                 \
		}                                                                                  \
		return (uint64_t)(first - elements);                                               \
	}

BOUND_DEFINE(4, uint32_t)
BOUND_DEFINE(8, uint64_t)
BOUND_DEFINE(16, uint128_t)

uint64_t cpu_cut_slice(const struct slice *slice, uint32_t element_nbytes, encoded_key_t key,
		       bool equal_before)
{
	switch (element_nbytes) {
	case 4:
		return bound_4(slice->elements, slice->n, (uint32_t)key, equal_before);
	case 8:
		return bound_8(slice->elements, slice->n, (uint64_t)key, equal_before);
	default:
		return bound_16(slice->elements, slice->n, key, equal_before);
	}
}

/*
 * Find the cut by binary search. It has a branch: memory accesses take most of the time anyway,
 * because items are far apart and their keys may be long.
 */
static uint64_t cut_items(const struct layout *layout, const struct slice *slice, const void *key,
			  bool equal_before)
{
	uint64_t first = 0, end = slice->n;

	while (first < end) {
		const uint64_t middle = first + (end - first) / 2;
		const unsigned char *item =
			(const unsigned char *)slice->elements + middle * layout->item_nbytes;

		if (key_compare_normalised(&layout->item_keys, item, key) < equal_before)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

void cpu_cut_items(const struct cut_op *op)
{
	for (uint32_t i = 0; i < op->k; i++)
		op->ret_cuts[i] = cut_items(op->layout, &op->slices[i], op->key, i < op->slice);
}

void cpu_cut_elements(const struct cut_op *op)
{
	const encoded_key_t key = layout_get_key_prefix(op->layout, op->key);

	for (uint32_t i = 0; i < op->k; i++)
		op->ret_cuts[i] = cpu_cut_slice(&op->slices[i], op->layout->element_nbytes, key,
						i < op->slice);
}

void cpu_sample_items(const struct sample_op *op)
{
	const struct layout *layout = op->layout;
	const unsigned char *items = op->items;
	encoded_key_t *key = op->ret_keys;

	for (uint64_t i = 0; i < op->n; i += op->stride)
		*key++ = layout_key_prefix(&layout->item_keys, items + i * layout->item_nbytes);
}

void cpu_sample_elements(const struct sample_op *op)
{
	encoded_key_t *key = op->ret_keys;

	for (uint64_t i = 0; i < op->n; i += op->stride)
		*key++ = element_get(op->items, op->layout->element_nbytes, i);
}

/*
 * --- unique ---
 *
 * Dropped elements are collected in a small buffer, so that the usual fast loop digests many at a
 * time.
 */

enum { DROPPED_NBYTES = 4096 };

struct dropped_buffer {
	_Alignas(16) char elements[DROPPED_NBYTES];
	uint64_t n;
	struct digest digest;
};

/* Add the digest of the collected elements, decoded to records, and empty the buffer. */
static void flush_dropped(struct dropped_buffer *dropped, const struct layout *layout)
{
	struct decode_result result;

	key_batch_decode(layout, dropped->elements, dropped->n, false, dropped->elements, &result);
	digest_add(&dropped->digest, result.digest);
	dropped->n = 0;
}

#define UNIQUE_DEFINE(suffix, type)                                                                \
	/* Drop duplicates in place; return the number of elements left. */                        \
	static uint64_t unique_##suffix(type *elements, uint64_t n, const struct layout *layout,   \
					struct dropped_buffer *dropped)                            \
	{                                                                                          \
		type *const dropped_elements = (type *)dropped->elements;                          \
		uint64_t n_kept = n > 0;                                                           \
                                                                                                   \
		for (uint64_t i = 1; i < n; i++) {                                                 \
			const type element = elements[i];                                          \
			const bool equal = element == elements[n_kept - 1];                        \
                                                                                                   \
			if (dropped->n == DROPPED_NBYTES / sizeof(type))                           \
				flush_dropped(dropped, layout);                                    \
			dropped_elements[dropped->n] = element;                                    \
			dropped->n += equal;                                                       \
			elements[n_kept] = equal ? elements[n_kept] : element;                     \
			n_kept += !equal;                                                          \
		}                                                                                  \
		return n_kept;                                                                     \
	}

UNIQUE_DEFINE(4, uint32_t)
UNIQUE_DEFINE(8, uint64_t)
UNIQUE_DEFINE(16, uint128_t)

void cpu_unique(const struct unique_elements_op *op)
{
	struct dropped_buffer dropped = { .n = 0 };

	switch (op->element_nbytes) {
	case 4:
		*op->ret_n = unique_4(op->elements, op->n, op->layout, &dropped);
		break;
	case 8:
		*op->ret_n = unique_8(op->elements, op->n, op->layout, &dropped);
		break;
	default:
		*op->ret_n = unique_16(op->elements, op->n, op->layout, &dropped);
	}
	flush_dropped(&dropped, op->layout);
	*op->ret_dropped = dropped.digest;
}

/* --- pack and unpack --- */

/* Pack a block, or copy it if it does not shrink; return its size in bytes. */
static uint32_t pack_block(const void *elements, uint32_t n, uint32_t element_nbytes, void *packed)
{
	const size_t nbytes = (size_t)n * element_nbytes;
	const size_t packed_nbytes = delta_encode(elements, n, element_nbytes, packed, nbytes - 1);

	if (packed_nbytes)
		return (uint32_t)packed_nbytes;
	memcpy(packed, elements, nbytes);
	return (uint32_t)nbytes;
}

void cpu_pack(const struct pack_op *op)
{
	const char *elements = op->elements;
	char *packed = op->packed;
	uint32_t *ret_nbytes = op->ret_nbytes;

	for (uint64_t first = 0; first < op->n; first += op->block_n, ret_nbytes++) {
		const uint64_t n_left = op->n - first;
		const uint32_t n = n_left < op->block_n ? (uint32_t)n_left : op->block_n;

		*ret_nbytes = pack_block(elements + first * op->element_nbytes, n,
					 op->element_nbytes, packed);
		packed += *ret_nbytes;
	}
}

static int unpack_block(const struct packed_block *block, uint32_t element_nbytes)
{
	const size_t nbytes = (size_t)block->n * element_nbytes;

	if (block->packed_nbytes != nbytes)
		return delta_decode(block->packed, block->packed_nbytes, block->elements, block->n,
				    element_nbytes);
	memcpy(block->elements, block->packed, nbytes);
	return 0;
}

void cpu_unpack(const struct unpack_op *op)
{
	uint32_t damaged = UINT32_MAX;

	for (uint32_t i = 0; i < op->n_blocks; i++)
		if (unpack_block(&op->blocks[i], op->element_nbytes) < 0 && damaged == UINT32_MAX)
			damaged = i;
	*op->ret_damaged = damaged;
}

/*
 * --- indirect layouts ---
 *
 * Elements are made and gathered like those of record_sort.c. But their numbers count all records
 * of the sort, not those of a chunk.
 *
 * A record may change between the time when its element was made and the time when it is gathered,
 * and even between two loads, because another process may overwrite the file. So the digest, the
 * check of the order, and the first and last element are computed from the written copies, and a
 * record is read once. If a record changes, the key in its element and the digest of the input may
 * belong to an older version. But the written records are in the order of their own keys (equal
 * keys in the order of their numbers), and the digest is theirs; otherwise the sort fails.
 */

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
