/*
 * api_cli.h - functions of the library that only gsort and gsort-mpi call
 *
 * Not part of include/gsort.h. Errors are negative errno values (reported).
 */
#pragma once

#include <stdio.h>

#include "include/gsort.h"

struct comm;

/* --- Lines (api_lines.c) --- */

/* Write to standard output. */
void api_lines_write_to_stdout(struct gsort *sort);

/* After a check: write the line that is not in order, as GNU sort. */
void api_lines_write_disorder(const struct gsort *sort, FILE *stream);

/*
 * --- Several MPI ranks (api_distributed.c) ---
 *
 * Without ranks (src/comm/comm.h) these functions do nothing, unless they say more.
 */

/* Sort with these ranks, which must outlive the handle. Call it before any other function. */
void api_distributed_set_comm(struct gsort *sort, struct comm *comm);

/* Like gsort_get_option() and gsort_get_option_word(), with the options of ranks, or of lines. */
int api_distributed_get_option(unsigned i, struct gsort_option *ret_option, size_t size);
int api_distributed_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size);
const char *api_distributed_get_word(unsigned i, unsigned n, char *text);
const char *api_distributed_get_line_word(unsigned i, unsigned n, char *text);

/* Refuse what several ranks do not support, and check the request and its files. */
int api_distributed_check(struct gsort *sort);

/*
 * Collective: compare options that all ranks must share (OPTION_MPI_SAME_ON_ALL) before any rank
 * starts. One rank that differs from the first reports the error.
 */
int api_distributed_compare_options(struct gsort *sort);

/* Return --timeout in ns, for comm_params.timeout_ns. */
uint64_t api_distributed_timeout_ns(const struct gsort *sort);
