/*
 * api_distributed - a sort that several processes do together
 *
 * Not for programs that use the library: who has ranks (src/comm/comm.h) is a program of ours.
 */
#pragma once

#include <stdbool.h>

#include "include/gsort.h"

struct comm;
struct sort_spec;

/* First of all: it is done by all ranks, each with the same options. They must outlive it. */
void api_distributed_set_comm(struct gsort *sort, struct comm *comm);

/*
 * The options of a sort in company, as gsort_get_option() and gsort_get_option_word() have those of
 * one that is alone.
 */
int api_distributed_get_option(unsigned i, struct gsort_option *ret_option, size_t size);
const char *api_distributed_get_word(unsigned i, unsigned n, char *text);

/*
 * Before it begins: what several ranks cannot do is refused. 0, or a negative errno after a
 * message.
 */
int api_distributed_check(struct gsort *sort);

/*
 * Before the names of inputs are read from that list ("-": standard input), which each rank does,
 * and the first one twice: one that can be read only once is refused, unless there is one rank. 0,
 * or -EINVAL after a message.
 */
int api_distributed_check_files0(const struct gsort *sort, const char *path);

/*
 * Every rank calls it, when all have been told what they are asked for, before any of them does it:
 * options that all must have alike (OPTION_MPI_SAME_ON_ALL) are compared. 0, or a negative errno,
 * after a message of one of the ranks that differ from the first.
 */
int api_distributed_compare_options(struct gsort *sort);

/* What is asked for as comm_params.timeout_ns. */
uint64_t api_distributed_timeout_ns(const struct gsort *sort);

/*
 * Of a sort by so many ranks as there are not (--ranks), which is only explained: what they could
 * not do is refused, and they have processors; and without it, what is said of them. 0, or -EINVAL
 * after a message.
 */
int api_distributed_check_planned(const struct gsort *sort, struct sort_spec *spec);

/* Does this process write the reports: is it alone, or the first rank? */
bool is_reporting_rank(const struct gsort *sort);

/*
 * It begins, and reports are open: if the first rank has a trace, all have one. And: it has ended,
 * and the first gets those of all. Every rank calls them. 0, or a negative errno after a message.
 */
int api_distributed_open_trace(struct gsort *sort);
int api_distributed_gather_trace(struct gsort *sort);

/*
 * There are stats: the first rank can ask the others how far they are (sort->news). 0, or a
 * negative errno after a message. And: nobody can.
 */
int api_distributed_open_progress(struct gsort *sort);
void api_distributed_close_progress(struct gsort *sort);

/*
 * It has ended well: what all have done is told to the first, who reports it. 0, or a negative
 * errno after a message.
 */
int api_distributed_gather_stats(struct gsort *sort);

/* What is not said is shared by the ranks of one machine: memory, and processors. */
void api_distributed_divide_host(struct comm *comm, struct sort_spec *spec);
