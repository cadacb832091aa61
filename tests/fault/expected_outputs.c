/*
 * expected_outputs.c - the inputs of the sorts, and their expected outputs (see expected_outputs.h)
 */
#include "tests/fault/expected_outputs.h"
#include "tests/fault/part_files_check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SORTED_INPUTS = 6 };

const char input_file_names[] =
	" input input.zst input.gz sorted few names part0 part1 part2 part3 part4 part5 "
	"sorted-parts ";

/* How an expected output is made from the input. */
static const struct expected_output_params {
	size_t record_nbytes, key_offset, key_nbytes; /* a key of one number, or of bytes */
	bool is_number, unique, uses_few_input;
	size_t limit;       /* in records */
	size_t skip_nbytes; /* the header; an incomplete last record is the trailer */
} expected_params[N_EXPECTED_OUTPUTS] = {
	[EXPECTED_SORTED] = { 8, 0, 8, .is_number = true, .limit = SIZE_MAX },
	[EXPECTED_UNIQUE] = { 8, 0, 8, .is_number = true, .unique = true, .limit = SIZE_MAX },
	[EXPECTED_RECORDS] = { 16, 0, 3, .limit = SIZE_MAX },
	[EXPECTED_FIRST_RECORDS] = { 16, 0, 3, .limit = 5000 },
	[EXPECTED_LONG_KEYS] = { 40, 3, 30, .limit = SIZE_MAX },
	[EXPECTED_MEDIUM_RECORDS] = { 40, 8, 3, .limit = SIZE_MAX },
	[EXPECTED_LARGE_RECORDS] = { 400, 200, 2, .limit = SIZE_MAX },
	[EXPECTED_FEW] = { 8, 0, 8, .is_number = true, .uses_few_input = true, .limit = SIZE_MAX },
	[EXPECTED_FEW_UNIQUE] = { 8, 0, 8, true, .unique = true, .uses_few_input = true,
				  .limit = SIZE_MAX },
	[EXPECTED_FEW_RECORDS] = { 16, 0, 3, .uses_few_input = true, .limit = SIZE_MAX },
	[EXPECTED_FEW_PAIRS] = { 16, 0, 8, .is_number = true, .uses_few_input = true,
				 .limit = SIZE_MAX },
	[EXPECTED_FEW_LONG_KEYS] = { 40, 3, 30, .uses_few_input = true, .limit = SIZE_MAX },
	[EXPECTED_NPY] = { 8, 0, 8, .is_number = true, .unique = true, .limit = SIZE_MAX },
	[EXPECTED_FRAMED] = { 8, 0, 8, .is_number = true, .limit = SIZE_MAX, .skip_nbytes = 9 },
};

static int compare_keys(const struct expected_output_params *params, const void *a, const void *b)
{
	const char *x = a, *y = b;
	uint64_t m, n;

	if (!params->is_number)
		return memcmp(x + params->key_offset, y + params->key_offset, params->key_nbytes);
	memcpy(&m, x, sizeof m);
	memcpy(&n, y, sizeof n);
	return (m > n) - (m < n);
}

/* Compare two records by pointers into the input. The order is stable. */
static int compare_records(const void *a, const void *b, void *context)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	const int order = compare_keys(context, x, y);

	return order ? order : (x > y) - (x < y);
}

static void append_bytes(struct byte_buffer *output, const void *bytes, size_t nbytes)
{
	memcpy((char *)output->data + output->nbytes, bytes, nbytes);
	output->nbytes += nbytes;
}

static struct byte_buffer make_expected_output(struct byte_buffer input,
					       const struct expected_output_params *params)
{
	const size_t record_nbytes = params->record_nbytes;
	const char *first = (const char *)input.data + params->skip_nbytes;
	const size_t n = (input.nbytes - params->skip_nbytes) / record_nbytes;
	const size_t trailer_nbytes = (input.nbytes - params->skip_nbytes) % record_nbytes;
	const char **records = malloc(n * sizeof *records);
	struct byte_buffer output = { malloc(input.nbytes), 0 };
	size_t n_kept = 0;

	require(records && output.data, "memory");
	for (size_t i = 0; i < n; i++)
		records[i] = first + i * record_nbytes;
	qsort_r(records, n, sizeof *records, compare_records, (void *)params);
	append_bytes(&output, input.data, params->skip_nbytes);
	for (size_t i = 0; i < n && n_kept < params->limit; i++) {
		if (params->unique && i > 0 &&
		    compare_keys(params, records[i], records[i - 1]) == 0)
			continue;
		append_bytes(&output, records[i], record_nbytes);
		n_kept++;
	}
	append_bytes(&output, first + n * record_nbytes, trailer_nbytes);
	free(records);
	return output;
}

static int compare_lines(const void *a, const void *b)
{
	const struct byte_buffer *x = a, *y = b;
	const size_t n = x->nbytes < y->nbytes ? x->nbytes : y->nbytes;
	const int order = memcmp(x->data, y->data, n);

	return order ? order : (x->nbytes > y->nbytes) - (x->nbytes < y->nbytes);
}

/* Each line of the text, without its end. Returns their number. */
static size_t divide_lines(struct byte_buffer text, struct byte_buffer *ret_lines)
{
	char *line = text.data, *end = line + text.nbytes;
	size_t n = 0;

	while (line < end) {
		char *found = memchr(line, '\n', (size_t)(end - line));

		found = found ? found : end;
		ret_lines[n++] = (struct byte_buffer){ line, (size_t)(found - line) };
		line = found + 1;
	}
	return n;
}

static struct byte_buffer make_expected_lines(struct byte_buffer text, bool unique)
{
	const size_t n_copies = unique ? 1 : LINES_N_INPUTS;
	struct byte_buffer *lines = malloc((text.nbytes + 1) * sizeof *lines);
	struct byte_buffer output = { malloc(n_copies * (text.nbytes + 1)), 0 };
	size_t n;

	require(lines && output.data, "memory");
	n = divide_lines(text, lines);
	qsort(lines, n, sizeof *lines, compare_lines);
	for (size_t i = 0; i < n; i++) {
		if (unique && i > 0 && compare_lines(&lines[i - 1], &lines[i]) == 0)
			continue;
		for (size_t j = 0; j < n_copies; j++) {
			append_bytes(&output, lines[i].data, lines[i].nbytes);
			append_bytes(&output, "\n", 1);
		}
	}
	free(lines);
	return output;
}

static void write_sorted_inputs(struct byte_buffer few)
{
	const struct expected_output_params *params = &expected_params[EXPECTED_SORTED];
	char *first = few.data;

	for (size_t i = 0, begin = 0, end; i < N_SORTED_INPUTS; i++, begin = end) {
		char name[] = "part0";
		struct byte_buffer sorted_input;

		name[4] += (char)i;
		end = few.nbytes / 8 * (i + 1) / N_SORTED_INPUTS * 8;
		sorted_input = make_expected_output(
			(struct byte_buffer){ first + begin, end - begin }, params);
		write_file(name, sorted_input.data, sorted_input.nbytes);
		free(sorted_input.data);
	}
}

/* Make a .npy file of the numbers. */
static struct byte_buffer make_npy(struct byte_buffer numbers)
{
	enum { HEADER_NBYTES = 128, PREFIX_NBYTES = 10 };
	static const char prefix[PREFIX_NBYTES] = "\x93NUMPY\1\0\x76";
	struct byte_buffer npy = { malloc(HEADER_NBYTES + numbers.nbytes), 0 };
	char text[HEADER_NBYTES - PREFIX_NBYTES];
	int n;

	require(npy.data != NULL, "memory");
	memset(text, ' ', sizeof text);
	n = snprintf(text, sizeof text,
		     "{'descr': [('n', '<u8')], 'fortran_order': False, 'shape': (%zu,), }",
		     numbers.nbytes / 8);
	text[n] = ' ';
	text[sizeof text - 1] = '\n';
	append_bytes(&npy, prefix, sizeof prefix);
	append_bytes(&npy, text, sizeof text);
	append_bytes(&npy, numbers.data, numbers.nbytes);
	return npy;
}

void expected_outputs_make(struct expected_output_set *expected, enum expected_output which)
{
	const struct expected_output_params *params = &expected_params[which];
	struct byte_buffer *output = &expected->outputs[which], input = expected->input, unique;

	if (output->data)
		return;
	if (params->uses_few_input)
		input.nbytes = few_input_n_keys * sizeof(uint64_t);
	if (which == EXPECTED_LINES || which == EXPECTED_UNIQUE_LINES) {
		*output = make_expected_lines(input, which == EXPECTED_UNIQUE_LINES);
	} else if (which == EXPECTED_NPY) {
		unique = make_expected_output(input, params);
		*output = make_npy(unique);
		free(unique.data);
	} else {
		*output = make_expected_output(input, params);
	}
}

void expected_outputs_create(struct expected_output_set *ret_expected)
{
	const size_t n = input_n_keys;
	uint64_t *keys = malloc(n * sizeof *keys), x = 1;
	const struct byte_buffer input = { keys, n * sizeof *keys };
	const struct byte_buffer few = { keys, few_input_n_keys * sizeof *keys };

	require(keys != NULL, "memory");
	for (size_t i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		keys[i] = x >> 46; /* 18 bits: a third of 200,000 keys are duplicates */
	}
	ret_expected->input = input;
	write_file("input", input.data, input.nbytes);
	write_file("few", few.data, few.nbytes);
	write_zst("input.zst", input);
	write_gzip("input.gz", input);
	expected_outputs_make(ret_expected, EXPECTED_SORTED);
	ret_expected->npy = make_npy(ret_expected->outputs[EXPECTED_SORTED]);
	write_file("sorted", ret_expected->outputs[EXPECTED_SORTED].data, input.nbytes);
	write_sorted_inputs(few);
	write_file("names", "input", sizeof "input");
	test_part_files_write_sorted(ret_expected->outputs[EXPECTED_SORTED]);
}

void expected_outputs_free(struct expected_output_set *expected)
{
	free(expected->input.data);
	free(expected->npy.data);
	for (int i = 0; i < N_EXPECTED_OUTPUTS; i++)
		free(expected->outputs[i].data);
}
