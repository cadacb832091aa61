/*
 * api_distributed.h - sorts of several MPI ranks, for gsort-mpi
 *
 * Not part of include/gsort.h. Without ranks (src/comm/comm.h) the functions do nothing, unless
 * they say more. Errors are negative errno values (reported).
 */
#pragma once

#include <stdbool.h>

#include "include/gsort.h"

struct comm;
struct sort_spec;

/* --- For the program --- */

/* Sort with these ranks, which must outlive the handle. Call it before any other function. */
void api_distributed_set_comm(struct gsort *sort, struct comm *comm);

/* Like gsort_get_option() and gsort_get_option_word(), with the options of ranks. */
int api_distributed_get_option(unsigned i, struct gsort_option *ret_option, size_t size);
const char *api_distributed_get_word(unsigned i, unsigned n, char *text);

/* Refuse what several ranks do not support, and check the request and its files. */
int api_distributed_check(struct gsort *sort);

/*
 * Collective: compare options that all ranks must share (OPTION_MPI_SAME_ON_ALL) before any rank
 * starts. One rank that differs from the first reports the error.
 */
int api_distributed_compare_options(struct gsort *sort);

/* Return --timeout in ns, for comm_params.timeout_ns. */
uint64_t api_distributed_timeout_ns(const struct gsort *sort);

/* --- For the library --- */

/* Require that a list of names ("-": standard input) is a regular file, which every rank reads. */
int api_distributed_check_files0(const struct gsort *sort, const char *path);

/*
 * For --explain --ranks=N: reject options that gsort-mpi does not support, and plan for CPUs,
 * with the memory and CPUs of this host unless -S and --parallel were given.
 * Without --ranks: reject --assume-rates.
 */
int api_distributed_check_planned(const struct gsort *sort, struct sort_spec *spec);

/* After --explain --ranks=N: print a notice about memory and CPUs that were assumed. */
void api_distributed_notice_assumed(const struct gsort *sort);

/* Return whether this process writes the reports: it is the first rank, or the only process. */
bool api_is_reporting_rank(const struct gsort *sort);

/* Collective: trace on all ranks if the first rank traces. */
int api_distributed_open_trace(struct gsort *sort);

/* Let the first rank query the progress of the others, or stop that. Requires sort->stats. */
int api_distributed_open_progress(struct gsort *sort);
void api_distributed_close_progress(struct gsort *sort);

/* Collective, after success: collect statistics and traces of all ranks on the first one. */
int api_distributed_gather_stats(struct gsort *sort);

/* Divide memory and CPUs of a host among its ranks, unless -S or --parallel were given. */
void api_distributed_divide_host(struct comm *comm, struct sort_spec *spec);
