/*
 * sort_internal - a sort, as the files that carry it out share it
 *
 *	sort.c		the page
 *	prepare_runs.c		the sorted runs that the final merge is made of
 *	final_merge.c	these as the output
 *	distributed_sort.c		what is one rank's of several
 *	distributed_merge.c	and of inputs that are sorted already
 *	sort_summary.c		what is told of it
 *
 * The others, setup.c, sort_output.c, integrity.c and output_framing.c, know of it only what they are given.
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
struct share {
	struct near *near;   /* what of the others is read where it is */
	struct trade *trade; /* of runs in memory, or: */
	struct depot *depot;
	uint64_t *cuts;           /* of the own runs, which are in sort.whole */
	struct merge_edges edges; /* of the own range */
	uint64_t n_all;           /* records that all ranks write */
	bool is_complete;         /* all is written, and the output has its name */
};

struct sort {
	struct settled settled;
	const struct sort_spec *spec; /* that of it */
	struct job job;
	struct checkpoint *checkpoint; /* NULL: none */
	struct result result;
	struct around around; /* its records */
	struct run_store store;
	struct run_store whole;    /* of parts: the runs that those are parts of */
	struct input_runs *inputs; /* of a merge: owns what input runs read from */
	struct account account;
	struct share share;
	struct sort_facts facts;
};

/* --- prepare_runs.c --- */

/*
 * All of the input as runs in the store: taken up from a checkpoint, formed, or, of a merge, the
 * inputs themselves. Returns 0, or a negative errno after a message.
 */
int runs_make(struct sort *sort);

/*
 * sort.whole are runs that are not resident: in sort.store, of each what is in [begin, end), if
 * anything. The same returns.
 */
int runs_take_parts(struct sort *sort, const uint64_t *begins, const uint64_t *ends);

/*
 * As few of them as can be merged at once; or one, without what -u drops, if it must be known how
 * many records there are. Returns 0, or a negative errno after a message.
 */
int runs_reduce(struct sort *sort);

/*
 * What is resident in the end becomes a run in the temporary space, if others than this merge are
 * to read it: ranks, with memory for it, or whoever takes up a checkpoint. Returns as above.
 */
int runs_store_resident(struct sort *sort);

/* What windows of a merge may take: everything that no resident run lives in. */
uint64_t runs_leave_nbytes(struct sort *sort);

/* What is written of all runs in the store. */
uint64_t runs_output_nbytes(const struct sort *sort);

/* --- final_merge.c --- */

/*
 * Merge all runs into the output; is it what it must be; and give it its name. All return 0, or a
 * negative errno after a message.
 */
int writing_merge(struct sort *sort);
int writing_check(struct sort *sort);
int writing_commit(struct sort *sort);

/* --- sort_summary.c --- */

/* From now on the job's stats know what of it goes to disk, and to other ranks; and no more. */
void facts_watch(struct sort *sort);
void facts_look_away(const struct sort *sort);

void facts_note_plan(const struct plan *plan, struct sort_facts *facts);

/*
 * All is done: what is known of it now; and, if that is wanted, how fast the stages that took long
 * can be alone, for which runs and chunk buffers are closed.
 */
void facts_note(struct sort *sort);
