/*
 * check - cases of check_backend (see check.h)
 */
#include "tests/backend/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elements.h"
#include "tests/support/key_lists.h"

void expect(struct check *check, bool holds, const char *format, ...)
{
	va_list arguments;

	check->n_cases++;
	if (holds)
		return;
	check->n_failures++;
	printf("FAILED %s", check->operation);
	if (check->data)
		printf(" of %lu records %s%s, distribution %d", (unsigned long)check->data->n,
		       check->data->type, check->data->layout.key.descending ? " descending" : "",
		       check->data->dist);
	if (check->records)
		printf(" of %lu records, %s", (unsigned long)check->records->n,
		       check->records->description);
	printf(": ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

void expect_bytes(struct check *check, const struct array *array, const void *expected,
		  size_t nbytes, const char *what)
{
	const void *bytes = array_get(&check->subject, array);

	expect(check, bytes && (nbytes == 0 || memcmp(bytes, expected, nbytes) == 0),
	       "%s differ from those of %s", what, check->reference->name);
}

void *reference_alloc(size_t nbytes)
{
	void *memory = aligned_alloc(64, (nbytes + 64) / 64 * 64);

	subject_must(memory ? 0 : -ENOMEM, "aligned_alloc");
	return memory;
}

void *reference_copy(const void *from, size_t nbytes)
{
	return memcpy(reference_alloc(nbytes), from, nbytes);
}

void reference_sort(const struct reference *reference, void *elements, uint64_t n,
		    uint32_t element_nbytes)
{
	void *scratch = reference_alloc(reference->sort_scratch_nbytes(n, element_nbytes));

	reference->sort(&(struct sort_elements_op){ .elements = elements,
						    .n = n,
						    .scratch = scratch,
						    .element_nbytes = element_nbytes });
	free(scratch);
}

/* Of a type, or of several keys that are all of the record. */
static int make_layout(const char *type, bool descending, struct layout *ret_layout)
{
	struct key key;
	int r;

	if (is_key_list(type))
		return key_list_layout(type, descending, ret_layout);
	r = key_parse_type(type, &key);
	key.descending = descending;
	return r < 0 ? r : layout_make_key_only(&key, ret_layout);
}

void data_make(const struct reference *reference, const char *type, bool descending, uint64_t n,
	       int dist, struct data *ret_data)
{
	struct data *data = ret_data;
	struct gen gen;

	*data = (struct data){ .dist = dist, .n = n };
	snprintf(data->type, sizeof data->type, "%s", type);
	subject_must(make_layout(type, descending, &data->layout), type);
	data->records_nbytes = n * data->layout.record_nbytes;
	data->elements_nbytes = n * data->layout.element_nbytes;
	data->records = reference_alloc(data->records_nbytes);
	data->elements = reference_alloc(data->elements_nbytes);
	if (dist == ELEMENTS_ALL_ONES) {
		memset(data->records, 0xff, data->records_nbytes);
	} else {
		gen_init(&data->layout, (enum gen_dist)dist, n, n, &gen);
		gen_fill(&gen.set, 0, n, data->records);
	}
	reference->encode(&(struct encode_op){ .layout = &data->layout,
					       .records = data->records,
					       .elements = data->elements,
					       .n = n,
					       .ret_digest = &data->digest });
	data->sorted = reference_copy(data->elements, data->elements_nbytes);
	reference_sort(reference, data->sorted, n, data->layout.element_nbytes);
}

void data_free(struct data *data)
{
	free(data->records);
	free(data->elements);
	free(data->sorted);
	layout_free(&data->layout);
}

size_t some_elements_nbytes(const struct data *data)
{
	return data->n % 3 * data->layout.element_nbytes;
}
