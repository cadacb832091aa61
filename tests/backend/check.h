/*
 * check - the cases of check_backend: data, comparison with a reference, one check per operation
 *
 * A check_* function runs one operation of the subject on check->data, and the same operation of
 * the reference in plain memory, and compares. Those that need no data say so.
 */
#pragma once

#include "tests/backend/record_data.h"
#include "tests/backend/reference.h"
#include "tests/backend/subject.h"

/* One set of input data, in all the forms that operations take. */
struct data {
	char type[48];
	int dist;
	struct layout layout;
	uint64_t n;
	size_t records_nbytes, elements_nbytes;
	unsigned char *records;
	void *elements, *sorted; /* by the reference */
	struct digest digest;
};

struct check {
	struct subject subject;
	const struct reference *reference;
	struct array in, out, scratch;
	const char *operation;
	const struct data *data;           /* NULL: not about data */
	const struct record_data *records; /* the same */
	uint64_t n_cases, n_failures;
};

/* Count a case; when it failed, say which. */
void expect(struct check *check, bool holds, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Expect the array to start with these bytes, and nothing to be written around it. */
void expect_bytes(struct check *check, const struct array *array, const void *expected,
		  size_t nbytes, const char *what);

/* Memory of the reference, for free(); they end the program when there is none. */
void *reference_alloc(size_t nbytes);
void *reference_copy(const void *from, size_t nbytes);

void reference_sort(const struct reference *reference, void *elements, uint64_t n,
		    uint32_t element_nbytes);

/* n records of `type`, or of several keys (key_lists.h), distributed as elements.h says. */
void data_make(const struct reference *reference, const char *type, bool descending, uint64_t n,
	       int dist, struct data *ret_data);
void data_free(struct data *data);

/* Some elements away from the aligned start: operations get parts of arrays. */
size_t some_elements_nbytes(const struct data *data);

/* check_each.c */
void check_copy(struct check *check);
void check_encode(struct check *check);
void check_encode_in_place(struct check *check);
void check_decode(struct check *check);
void check_decode_in_place(struct check *check);
void check_sort(struct check *check);
void check_unique(struct check *check);
void check_sample(struct check *check);

/* check_packed.c */
void check_pack_and_unpack(struct check *check);

/* check_slices.c */
void check_merge(struct check *check);
void check_cut(struct check *check);

/* check_queues.c; these need no data */
void check_alloc(struct check *check);
void check_alloc_of_too_much(struct check *check);
void check_queues(struct check *check);
void check_queue_close(struct check *check);

/* check_records.c; all operations on check->records */
void check_records(struct check *check);

/* record_sweeps.c: the above for many layouts and data */
void check_record_sweeps(struct check *check);
