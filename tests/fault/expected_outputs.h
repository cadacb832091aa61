/*
 * expected_outputs.h - the inputs of the sorts, and their expected outputs
 */
#pragma once

#include "tests/fault/test_files.h"

/* The input as text takes more memory than lines are given if it is read so often. */
enum { LINES_N_INPUTS = 3 };

/* The expected content of an output. */
enum expected_output {
	EXPECTED_SORTED, /* the keys */
	EXPECTED_UNIQUE, /* the keys without duplicates */
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
	EXPECTED_NPY,    /* a .npy file of the keys without duplicates */
	EXPECTED_LINES,  /* the lines of LINES_N_INPUTS times the input */
	EXPECTED_UNIQUE_LINES,
	N_EXPECTED_OUTPUTS,
};

/* All inputs, and the expected outputs that have been made. */
struct expected_output_set {
	struct byte_buffer input;
	struct byte_buffer npy; /* a .npy file of the sorted keys */
	struct byte_buffer outputs[N_EXPECTED_OUTPUTS];
};

/*
 * Write the inputs into the working directory: input, input.zst, input.gz, sorted, few, part0 to
 * part5 (each sorted), and names, a list for --files0-from that contains "input".
 */
void expected_outputs_create(struct expected_output_set *ret_expected);

/* Make an expected output, unless it is there. */
void expected_outputs_make(struct expected_output_set *expected, enum expected_output which);
void expected_outputs_free(struct expected_output_set *expected);

/*
 * The number of 8-byte keys in the input, and of those that are also in "few" and in the parts.
 * Defined beside the scenarios (sort_scenarios.h).
 */
extern const size_t input_n_keys, few_input_n_keys;

/* The names of all inputs, surrounded by blanks. */
extern const char input_file_names[];
