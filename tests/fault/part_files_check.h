/*
 * part_files_check - the part files of an output, new ones and those of before
 */
#pragma once

#include "tests/fault/test_files.h"

/* A list "sorted.parts", and its parts: all of the numbers of 64 bits, in three files. */
void test_part_files_write_sorted(struct byte_buffer sorted);

/* Nothing but the older parts, with a list of them. */
void test_part_files_write_old(void);

void test_part_files_remove(void);

/* They are all there, and their list. */
bool test_part_files_are_old(void);

/* The new ones are, and together what is right; with a list of them, and none of the older. */
bool test_part_files_contain(struct byte_buffer expected);

/* What part files are called, between blanks; of no more than 256 characters. */
extern const char test_part_file_names[];
