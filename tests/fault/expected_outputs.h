/*
 * expected_outputs - the inputs, and what is right to make of them
 */
#pragma once

#include "tests/fault/test_files.h"

/* The right result. */
enum answer {
	ANSWER_SORTED, /* the keys */
	ANSWER_UNIQUE, /* without those that are equal to the one before */
	ANSWER_RECORDS,
	ANSWER_FIRST_RECORDS,
	ANSWER_LONG_KEYS,
	ANSWER_MEDIUM_RECORDS,
	ANSWER_LARGE_RECORDS,
	ANSWER_FEW, /* the keys of "few" */
	ANSWER_FEW_UNIQUE,
	ANSWER_FEW_RECORDS,
	ANSWER_FEW_PAIRS,
	ANSWER_FEW_LONG_KEYS,
	ANSWER_FRAMED, /* the keys between a header and an incomplete record */
	ANSWER_ARRAY,  /* of numpy: the keys without those that are equal to the one before */
	N_ANSWERS,
};

/* Of these. */
struct answers {
	struct bytes input;
	struct bytes array; /* of numpy, of the keys in order */
	struct bytes right[N_ANSWERS];
};

/*
 * Write the inputs into the working directory: input, input.zst, sorted, few, part0 to part5
 * (sorted each), and names, which has "input" for --files0-from.
 */
void answers_make(struct answers *ret_answers);
void answers_free(struct answers *answers);

/*
 * How many numbers of 8 bytes the input has, and how many of them are also in "few" and the parts:
 * as the modes (sort_scenarios.h) want them.
 */
extern const size_t answers_n_numbers, answers_n_few;

/* All these names, surrounded by blanks. */
extern const char input_names[];
