/*
 * check_records - operations on records and on slices of their items
 */
#include <stdlib.h>
#include <string.h>

#include "tests/backend/check.h"

enum { MAX_SLICES = 70 };

/* Options of sorting and merging, without the order. */
struct record_op_case {
	bool unique;
	uint64_t limit;
	bool for_output;
};

/* Sorted items in k slices, one behind the other, on the host and in check->in. */
struct slices {
	uint32_t k;
	uint64_t n;
	unsigned char *items;
	struct slice host[MAX_SLICES], device[MAX_SLICES];
};

static bool same_sort_op_result(const struct sort_op_result *a, const struct sort_op_result *b)
{
	return a->n == b->n && a->n_counted == b->n_counted && a->n_disorders == b->n_disorders &&
	       digest_equal(a->digest, b->digest) && digest_equal(a->dropped, b->dropped);
}

static void expect_sort_op_result(struct check *check, const struct record_op_case *op_case,
				  const struct sort_op_result *a, const struct sort_op_result *b)
{
	expect(check, same_sort_op_result(a, b),
	       "%s limit %lu: %lu kept, not %lu; %lu counted, not %lu; %lu disorders, not %lu; "
	       "digests %s, %s",
	       op_case->unique ? "unique" : "not unique", (unsigned long)op_case->limit,
	       (unsigned long)a->n, (unsigned long)b->n, (unsigned long)a->n_counted,
	       (unsigned long)b->n_counted, (unsigned long)a->n_disorders,
	       (unsigned long)b->n_disorders,
	       digest_equal(a->digest, b->digest) ? "equal" : "differ",
	       digest_equal(a->dropped, b->dropped) ? "equal" : "differ");
}

/* Sort n records by the reference, into `items`. */
static void sort_by_reference(const struct check *check, const void *records, uint64_t n,
			      uint64_t position, const struct record_op_case *op_case, void *items,
			      struct digest *ret_read, struct sort_op_result *ret)
{
	const struct layout *layout = &check->records->layout;
	void *scratch = reference_alloc(check->reference->records_scratch_nbytes(layout, 0, n));

	check->reference->sort_records(&(struct sort_op){ .layout = layout,
							  .records = records,
							  .items = items,
							  .n = n,
							  .position = position,
							  .unique = op_case->unique,
							  .limit = op_case->limit,
							  .scratch = scratch,
							  .ret_input_digest = ret_read,
							  .ret = ret });
	free(scratch);
}

/* Scratch memory of the subject, exactly as much as it asked for. */
static void set_scratch(struct check *check, uint32_t k, uint64_t n)
{
	const struct subject *subject = &check->subject;

	array_set(&check->subject, &check->scratch, NULL,
		  k ? device_merge_scratch_nbytes(subject->device, &check->records->layout, k, n) :
		      device_sort_scratch_nbytes(subject->device, &check->records->layout, n),
		  0);
}

static void check_sort_records(struct check *check, const struct record_op_case *op_case)
{
	enum { POSITION = 1000 };
	struct subject *subject = &check->subject;
	const struct record_data *data = check->records;
	const uint64_t item_nbytes = data->layout.item_nbytes;
	unsigned char *items = reference_alloc(data->n * item_nbytes);
	struct sort_op_result result, expected;
	struct digest read, expected_read;

	check->operation = "sort of records";
	sort_by_reference(check, data->records, data->n, POSITION, op_case, items, &expected_read,
			  &expected);
	array_set(subject, &check->in, data->records, data->n * data->layout.record_nbytes,
		  data->n % 7);
	array_set(subject, &check->out, NULL, data->n * item_nbytes, data->n % 5 * item_nbytes);
	set_scratch(check, 0, data->n);
	subject_must(device_queue_sort(subject->queue,
				       &(struct sort_op){ .layout = &data->layout,
							  .records = array_device(&check->in),
							  .items = array_device(&check->out),
							  .n = data->n,
							  .position = POSITION,
							  .unique = op_case->unique,
							  .limit = op_case->limit,
							  .scratch = array_device(&check->scratch),
							  .ret_input_digest = &read,
							  .ret = &result }),
		     "sort of records");
	expect_bytes(check, &check->out, items, expected.n * item_nbytes, "items");
	expect_sort_op_result(check, op_case, &result, &expected);
	expect(check, digest_equal(read, expected_read), "the digest of what was read differs");
	expect(check, array_get(subject, &check->in), "written outside of the records");
	expect(check, array_get(subject, &check->scratch), "written outside of the scratch memory");
	free(items);
}

/* Lengths that differ, and some that are 0. */
static uint64_t slice_n(uint32_t k, uint32_t i, uint64_t n_left)
{
	if (i + 1 == k)
		return n_left;
	return i % 4 == 1 ? 0 : i % 4 == 2 ? n_left / 2 : n_left / (k - i);
}

/* With is_unique, some of the slices' memory is left empty. */
static void slices_make(struct check *check, uint32_t k, bool is_unique, struct slices *slices)
{
	const struct record_op_case op_case = { .unique = is_unique, .limit = UINT64_MAX };
	const struct record_data *data = check->records;
	const uint64_t item_nbytes = data->layout.item_nbytes;
	uint64_t start = 0;

	*slices = (struct slices){ .k = k };
	slices->items = reference_alloc(data->n * item_nbytes);
	memset(slices->items, 0, data->n * item_nbytes);
	for (uint32_t i = 0; i < k; i++) {
		const uint64_t n = slice_n(k, i, data->n - start);
		struct sort_op_result result;
		struct digest read;

		sort_by_reference(check, data->records + start * data->layout.record_nbytes, n,
				  start, &op_case, slices->items + start * item_nbytes, &read,
				  &result);
		slices->host[i] = (struct slice){ slices->items + start * item_nbytes, result.n };
		slices->n += result.n;
		start += n;
	}
	array_set(&check->subject, &check->in, slices->items, data->n * item_nbytes,
		  data->n % 3 * item_nbytes);
	for (uint32_t i = 0; i < k; i++)
		slices->device[i] = (struct slice){
			(char *)array_device(&check->in) +
				((const unsigned char *)slices->host[i].elements - slices->items),
			slices->host[i].n,
		};
}

static void check_merge_records(struct check *check, const struct slices *slices,
				const struct record_op_case *op_case)
{
	struct subject *subject = &check->subject;
	const struct layout *layout = &check->records->layout;
	const uint64_t item_nbytes = layout->item_nbytes;
	const uint64_t out_nbytes = op_case->for_output ? layout->output_nbytes : item_nbytes;
	unsigned char *out = reference_alloc(check->records->n * out_nbytes);
	void *scratch = reference_alloc(
		check->reference->records_scratch_nbytes(layout, slices->k, slices->n));
	unsigned char *edges = reference_alloc(4 * item_nbytes);
	struct sort_op_result result, expected;
	struct merge_op op = { .layout = layout,
			       .slices = slices->host,
			       .k = slices->k,
			       .out = out,
			       .for_output = op_case->for_output,
			       .unique = op_case->unique,
			       .limit = op_case->limit,
			       .scratch = scratch,
			       .ret_first = edges,
			       .ret_last = edges + item_nbytes,
			       .ret = &expected };

	check->operation = "merge of items";
	check->reference->merge_records(&op);
	array_set(subject, &check->out, NULL, check->records->n * out_nbytes,
		  check->records->n % 5 * out_nbytes);
	set_scratch(check, slices->k, slices->n);
	op.slices = slices->device;
	op.out = array_device(&check->out);
	op.scratch = array_device(&check->scratch);
	op.ret_first = edges + 2 * item_nbytes;
	op.ret_last = edges + 3 * item_nbytes;
	op.ret = &result;
	subject_must(device_queue_merge(subject->queue, &op), "merge of items");
	expect_bytes(check, &check->out, out, expected.n * out_nbytes, "items");
	expect_sort_op_result(check, op_case, &result, &expected);
	expect(check,
	       expected.n == 0 || memcmp(edges, edges + 2 * item_nbytes, 2 * item_nbytes) == 0,
	       "the items at the edges of %u slices differ", slices->k);
	expect(check, array_get(subject, &check->scratch), "written outside of the scratch memory");
	free(out);
	free(scratch);
	free(edges);
}

static void cut_records(struct check *check, const struct slices *slices, const unsigned char *key,
			uint32_t slice)
{
	uint64_t cuts[MAX_SLICES], expected[MAX_SLICES];
	struct cut_op op = { .layout = &check->records->layout,
			     .slices = slices->host,
			     .k = slices->k,
			     .key = key,
			     .slice = slice,
			     .ret_cuts = expected };

	check->reference->cut(&op);
	op.slices = slices->device;
	op.ret_cuts = cuts;
	subject_must(device_queue_cut(check->subject.queue, &op), "cut");
	subject_wait(&check->subject);
	expect(check, memcmp(cuts, expected, slices->k * sizeof *cuts) == 0,
	       "the cuts of %u slices before slice %u differ", slices->k, slice);
}

/* At the ends, and at the keys of some items. */
static void check_cut_records(struct check *check, const struct slices *slices)
{
	const struct record_data *data = check->records;
	const struct key_fields *keys = &data->layout.item_keys;
	const size_t key_nbytes = (keys->key_nbytes + 7) / 8 * 8;
	unsigned char *key = memset(reference_alloc(key_nbytes), 0, key_nbytes);

	check->operation = "cut of items";
	cut_records(check, slices, key, 0);
	memset(key, 0xff, keys->key_nbytes);
	cut_records(check, slices, key, slices->k);
	for (uint64_t i = 0; i < data->n; i += data->n / 3 + 1) {
		for (uint32_t at = 0; at < key_nbytes; at += 8) {
			const uint64_t word = __builtin_bswap64(
				key_word(keys, slices->items + i * data->layout.item_nbytes, at));

			memcpy(key + at, &word, 8);
		}
		cut_records(check, slices, key, 0);
		cut_records(check, slices, key, slices->k / 2);
		cut_records(check, slices, key, slices->k - 1);
	}
	free(key);
}

/* Of what slices_make() has put into check->in, as if it were one slice. */
static void check_sample_records(struct check *check, const struct slices *slices, uint64_t stride)
{
	const struct record_data *data = check->records;
	const uint64_t n_keys = data->n / stride + (data->n % stride != 0);
	encoded_key_t *keys = reference_alloc(n_keys * sizeof *keys);
	encoded_key_t *expected = reference_alloc(n_keys * sizeof *keys);
	struct sample_op op = { .layout = &data->layout,
				.items = slices->items,
				.n = data->n,
				.stride = stride,
				.ret_keys = expected };

	check->operation = "sample of items";
	check->reference->sample(&op);
	op.items = array_device(&check->in);
	op.ret_keys = keys;
	subject_must(device_queue_sample(check->subject.queue, &op), "sample of items");
	subject_wait(&check->subject);
	expect(check, n_keys == 0 || memcmp(keys, expected, n_keys * sizeof *keys) == 0,
	       "keys at a stride of %lu differ", (unsigned long)stride);
	free(keys);
	free(expected);
}

void check_records(struct check *check)
{
	static const uint32_t numbers[] = { 1, 2, 3, 7, 17, MAX_SLICES };
	static unsigned next;
	const uint64_t n = check->records->n;
	const struct record_op_case projections[] = {
		{ false, UINT64_MAX, false }, { false, UINT64_MAX, true },
		{ true, UINT64_MAX, true },   { false, n / 2, true },
		{ true, n / 3 + 1, false },   { true, next % 3, true },
		{ false, n / 10, false },
	};
	struct slices slices;

	slices_make(check, numbers[next % 6], next % 4 == 0, &slices);
	next++;
	for (unsigned i = 0; i < sizeof projections / sizeof projections[0]; i++)
		check_merge_records(check, &slices, &projections[i]);
	check_cut_records(check, &slices);
	check_sample_records(check, &slices, 1);
	check_sample_records(check, &slices, 100);
	for (unsigned i = 0; i < sizeof projections / sizeof projections[0]; i++)
		if (i != 1) /* sorting is not for the output */
			check_sort_records(check, &projections[i]);
	free(slices.items);
}
