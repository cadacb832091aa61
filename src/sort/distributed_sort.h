/*
 * distributed_sort.h - a sort by several ranks
 *
 * Each rank executes sort.c for its part of the input, with these additional steps:
 *
 *	open inputs		on rank 0 first, so that errors are reported once
 *	begin			assign a part of the input to each rank
 *	agree on the plan	use the same block size everywhere
 *	exchange		cut the runs of all ranks at global splitters; each rank gets
 *				its partition of every run, in memory or from stored runs
 *	partition inputs	in a merge instead: every rank opens all inputs
 *	place			find the position of the partition in the output
 *	finish			exchange shared stripes after the final merge
 *	check			all records read by any rank were written, in order
 *	complete, end		rank 0 commits the output after all ranks have closed it
 *
 * All functions except distributed_check_spec(), distributed_check_supported() and
 * distributed_refuse_input() are collectives, called in this order. One rank reports an error; then
 * comm_abort() ends all. A single process (spec.comm NULL) calls none of them. Of n input records,
 * each rank reads an equal share (equal_share_begin()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/plan/job.h"

struct checkpoint;
struct comm;
struct fingerprint;
struct fingerprint_difference;
struct input;
struct layout;
struct part_inputs;
struct sort;
struct sort_observer;
struct sort_spec;
struct syscalls;

/*
 * Return the status of rank 0 on all ranks. After a failure the other ranks wait to be aborted, so
 * that rank 0 has time to report it.
 */
int distributed_broadcast_status(struct comm *comm, int r);

/*
 * Collective: elect the lowest rank that has an error as the reporter. Returns 1 on that rank, 0 if
 * no rank has an error, or -ECANCELED on the others, after the reporter has had time to report and
 * abort.
 */
int distributed_elect_reporter(struct comm *comm, bool has_error);

/* Report that this rank's description differs from that of rank 0. Returns a negative errno. */
typedef int report_difference_fn(const void *context,
				 const struct fingerprint_difference *difference);

/*
 * Collective: compare the description of each rank with that of rank 0. If any differ, the lowest
 * such rank reports it, and the others get -ECANCELED after it had time to report and abort.
 */
int distributed_compare_descriptions(struct comm *comm, const struct fingerprint *own,
				     report_difference_fn *report, const void *context);

/* Check that several ranks can sort inputs that all of them can open. Returns 0 or -EINVAL. */
int distributed_check_spec(const struct sort_spec *spec);

/*
 * Check that several ranks can sort the opened input. It then has a known size. Returns 0 or
 * -EINVAL.
 */
int distributed_check_supported(const struct sort_spec *spec, const struct input *input);

/* Report why several ranks cannot read an input of unknown size. Returns -EINVAL or -EISDIR. */
int distributed_refuse_input(const char *path);

/* Check that all ranks have the same spec and see the same files, before they open any others. */
int distributed_compare_specs(const struct sort_spec *spec);

/* Like setup_open_inputs(), with errors of all ranks reported once. */
int distributed_open_inputs(struct sort *sort, const struct sort_spec *spec,
			    const struct sort_observer *observer);

/* Compare the specs and assign the input. */
int distributed_begin(struct sort *sort);

/*
 * As checkpoint_open(), but open the checkpoint of each rank, or of none. The lowest rank that
 * fails reports the error.
 */
int distributed_open_checkpoint(const struct syscalls *io, const struct sort_spec *spec,
				const struct layout *layout, const struct input *input,
				uint64_t input_nbytes, struct checkpoint **ret_checkpoint);

/* Report how much of total_nbytes all ranks have restored; this one n_runs of nbytes. */
int distributed_report_resumed(struct comm *comm, size_t n_runs, uint64_t nbytes,
			       uint64_t total_nbytes);

/*
 * Agree on a block size, and on cache policies per host. The spill is open; *output_policy is that
 * of the output.
 */
int distributed_agree_plan(struct job *job, enum cache_policy *output_policy);

int distributed_exchange(struct sort *sort);

/* Reduce the runs in sort.runs, which are the whole inputs, to the partition of this rank. */
int distributed_partition_inputs(struct sort *sort);

/*
 * Check that all ranks together have read what the part manifests of the inputs list. Requires that
 * all ranks have read their parts. part_inputs: NULL: there are none.
 */
int distributed_check_manifests(struct comm *comm, struct part_inputs *part_inputs);

/*
 * Number the items of all ranks; this one has n. *ret_begin: the first number of each rank, and
 * that of all items; to be freed, also after a failure.
 */
int distributed_number_items(struct comm *comm, uint64_t n, uint64_t **ret_begin);

int distributed_place_partition(struct sort *sort);

/* Called after the final merge of the partition. */
int distributed_finish_partition(struct sort *sort);

/* Like integrity_check(), for all ranks. */
int distributed_check_output(struct sort *sort);

/* Requires that the runs of sort.runs are closed and those of sort.parent_runs are not. */
void distributed_close(struct sort *sort);
