/*
 * reference - what every operation of a back end must come to (see reference.h)
 */
#include "tests/backend/reference.h"

#include <stdlib.h>
#include <string.h>

#include "src/device/cpu/cpu_ops.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/record/key_batch.h"
#include "tests/support/elements.h"
#include "tests/support/decode_key.h"

static void element_set(void *elements, uint32_t element_nbytes, uint64_t i, encoded_key_t element)
{
	memcpy((char *)elements + i * element_nbytes, &element, element_nbytes);
}

/* The digest of one record. */
static struct digest digest_one(const struct layout *layout, const void *record)
{
	return (struct digest){ 1, digest_record(record, layout->record_nbytes) };
}

static void plain_encode(const struct encode_op *op)
{
	const struct layout *layout = op->layout;
	const size_t nbytes = op->n * layout->record_nbytes;
	unsigned char *records = malloc(nbytes + 1); /* they may overlap the elements */

	memcpy(records, op->records, nbytes);
	for (uint64_t i = 0; i < op->n; i++) {
		const unsigned char *record = records + i * layout->record_nbytes;

		element_set(op->elements, layout->element_nbytes, i, layout_encode(layout, record));
		if (op->ret_digest)
			digest_add(op->ret_digest, digest_one(layout, record));
	}
	free(records);
}

static void plain_decode(const struct decode_op *op)
{
	const struct layout *layout = op->layout;
	encoded_key_t last = 0;

	*op->ret = (struct decode_result){ 0 };
	/* In place: a record never reaches beyond its own element. */
	for (uint64_t i = 0; i < op->n; i++) {
		const encoded_key_t code = element_get(op->elements, layout->element_nbytes, i);
		char *record = (char *)op->records + i * layout->record_nbytes;

		layout_decode(layout, code, record);
		digest_add(&op->ret->digest, digest_one(layout, record));
		if (i == 0)
			op->ret->first = code;
		else if (code < last || (op->strict && code == last))
			op->ret->n_disorders++;
		op->ret->last = last = code;
	}
}

static void plain_sort(const struct sort_elements_op *op)
{
	reference_sort_elements(op->elements, op->element_nbytes, op->n);
}

static void plain_cut(const struct cut_op *op)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	encoded_key_t key;

	if (op->layout->kind == LAYOUT_RECORDS) {
		plain_cut_items(op);
		return;
	}
	memcpy(&key, op->key, sizeof key);
	for (uint32_t i = 0; i < op->k; i++) {
		const struct slice *slice = &op->slices[i];
		uint64_t n = 0;

		for (uint64_t j = 0; j < slice->n; j++) {
			const encoded_key_t element =
				element_get(slice->elements, element_nbytes, j);

			n += element < key || (element == key && i < op->slice);
		}
		op->ret_cuts[i] = n;
	}
}

/* Codes have no identity, so that a merge is a sort. */
static void plain_merge(const struct merge_elements_op *op)
{
	char *out = op->out;

	for (uint32_t i = 0; i < op->k; i++) {
		const size_t nbytes = op->slices[i].n * op->element_nbytes;

		memcpy(out, op->slices[i].elements, nbytes);
		out += nbytes;
	}
	reference_sort_elements(op->out, op->element_nbytes,
				(uint64_t)(out - (char *)op->out) / op->element_nbytes);
}

static void plain_unique(const struct unique_elements_op *op)
{
	uint64_t n = 0;

	*op->ret_dropped = (struct digest){ 0 };
	for (uint64_t i = 0; i < op->n; i++) {
		const encoded_key_t element = element_get(op->elements, op->element_nbytes, i);
		unsigned char record[16];

		if (n == 0 || element != element_get(op->elements, op->element_nbytes, n - 1)) {
			element_set(op->elements, op->element_nbytes, n++, element);
			continue;
		}
		layout_decode(op->layout, element, record);
		digest_add(op->ret_dropped, digest_one(op->layout, record));
	}
	*op->ret_n = n;
}

static void plain_sample(const struct sample_op *op)
{
	encoded_key_t *key = op->ret_keys;

	if (op->layout->kind == LAYOUT_RECORDS) {
		plain_sample_items(op);
		return;
	}
	for (uint64_t i = 0; i < op->n; i++)
		if (i % op->stride == 0)
			*key++ = element_get(op->items, op->layout->element_nbytes, i);
}

static size_t no_sort_scratch(uint64_t n, uint32_t element_nbytes)
{
	(void)n, (void)element_nbytes;
	return 0;
}

static size_t no_merge_scratch(uint32_t k, uint64_t n, uint32_t element_nbytes)
{
	(void)k, (void)n, (void)element_nbytes;
	return 0;
}

static size_t no_records_scratch(const struct layout *layout, uint32_t k, uint64_t n)
{
	(void)layout, (void)k, (void)n;
	return 0;
}

const struct reference reference_plain = {
	.name = "plain code",
	.encode = plain_encode,
	.decode = plain_decode,
	.sort = plain_sort,
	.cut = plain_cut,
	.merge = plain_merge,
	.unique = plain_unique,
	.sample = plain_sample,
	.pack = plain_pack,
	.sort_scratch_nbytes = no_sort_scratch,
	.merge_scratch_nbytes = no_merge_scratch,
	.sort_records = plain_sort_records,
	.merge_records = plain_merge_records,
	.records_scratch_nbytes = no_records_scratch,
};

static void fast_encode(const struct encode_op *op)
{
	key_batch_encode(op->layout, op->records, op->n, op->elements, op->ret_digest);
}

static void fast_decode(const struct decode_op *op)
{
	key_batch_decode(op->layout, op->elements, op->n, op->strict, op->records, op->ret);
}

static void fast_cut(const struct cut_op *op)
{
	(op->layout->kind == LAYOUT_RECORDS ? cpu_cut_items : cpu_cut_elements)(op);
}

static void fast_sample(const struct sample_op *op)
{
	(op->layout->kind == LAYOUT_RECORDS ? cpu_sample_items : cpu_sample_elements)(op);
}

static void fast_sort_records(const struct sort_op *op)
{
	cpu_sort_records(op, NULL);
}

const struct reference reference_cpu = {
	.name = "the CPU back end",
	.encode = fast_encode,
	.decode = fast_decode,
	.sort = cpu_sort,
	.cut = fast_cut,
	.merge = cpu_merge,
	.unique = cpu_unique,
	.sample = fast_sample,
	.pack = cpu_pack,
	.sort_scratch_nbytes = cpu_sort_scratch_nbytes,
	.merge_scratch_nbytes = cpu_merge_scratch_nbytes,
	.sort_records = fast_sort_records,
	.merge_records = cpu_merge_records,
	.records_scratch_nbytes = cpu_records_scratch_nbytes,
};
