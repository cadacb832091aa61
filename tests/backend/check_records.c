/*
 * check_records - operations on records and on slices of their items
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backend/check.h"

enum { MOST_SLICES = 70 };

/* What is asked of sorting and merging, besides the order. */
struct wish {
	bool unique;
	uint64_t limit;
	bool for_output;
};

/* Sorted items in k slices, one behind the other, on the host and in check->in. */
struct slices {
	uint32_t k;
	uint64_t n;
	unsigned char *items;
	struct slice host[MOST_SLICES], device[MOST_SLICES];
};

static bool same_arranged(const struct arranged *a, const struct arranged *b)
{
	return a->n == b->n && a->n_counted == b->n_counted && a->n_disorders == b->n_disorders &&
	       digest_equal(a->digest, b->digest) && digest_equal(a->dropped, b->dropped);
}

static void expect_arranged(struct check *check, const struct wish *wish, const struct arranged *a,
			    const struct arranged *b)
{
	expect(check, same_arranged(a, b),
	       "%s limit %lu: %lu kept, not %lu; %lu counted, not %lu; %lu disorders, not %lu; "
	       "digests %s, %s",
	       wish->unique ? "unique" : "not unique", (unsigned long)wish->limit,
	       (unsigned long)a->n, (unsigned long)b->n, (unsigned long)a->n_counted,
	       (unsigned long)b->n_counted, (unsigned long)a->n_disorders,
	       (unsigned long)b->n_disorders,
	       digest_equal(a->digest, b->digest) ? "equal" : "differ",
	       digest_equal(a->dropped, b->dropped) ? "equal" : "differ");
}

/* Sort n records by the reference, into `items`. */
static void sort_by_reference(const struct check *check, const void *records, uint64_t n,
			      uint64_t position, const struct wish *wish, void *items,
			      struct digest *ret_read, struct arranged *ret)
{
	const struct layout *layout = &check->records->layout;
	void *scratch = reference_alloc(check->reference->records_scratch_nbytes(layout, 0, n));

	check->reference->sort_records(&(struct sort_op){ .layout = layout,
							  .records = records,
							  .items = items,
							  .n = n,
							  .position = position,
							  .unique = wish->unique,
							  .limit = wish->limit,
							  .scratch = scratch,
							  .ret_read = ret_read,
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

static void check_sort_records(struct check *check, const struct wish *wish)
{
	enum { POSITION = 1000 };
	struct subject *subject = &check->subject;
	const struct record_data *data = check->records;
	const uint64_t item_nbytes = data->layout.item_nbytes;
	unsigned char *items = reference_alloc(data->n * item_nbytes);
	struct arranged arranged, expected;
	struct digest read, expected_read;

	check->operation = "sort of records";
	sort_by_reference(check, data->records, data->n, POSITION, wish, items, &expected_read,
			  &expected);
	array_set(subject, &check->in, data->records, data->n * data->layout.record_nbytes,
		  data->n % 7);
	array_set(subject, &check->out, NULL, data->n * item_nbytes, data->n % 5 * item_nbytes);
	set_scratch(check, 0, data->n);
	subject_must(lane_sort(subject->lane,
			       &(struct sort_op){ .layout = &data->layout,
						  .records = array_device(&check->in),
						  .items = array_device(&check->out),
						  .n = data->n,
						  .position = POSITION,
						  .unique = wish->unique,
						  .limit = wish->limit,
						  .scratch = array_device(&check->scratch),
						  .ret_read = &read,
						  .ret = &arranged }),
		     "sort of records");
	expect_bytes(check, &check->out, items, expected.n * item_nbytes, "items");
	expect_arranged(check, wish, &arranged, &expected);
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
	const struct wish wish = { .unique = is_unique, .limit = UINT64_MAX };
	const struct record_data *data = check->records;
	const uint64_t item_nbytes = data->layout.item_nbytes;
	uint64_t start = 0;

	*slices = (struct slices){ .k = k };
	slices->items = reference_alloc(data->n * item_nbytes);
	memset(slices->items, 0, data->n * item_nbytes);
	for (uint32_t i = 0; i < k; i++) {
		const uint64_t n = slice_n(k, i, data->n - start);
		struct arranged arranged;
		struct digest read;

		sort_by_reference(check, data->records + start * data->layout.record_nbytes, n,
				  start, &wish, slices->items + start * item_nbytes, &read,
				  &arranged);
		slices->host[i] = (struct slice){ slices->items + start * item_nbytes, arranged.n };
		slices->n += arranged.n;
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
				const struct wish *wish)
{
	struct subject *subject = &check->subject;
	const struct layout *layout = &check->records->layout;
	const uint64_t item_nbytes = layout->item_nbytes;
	const uint64_t out_nbytes = wish->for_output ? layout->output_nbytes : item_nbytes;
	unsigned char *out = reference_alloc(check->records->n * out_nbytes);
	void *scratch = reference_alloc(
		check->reference->records_scratch_nbytes(layout, slices->k, slices->n));
	unsigned char *edges = reference_alloc(4 * item_nbytes);
	struct arranged arranged, expected;
	struct merge_op op = { .layout = layout,
			       .slices = slices->host,
			       .k = slices->k,
			       .out = out,
			       .for_output = wish->for_output,
			       .unique = wish->unique,
			       .limit = wish->limit,
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
	op.ret = &arranged;
	subject_must(lane_merge(subject->lane, &op), "merge of items");
	expect_bytes(check, &check->out, out, expected.n * out_nbytes, "items");
	expect_arranged(check, wish, &arranged, &expected);
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
	uint64_t cuts[MOST_SLICES], expected[MOST_SLICES];
	struct cut_op op = { .layout = &check->records->layout,
			     .slices = slices->host,
			     .k = slices->k,
			     .key = key,
			     .slice = slice,
			     .ret_cuts = expected };

	check->reference->cut(&op);
	op.slices = slices->device;
	op.ret_cuts = cuts;
	subject_must(lane_cut(check->subject.lane, &op), "cut");
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
	code_t *keys = reference_alloc(n_keys * sizeof *keys);
	code_t *expected = reference_alloc(n_keys * sizeof *keys);
	struct sample_op op = { .layout = &data->layout,
				.items = slices->items,
				.n = data->n,
				.stride = stride,
				.ret_keys = expected };

	check->operation = "sample of items";
	check->reference->sample(&op);
	op.items = array_device(&check->in);
	op.ret_keys = keys;
	subject_must(lane_sample(check->subject.lane, &op), "sample of items");
	subject_wait(&check->subject);
	expect(check, n_keys == 0 || memcmp(keys, expected, n_keys * sizeof *keys) == 0,
	       "keys at a stride of %lu differ", (unsigned long)stride);
	free(keys);
	free(expected);
}

void check_records(struct check *check)
{
	static const uint32_t numbers[] = { 1, 2, 3, 7, 17, MOST_SLICES };
	static unsigned next;
	const uint64_t n = check->records->n;
	const struct wish wishes[] = {
		{ false, UINT64_MAX, false }, { false, UINT64_MAX, true },
		{ true, UINT64_MAX, true },   { false, n / 2, true },
		{ true, n / 3 + 1, false },   { true, next % 3, true },
	};
	struct slices slices;

	slices_make(check, numbers[next % 6], next % 4 == 0, &slices);
	next++;
	for (unsigned i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
		check_merge_records(check, &slices, &wishes[i]);
	check_cut_records(check, &slices);
	check_sample_records(check, &slices, 1);
	check_sample_records(check, &slices, 100);
	for (unsigned i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
		if (i != 1) /* sorting is not for the output */
			check_sort_records(check, &wishes[i]);
	free(slices.items);
}
