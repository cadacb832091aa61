/*
 * part_files_check.h - write and check the part files of an output, old and new ones
 */
#pragma once

#include "tests/fault/test_files.h"

/* Write a directory "sorted-parts" with the sorted 64-bit numbers in three part files. */
void test_part_files_write_sorted(struct byte_buffer sorted);

/* Write a directory "divided" of older part files, after removing all that runs have left. */
void test_part_files_write_old(void);

/* Remove "divided", and temporary directories that runs could not remove. */
void test_part_files_remove(void);

/* Return whether the older part files and their manifest are unchanged. */
bool test_part_files_are_old(void);

/* Return whether the new part files match their manifest and contain exactly the expected bytes. */
bool test_part_files_contain(struct byte_buffer expected);

/* The name of the directory, surrounded by blanks. */
extern const char test_part_file_names[];
