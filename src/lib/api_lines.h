/*
 * api_lines.h - sorts of lines: the option "lines" of include/gsort.h
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "include/gsort.h"

/* The option that switches a handle to lines. */
#define LINES_OPTION "lines"

struct api_lines;

/* Switch the handle to lines. Returns 0 or a negative errno (reported). */
int api_lines_enable(struct gsort *sort, const char *value);

/* For a program: write to standard output. */
void api_lines_write_to_stdout(struct gsort *sort);

void api_lines_free(struct api_lines *lines);

/* Complete the options when inputs and output are known. */
int api_lines_finalize(struct gsort *sort);

/* Run the operation in the thread of the sort. */
int api_lines_run(struct gsort *sort);

/* After a check of a command line: write the line that is not in order, as GNU sort. */
void api_lines_write_disorder(const struct gsort *sort, FILE *stream);

/* Write the plan of the operation API_EXPLAIN. */
int api_lines_write_plan(const struct gsort *sort, bool is_json, FILE *stream);
