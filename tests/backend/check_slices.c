/*
 * check_slices - operations on sorted slices: merge and cut
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backend/check.h"

enum { MAX_SLICES = 300 };

/* How the elements of a data set are dealt to k slices. */
enum shape { EVEN, SOME_EMPTY, ONE_LONG, N_SHAPES };

/* Sorted slices, one behind the other, on the host and in check->in. */
struct slices {
	uint32_t k;
	enum shape shape;
	void *elements;
	struct slice host[MAX_SLICES], device[MAX_SLICES];
};

static uint64_t slice_n(enum shape shape, uint32_t k, uint32_t i, uint64_t n_left)
{
	const uint64_t n = n_left / (k - i);

	if (i + 1 == k)
		return n_left;
	if (shape == SOME_EMPTY)
		return i % 3 == 0 ? 0 : n * 3 / 2;
	if (shape == ONE_LONG)
		return i == k / 2 ? n_left * 9 / 10 : n / 4;
	return n;
}

static void slices_make(struct check *check, struct slices *slices)
{
	static const uint32_t numbers[] = { 1, 2, 3, 7, 16, 17, 64, MAX_SLICES };
	static unsigned next;
	const unsigned combination = next++;
	const struct data *data = check->data;
	const uint32_t element_nbytes = data->layout.element_nbytes;
	uint64_t start = 0;

	slices->k = numbers[combination % 8];
	slices->shape = combination % N_SHAPES;
	slices->elements = reference_copy(data->elements, data->elements_nbytes);
	for (uint32_t i = 0; i < slices->k; i++) {
		const uint64_t n = slice_n(slices->shape, slices->k, i, data->n - start);
		char *elements = (char *)slices->elements + start * element_nbytes;

		reference_sort(check->reference, elements, n, element_nbytes);
		slices->host[i] = (struct slice){ .elements = elements, .n = n };
		start += n;
	}
	array_set(&check->subject, &check->in, slices->elements, data->elements_nbytes,
		  some_elements_nbytes(data));
	for (uint32_t i = 0; i < slices->k; i++) {
		const struct slice *host = &slices->host[i];

		slices->device[i].n = host->n;
		slices->device[i].elements =
			(char *)array_device(&check->in) +
			((const char *)host->elements - (char *)slices->elements);
	}
}

static void merge_slices(struct check *check, const struct slices *slices)
{
	struct subject *subject = &check->subject;
	const struct data *data = check->data;
	const uint32_t element_nbytes = data->layout.element_nbytes;
	void *merged = reference_alloc(data->elements_nbytes);
	void *scratch = reference_alloc(
		check->reference->merge_scratch_nbytes(slices->k, data->n, element_nbytes));
	struct sort_op_result result;

	check->reference->merge(&(struct merge_elements_op){ .slices = slices->host,
							     .k = slices->k,
							     .element_nbytes = element_nbytes,
							     .out = merged,
							     .scratch = scratch });
	array_set(subject, &check->out, NULL, data->elements_nbytes, some_elements_nbytes(data));
	array_set(subject, &check->scratch, NULL,
		  device_merge_scratch_nbytes(subject->device, &data->layout, slices->k, data->n),
		  0);
	subject_must(
		device_queue_merge(subject->queue,
				   &(struct merge_op){ .layout = &data->layout,
						       .slices = slices->device,
						       .k = slices->k,
						       .out = array_device(&check->out),
						       .scratch = array_device(&check->scratch),
						       .ret = &result }),
		"merge");
	expect_bytes(check, &check->out, merged, data->elements_nbytes, "elements");
	expect(check, array_get(subject, &check->scratch), "written outside of the scratch memory");
	free(merged);
	free(scratch);
}

void check_merge(struct check *check)
{
	struct slices slices;

	for (int i = 0; i < 2; i++) {
		const uint64_t n_failures = check->n_failures;

		slices_make(check, &slices);
		merge_slices(check, &slices);
		if (check->n_failures > n_failures)
			printf("       ... with %u slices of shape %d\n", slices.k, slices.shape);
		free(slices.elements);
	}
}

static void cut_slices(struct check *check, const struct slices *slices, encoded_key_t key,
		       uint32_t slice)
{
	struct subject *subject = &check->subject;
	uint64_t cuts[MAX_SLICES], expected[MAX_SLICES];
	struct cut_op op = { .slices = slices->host,
			     .k = slices->k,
			     .layout = &check->data->layout,
			     .key = &key,
			     .slice = slice,
			     .ret_cuts = expected };

	check->reference->cut(&op);
	op.slices = slices->device;
	op.ret_cuts = cuts;
	subject_must(device_queue_cut(subject->queue, &op), "cut");
	subject_wait(subject);
	expect(check, memcmp(cuts, expected, slices->k * sizeof *cuts) == 0,
	       "the cuts of %u slices of shape %d before slice %u differ", slices->k, slices->shape,
	       slice);
}

void check_cut(struct check *check)
{
	const struct data *data = check->data;
	const uint32_t element_nbytes = data->layout.element_nbytes;
	const encoded_key_t largest = ~(encoded_key_t)0 >> (128 - 8 * element_nbytes);
	struct slices slices;

	slices_make(check, &slices);
	cut_slices(check, &slices, 0, 0);
	cut_slices(check, &slices, largest, slices.k);
	for (uint64_t at = 0; at < data->n; at += data->n / 3 + 1) {
		const encoded_key_t key = element_get(data->elements, element_nbytes, at);

		cut_slices(check, &slices, key, 0);
		cut_slices(check, &slices, key, slices.k / 2);
		cut_slices(check, &slices, key, slices.k - 1);
	}
	free(slices.elements);
}
