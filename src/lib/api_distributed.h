/*
 * api_distributed.h - sorts of several MPI ranks, for gsort-mpi
 *
 * Not part of include/gsort.h. Without ranks (src/comm/comm.h) the functions do nothing, unless
 * they say more. Errors are negative errno values (reported).
 */
#pragma once

#include "include/gsort.h"

struct comm;

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
