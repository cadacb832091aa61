/*
 * expected_outputs - the inputs, and what is right to make of them
 */
#pragma once

#include "tests/fault/test_files.h"

/* The right result. */
enum expected_output {
	EXPECTED_SORTED, /* the keys */
	EXPECTED_UNIQUE, /* without those that are equal to the one before */
	EXPECTED_RECORDS,
	EXPECTED_FIRST_RECORDS,
	EXPECTED_LONG_KEYS,
	EXPECTED_MEDIUM_RECORDS,
	EXPECTED_LARGE_RECORDS,
	EXPECTED_FEW, /* the keys of "few" */
	EXPECTED_FEW_UNIQUE,
	EXPECTED_FEW_RECORDS,
	EXPECTED_FEW_PAIRS,
	EXPECTED_FEW_LONG_KEYS,
	EXPECTED_FRAMED, /* the keys between a header and an incomplete record */
	EXPECTED_NPY,    /* of numpy: the keys without those that are equal to the one before */
	N_EXPECTED_OUTPUTS,
};

/* Of these. */
struct expected_output_set {
	struct byte_buffer input;
	struct byte_buffer npy; /* of numpy, of the keys in order */
	struct byte_buffer outputs[N_EXPECTED_OUTPUTS];
};

/*
 * Write the inputs into the working directory: input, input.zst, input.gz, sorted, few, part0 to
 * part5 (sorted each), and names, which has "input" for --files0-from.
 */
void expected_outputs_create(struct expected_output_set *ret_expected);
void expected_outputs_free(struct expected_output_set *expected);

/*
 * How many numbers of 8 bytes the input has, and how many of them are also in "few" and the parts:
 * as the modes (sort_scenarios.h) want them.
 */
extern const size_t input_n_keys, few_input_n_keys;

/* All these names, surrounded by blanks. */
extern const char input_file_names[];
