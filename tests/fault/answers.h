/*
 * answers - the inputs, and what is right to make of them
 */
#pragma once

#include "tests/fault/contents.h"

/* The right result. */
enum answer {
	ANSWER_SORTED, /* the keys */
	ANSWER_UNIQUE, /* without those that are equal to the one before */
	ANSWER_RECORDS,
	ANSWER_FIRST_RECORDS,
	ANSWER_LONG_KEYS,
	ANSWER_FRAMED, /* the keys between a header and an incomplete record */
	N_ANSWERS,
};

/* Of these. */
struct answers {
	struct bytes input;
	struct bytes right[N_ANSWERS];
};

/*
 * Write the inputs into the working directory: input, input.zst, sorted, part0 to part5 (sorted
 * each), and names, which has "input" for --files0-from.
 */
void answers_make(struct answers *ret_answers);
void answers_free(struct answers *answers);

/* All these names, surrounded by blanks. */
extern const char input_names[];
