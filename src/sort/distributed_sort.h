/*
 * distributed_sort - what of a sort is one rank's, and what all ranks have to agree on
 *
 *	open inputs	the first rank does, and then all others
 *	begin		read the r-th part of the input; blocks of runs are as long with everybody
 *	(prepare_runs.c)	runs of that part, as always
 *	exchange	cut the runs of all ranks, and take the own range of each in their place:
 *			in memory, where all are there and have room; else all are stored
 *	   or, of a merge, cut inputs: every rank opens all of them, and takes its range of each
 *	place		where in the output that is
 *	(the merge)	of the range
 *	settle		all is written
 *	check		what all have read is what all have written, in order
 *	commit		the first rank gives the file its name, then all return
 *
 * The others have opened the file that the first one has begun (io/output/output.h). Of what is
 * written, only what lies around the records is the first rank's alone.
 *
 * Every rank calls these functions, in this order. They return 0 or a negative errno, after a
 * message of the rank that knows the reason; then this process, and all others, are to be ended by
 * comm_abort(). With one process (spec.ranks NULL) none is called.
 */
#pragma once

#include "src/sort/sort_internal.h"

struct fingerprint;

/*
 * What the first rank has come to is everybody's. It says why; the others wait to be ended, so that
 * it has the time to.
 */
int distributed_broadcast_status(struct comm *comm, int r);

/*
 * Of ranks that all have something to complain of the first one is to say so: 1 if this is it, 0 if
 * there is none. -ECANCELED if it is another; that one ends all, and has had the time to speak.
 */
int distributed_elect_reporter(struct comm *comm, bool has_error);

/* The first rank's description, where each has its own; for free(). */
int distributed_receive_description(struct comm *comm, const struct fingerprint *own,
				    struct fingerprint *ret_first);

/* Can ranks do that, with inputs whose names every one can open? 0, or -EINVAL after a message. */
int distributed_check_spec(const struct sort_spec *spec);

/* What several ranks cannot do is refused. Of an input that is not, the size is known. */
int distributed_check_supported(const struct sort_spec *spec, const struct input *input);

/* All have been asked for the same, and see the same files, before anybody opens any others. */
int distributed_compare_specs(const struct sort_spec *spec);

/* Of n records, those of one rank begin there, and end where those of the next one would begin. */
uint64_t distributed_input_begin(const struct comm *comm, unsigned rank, uint64_t n);

/* setup_open_inputs(): what is wrong with inputs for all, or cannot be done, is said once. */
int distributed_open_inputs(struct sort *sort, const struct sort_spec *spec,
			    const struct sort_observer *observer);

/* All have been asked for the same; the part of the input. */
int distributed_begin(struct sort *sort);

/*
 * In the place of checkpoint_open(), behind that. What is wrong with one is said by the first rank
 * that finds something, and nobody goes on.
 */
int distributed_open_checkpoint(struct sort *sort);

/* What all have taken up from their checkpoints, which they have. */
int distributed_report_resumed(struct sort *sort);

/* The plan is made: have blocks of one length, and on one machine one way through its cache. */
int distributed_agree_plan(struct sort *sort);

int distributed_exchange(struct sort *sort);

/*
 * Of a merge, in the place of that: the inputs are in sort.store as runs, and then the own range of
 * each is (distributed_presorted.c).
 */
int distributed_partition_inputs(struct sort *sort);

/*
 * Parts that end at keys begin at the sum of cuts of all runs of sort.whole: of part i these are
 * cuts[i * n] and so on, for n runs.
 */
int distributed_place_part_files(struct sort *sort, const uint64_t *cuts);

/*
 * Of what is sorted already: is what all ranks have read of each part of a list what that says?
 * When all is read; told by the first rank, and its outcome is everybody's.
 */
int distributed_check_manifests(struct comm *comm, struct input *input);

int distributed_place_partition(struct sort *sort);

/* Behind the own part of the merge. */
int distributed_finish_partition(struct sort *sort);

/* In the place of integrity_check(). */
int distributed_check_output(struct sort *sort);

/* The own part is checked, and those of all others, when it returns. */
int distributed_complete(struct sort *sort);

/* r: what committing has come to at the first rank. Returns the same everywhere. */
int distributed_end(struct sort *sort, int r);

/*
 * The sort has failed with r: nothing that others still read here, or send, is touched any more, so
 * all of it can be closed.
 */
void distributed_abandon(const struct sort *sort, int r);

/* Runs of sort.store must be closed before, those of sort.whole after. */
void distributed_close(struct sort *sort);
