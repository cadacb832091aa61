/*
 * part_files_check - the part files of an output, new ones and those of before
 */
#pragma once

#include "tests/fault/test_files.h"

/* A list "sorted.parts", and its parts: all of the numbers of 64 bits, in three files. */
void parts_write_sorted(struct bytes sorted);

/* Nothing but the older parts, with a list of them. */
void parts_put_older(void);

void parts_remove(void);

/* They are all there, and their list. */
bool parts_are_older(void);

/* The new ones are, and together what is right; with a list of them, and none of the older. */
bool parts_hold(struct bytes right);

/* What part files are called, between blanks; of no more than 256 characters. */
extern const char parts_names[];
