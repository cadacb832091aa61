/*
 * expected_outputs - the inputs, and what is right to make of them (see expected_outputs.h)
 */
#include "tests/fault/expected_outputs.h"
#include "tests/fault/part_files_check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PARTS = 6 };

const char input_names[] =
	" input input.zst sorted few names part0 part1 part2 part3 part4 part5 sorted.0000 "
	"sorted.0001 sorted.0002 sorted.parts ";

/* What makes an answer of the input. */
static const struct arrangement {
	size_t record_nbytes, key_offset, key_nbytes; /* a key of one number, or of bytes */
	bool is_number, unique, of_few;
	size_t limit;       /* in records */
	size_t skip_nbytes; /* a header; what is left behind the records is a tail */
} arrangements[N_ANSWERS] = {
	[ANSWER_SORTED] = { 8, 0, 8, .is_number = true, .limit = SIZE_MAX },
	[ANSWER_UNIQUE] = { 8, 0, 8, .is_number = true, .unique = true, .limit = SIZE_MAX },
	[ANSWER_RECORDS] = { 16, 0, 3, .limit = SIZE_MAX },
	[ANSWER_FIRST_RECORDS] = { 16, 0, 3, .limit = 5000 },
	[ANSWER_LONG_KEYS] = { 40, 3, 30, .limit = SIZE_MAX },
	[ANSWER_MEDIUM_RECORDS] = { 40, 8, 3, .limit = SIZE_MAX },
	[ANSWER_LARGE_RECORDS] = { 400, 200, 2, .limit = SIZE_MAX },
	[ANSWER_FEW] = { 8, 0, 8, .is_number = true, .of_few = true, .limit = SIZE_MAX },
	[ANSWER_FEW_UNIQUE] = { 8, 0, 8, true, .unique = true, .of_few = true, .limit = SIZE_MAX },
	[ANSWER_FEW_RECORDS] = { 16, 0, 3, .of_few = true, .limit = SIZE_MAX },
	[ANSWER_FEW_PAIRS] = { 16, 0, 8, .is_number = true, .of_few = true, .limit = SIZE_MAX },
	[ANSWER_FEW_LONG_KEYS] = { 40, 3, 30, .of_few = true, .limit = SIZE_MAX },
	[ANSWER_ARRAY] = { 8, 0, 8, .is_number = true, .unique = true, .limit = SIZE_MAX },
	[ANSWER_FRAMED] = { 8, 0, 8, .is_number = true, .limit = SIZE_MAX, .skip_nbytes = 9 },
};

static int compare_keys(const struct arrangement *arrangement, const void *a, const void *b)
{
	const char *x = a, *y = b;
	uint64_t m, n;

	if (!arrangement->is_number)
		return memcmp(x + arrangement->key_offset, y + arrangement->key_offset,
			      arrangement->key_nbytes);
	memcpy(&m, x, sizeof m);
	memcpy(&n, y, sizeof n);
	return (m > n) - (m < n);
}

/* Of pointers into the input; stable. */
static int compare_records(const void *a, const void *b, void *context)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	const int order = compare_keys(context, x, y);

	return order ? order : (x > y) - (x < y);
}

static void append(struct bytes *answer, const void *bytes, size_t nbytes)
{
	memcpy((char *)answer->data + answer->nbytes, bytes, nbytes);
	answer->nbytes += nbytes;
}

static struct bytes arrange(struct bytes input, const struct arrangement *arrangement)
{
	const size_t record_nbytes = arrangement->record_nbytes;
	const char *first = (const char *)input.data + arrangement->skip_nbytes;
	const size_t n = (input.nbytes - arrangement->skip_nbytes) / record_nbytes;
	const size_t tail_nbytes = (input.nbytes - arrangement->skip_nbytes) % record_nbytes;
	const char **records = malloc(n * sizeof *records);
	struct bytes answer = { malloc(input.nbytes), 0 };
	size_t n_kept = 0;

	must(records && answer.data, "memory");
	for (size_t i = 0; i < n; i++)
		records[i] = first + i * record_nbytes;
	qsort_r(records, n, sizeof *records, compare_records, (void *)arrangement);
	append(&answer, input.data, arrangement->skip_nbytes);
	for (size_t i = 0; i < n && n_kept < arrangement->limit; i++) {
		if (arrangement->unique && i > 0 &&
		    compare_keys(arrangement, records[i], records[i - 1]) == 0)
			continue;
		append(&answer, records[i], record_nbytes);
		n_kept++;
	}
	append(&answer, first + n * record_nbytes, tail_nbytes);
	free(records);
	return answer;
}

static void write_parts(struct bytes few)
{
	const struct arrangement *plain = &arrangements[ANSWER_SORTED];
	char *first = few.data;

	for (size_t i = 0, begin = 0, end; i < N_PARTS; i++, begin = end) {
		char name[] = "part0";
		struct bytes part;

		name[4] += (char)i;
		end = few.nbytes / 8 * (i + 1) / N_PARTS * 8;
		part = arrange((struct bytes){ first + begin, end - begin }, plain);
		write_file(name, part.data, part.nbytes);
		free(part.data);
	}
}

/* The numbers as an array of numpy. */
static struct bytes make_array(struct bytes numbers)
{
	enum { HEADER_NBYTES = 128, PREFIX_NBYTES = 10 };
	static const char prefix[PREFIX_NBYTES] = "\x93NUMPY\1\0\x76";
	struct bytes array = { malloc(HEADER_NBYTES + numbers.nbytes), 0 };
	char text[HEADER_NBYTES - PREFIX_NBYTES];
	int n;

	must(array.data != NULL, "memory");
	memset(text, ' ', sizeof text);
	n = snprintf(text, sizeof text,
		     "{'descr': '<u8', 'fortran_order': False, 'shape': (%zu,), }",
		     numbers.nbytes / 8);
	text[n] = ' ';
	text[sizeof text - 1] = '\n';
	append(&array, prefix, sizeof prefix);
	append(&array, text, sizeof text);
	append(&array, numbers.data, numbers.nbytes);
	return array;
}

void answers_make(struct answers *ret_answers)
{
	const size_t n = answers_n_numbers;
	uint64_t *keys = malloc(n * sizeof *keys), x = 1;
	const struct bytes input = { keys, n * sizeof *keys };
	const struct bytes few = { keys, answers_n_few * sizeof *keys };
	struct bytes unique;

	must(keys != NULL, "memory");
	for (size_t i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		keys[i] = x >> 46; /* of 18 bits: of 200,000 a third have equals */
	}
	ret_answers->input = input;
	write_file("input", input.data, input.nbytes);
	write_file("few", few.data, few.nbytes);
	write_zst("input.zst", input);
	for (int i = 0; i < N_ANSWERS; i++)
		ret_answers->right[i] =
			arrange(arrangements[i].of_few ? few : input, &arrangements[i]);
	unique = ret_answers->right[ANSWER_ARRAY];
	ret_answers->right[ANSWER_ARRAY] = make_array(unique);
	free(unique.data);
	ret_answers->array = make_array(ret_answers->right[ANSWER_SORTED]);
	write_file("sorted", ret_answers->right[ANSWER_SORTED].data, input.nbytes);
	write_parts(few);
	write_file("names", "input", sizeof "input");
	parts_write_sorted(ret_answers->right[ANSWER_SORTED]);
}

void answers_free(struct answers *answers)
{
	free(answers->input.data);
	free(answers->array.data);
	for (int i = 0; i < N_ANSWERS; i++)
		free(answers->right[i].data);
}
