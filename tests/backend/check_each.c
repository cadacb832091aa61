/*
 * check_each - operations that go over one array
 */
#include <stdlib.h>
#include <string.h>

#include "tests/backend/check.h"

static void encode_from(struct check *check, const void *records)
{
	const struct data *data = check->data;
	struct digest digest = { .n_records = 3, .sum = 5 };
	int r = device_queue_encode(check->subject.queue,
				    &(struct encode_op){
					    .layout = &data->layout,
					    .records = records,
					    .elements = array_device(&check->out),
					    .n = data->n,
					    .ret_digest = &digest,
				    });

	subject_must(r, "encode");
	expect_bytes(check, &check->out, data->elements, data->elements_nbytes, "elements");
	expect(check,
	       digest.n_records == data->digest.n_records + 3 && digest.sum == data->digest.sum + 5,
	       "the digest differs");
}

void check_encode(struct check *check)
{
	const struct data *data = check->data;

	array_set(&check->subject, &check->in, data->records, data->records_nbytes,
		  data->layout.stores_elements ? some_elements_nbytes(data) : data->n % 7);
	array_set(&check->subject, &check->out, NULL, data->elements_nbytes,
		  some_elements_nbytes(data));
	encode_from(check, array_device(&check->in));
}

void check_encode_in_place(struct check *check)
{
	const struct data *data = check->data;
	const size_t widening = data->elements_nbytes - data->records_nbytes;
	char *both = reference_alloc(data->elements_nbytes);

	memcpy(both + widening, data->records, data->records_nbytes);
	array_set(&check->subject, &check->out, both, data->elements_nbytes,
		  some_elements_nbytes(data));
	free(both);
	encode_from(check, (char *)array_device(&check->out) + widening);
}

static bool same_decode_result(const struct decode_result *a, const struct decode_result *b,
			       uint64_t n)
{
	return digest_equal(a->digest, b->digest) && a->n_disorders == b->n_disorders &&
	       (n == 0 || (a->first == b->first && a->last == b->last));
}

/* Decode `elements` (on the host) into `to`, which may be where they are on the device. */
static void decode_to(struct check *check, const void *elements, struct array *to, bool strict)
{
	const struct data *data = check->data;
	void *records = reference_alloc(data->records_nbytes);
	struct decode_result result, expected;
	struct decode_op op = { .layout = &data->layout,
				.elements = elements,
				.records = records,
				.n = data->n,
				.strict = strict,
				.ret = &expected };

	check->reference->decode(&op);
	array_set(&check->subject, &check->in, elements, data->elements_nbytes,
		  some_elements_nbytes(data));
	if (to != &check->in)
		array_set(&check->subject, to, NULL, data->records_nbytes, 0);
	op.elements = array_device(&check->in);
	op.records = array_device(to);
	op.ret = &result;
	subject_must(device_queue_decode(check->subject.queue, &op), "decode");
	expect_bytes(check, to, records, data->records_nbytes, "records");
	expect(check, same_decode_result(&result, &expected, data->n),
	       "digest, edges or disorders (%lu, not %lu) differ",
	       (unsigned long)result.n_disorders, (unsigned long)expected.n_disorders);
	free(records);
}

void check_decode(struct check *check)
{
	decode_to(check, check->data->elements, &check->out, false);
	decode_to(check, check->data->sorted, &check->out, true);
}

void check_decode_in_place(struct check *check)
{
	decode_to(check, check->data->elements, &check->in, true);
	decode_to(check, check->data->sorted, &check->in, false);
}

void check_sort(struct check *check)
{
	struct subject *subject = &check->subject;
	const struct data *data = check->data;
	struct sort_op_result result;

	array_set(subject, &check->in, data->elements, data->elements_nbytes,
		  some_elements_nbytes(data));
	array_set(subject, &check->scratch, NULL,
		  device_sort_scratch_nbytes(subject->device, &data->layout, data->n), 0);
	subject_must(device_queue_sort(subject->queue,
				       &(struct sort_op){
					       .layout = &data->layout,
					       .items = array_device(&check->in),
					       .n = data->n,
					       .scratch = array_device(&check->scratch),
					       .ret = &result,
				       }),
		     "sort");
	expect_bytes(check, &check->in, data->sorted, data->elements_nbytes, "elements");
	expect(check, result.n == data->n, "%lu are left", (unsigned long)result.n);
	expect(check, array_get(subject, &check->scratch), "written outside of the scratch memory");
}

void check_unique(struct check *check)
{
	struct subject *subject = &check->subject;
	const struct data *data = check->data;
	const uint32_t element_nbytes = data->layout.element_nbytes;
	void *kept = reference_copy(data->sorted, data->elements_nbytes);
	uint64_t expected_n;
	struct digest expected_dropped;
	struct sort_op_result found;
	const struct unique_elements_op op = { .elements = kept,
					       .n = data->n,
					       .element_nbytes = element_nbytes,
					       .layout = &data->layout,
					       .ret_n = &expected_n,
					       .ret_dropped = &expected_dropped };

	check->reference->unique(&op);
	array_set(subject, &check->in, data->sorted, data->elements_nbytes,
		  some_elements_nbytes(data));
	subject_must(device_queue_unique(subject->queue,
					 &(struct unique_op){ .layout = &data->layout,
							      .items = array_device(&check->in),
							      .n = data->n,
							      .ret = &found }),
		     "unique");
	expect_bytes(check, &check->in, kept, expected_n * element_nbytes, "elements");
	expect(check, found.n == expected_n, "%lu are left, not %lu", (unsigned long)found.n,
	       (unsigned long)expected_n);
	expect(check, digest_equal(found.dropped, expected_dropped), "the digest differs");
	free(kept);
}

static void sample_with_stride(struct check *check, uint64_t stride)
{
	struct subject *subject = &check->subject;
	const struct data *data = check->data;
	const uint64_t n_keys = data->n / stride + (data->n % stride != 0);
	encoded_key_t *keys = reference_alloc(n_keys * sizeof *keys);
	encoded_key_t *expected = reference_alloc(n_keys * sizeof *keys);
	struct sample_op op = { .layout = &data->layout,
				.items = data->elements,
				.n = data->n,
				.stride = stride,
				.ret_keys = expected };

	check->reference->sample(&op);
	op.items = array_device(&check->in);
	op.ret_keys = keys;
	subject_must(device_queue_sample(subject->queue, &op), "sample");
	subject_wait(subject);
	expect(check, n_keys == 0 || memcmp(keys, expected, n_keys * sizeof *keys) == 0,
	       "keys at a stride of %lu differ", (unsigned long)stride);
	free(keys);
	free(expected);
}

void check_sample(struct check *check)
{
	const uint64_t strides[] = { 1, 2, 16, 1000, check->data->n + 1 };

	array_set(&check->subject, &check->in, check->data->elements, check->data->elements_nbytes,
		  some_elements_nbytes(check->data));
	for (unsigned i = 0; i < sizeof strides / sizeof strides[0]; i++)
		sample_with_stride(check, strides[i]);
}

void check_copy(struct check *check)
{
	struct subject *subject = &check->subject;
	const struct data *data = check->data;

	array_set(subject, &check->in, data->records, data->records_nbytes, 3);
	array_set(subject, &check->out, NULL, data->records_nbytes, 1);
	subject_must(device_queue_copy(subject->queue, array_device(&check->out),
				       array_device(&check->in), data->records_nbytes),
		     "copy");
	expect_bytes(check, &check->out, data->records, data->records_nbytes, "bytes");
}
