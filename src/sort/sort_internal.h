/*
 * sort_internal - a sort, as the files that carry it out share it
 *
 *	sort.c		the page
 *	prepare_runs.c		the sorted runs that the final merge is made of
 *	final_merge.c	these as the output
 *	distributed_sort.c		what is one rank's of several
 *	distributed_presorted.c	and of inputs that are sorted already
 *	sort_summary.c		what is told of it
 *
 * The others, setup.c, sort_output.c, integrity.c and output_framing.c, know of it only what they
 * are given.
 */
#pragma once

#include "src/run/input_runs.h"
#include "src/exchange/remote_runs.h"
#include "src/exchange/all_to_all.h"
#include "src/sort/integrity.h"
#include "src/sort/sort_output.h"
#include "src/sort/setup.h"
#include "src/sort/sort.h"

/* Of a sort that several ranks do. */
struct distributed_sort {
	struct peer_memory *peer_memory; /* what of the others is read where it is */
	struct all_to_all *all_to_all;   /* of runs in memory, or: */
	struct remote_runs *remote_runs;
	uint64_t *cuts;           /* of the own runs, which are in sort.whole */
	struct merge_edges edges; /* of the own range */
	uint64_t n_total;         /* records that all ranks write */
	bool is_complete;         /* all is written, and the output has its name */
};

struct sort {
	struct resolved_spec resolved;
	const struct sort_spec *spec; /* that of it */
	struct job job;
	struct checkpoint *checkpoint; /* NULL: none */
	struct sort_output output;
	struct output_framing framing; /* its records */
	struct run_list store;
	struct run_list parent_runs; /* of parts: the runs that those are parts of */
	struct input_runs *inputs;   /* of a merge: owns what input runs read from */
	struct integrity integrity;
	struct distributed_sort distributed;
	struct sort_summary summary;
};

/* --- prepare_runs.c --- */

/*
 * All of the input as runs in the store: taken up from a checkpoint, formed, or, of a merge, the
 * inputs themselves. Returns 0, or a negative errno after a message.
 */
int prepare_runs_create(struct sort *sort);

/*
 * sort.whole are runs that are not resident: in sort.store, of each what is in [begin, end), if
 * anything. The same returns.
 */
int prepare_runs_slice(struct sort *sort, const uint64_t *lower_cuts, const uint64_t *upper_cuts);

/*
 * As few of them as can be merged at once; or one, without what -u drops, if it must be known how
 * many records there are. Returns 0, or a negative errno after a message.
 */
int prepare_runs_reduce(struct sort *sort);

/*
 * What is resident in the end becomes a run in the temporary space, if others than this merge are
 * to read it: ranks, with memory for it, or whoever takes up a checkpoint. Returns as above.
 */
int prepare_runs_store_resident(struct sort *sort);

/* What windows of a merge may take: everything that no resident run lives in. */
uint64_t prepare_runs_merge_nbytes(struct sort *sort);

/* What is written of all runs in the store. */
uint64_t prepare_runs_output_nbytes(const struct sort *sort);

/* --- final_merge.c --- */

/*
 * Merge all runs into the output; is it what it must be; and give it its name. All return 0, or a
 * negative errno after a message.
 */
int final_merge_run(struct sort *sort);
int final_merge_check(struct sort *sort);
int final_merge_commit(struct sort *sort);

/* --- sort_summary.c --- */

/* From now on the job's stats know what of it goes to disk, and to other ranks; and no more. */
void sort_summary_attach_stats(struct sort *sort);
void sort_summary_detach_stats(const struct sort *sort);

void sort_summary_set_plan(const struct plan *plan, struct sort_summary *summary);

/*
 * All is done: what is known of it now; and, if that is wanted, how fast the stages that took long
 * can be alone, for which runs and chunk buffers are closed.
 */
void sort_summary_collect(struct sort *sort);
