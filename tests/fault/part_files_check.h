/*
 * part_files_check - the part files of an output, new ones and those of before
 */
#pragma once

#include "tests/fault/test_files.h"

/* Write a directory "sorted-parts": all of the numbers of 64 bits, in three part files. */
void test_part_files_write_sorted(struct byte_buffer sorted);

/* Write a directory "divided" of older part files, and nothing else of such names. */
void test_part_files_write_old(void);

void test_part_files_remove(void);

/* Are they all there, with their manifest? */
bool test_part_files_are_old(void);

/* Are the new ones, with their manifest, together what is right, and none of the older there? */
bool test_part_files_contain(struct byte_buffer expected);

/* The name of the directory, between blanks. */
extern const char test_part_file_names[];
