/*
 * api_lines.h - sorts of lines: the option "lines" of include/gsort.h
 *
 * The options of lines are recorded one by one, and set again when the sort begins. So a sort that
 * is refused can be corrected.
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

/* As gsort_get_line_option() and gsort_get_option_word(), with the options of ranks. */
int api_lines_get_option(unsigned i, struct gsort_option *ret_option, size_t size);
const char *api_lines_get_word(unsigned i, unsigned n, char *text);

void api_lines_free(struct api_lines *lines);

/*
 * Set an option. The strings must live as long as the handle. from_cli: accept options that only a
 * program can implement. Returns 0 or a negative errno (reported).
 */
int api_lines_set(struct gsort *sort, const char *name, const char *value, bool from_cli);

/* As gsort_get_set(). */
const char *api_lines_get_set(const struct gsort *sort, const char *name);

/* Return whether a handle of records should be switched to lines for this option. */
bool api_lines_have_option(const char *name);

/* Return the operation that the options of a command line ask for: enum api_operation. */
int api_lines_operation(const struct gsort *sort);

/* Complete the options when inputs and output are known. */
int api_lines_finalize(struct gsort *sort);

/* Run the operation in the thread of the sort. */
int api_lines_run(struct gsort *sort);

/* After a check of a command line: write the line that is not in order, as GNU sort. */
void api_lines_write_disorder(const struct gsort *sort, FILE *stream);

/* Write the plan of the operation API_EXPLAIN. */
int api_lines_write_plan(const struct gsort *sort, bool is_json, FILE *stream);
