/*
 * sort_internal.h - the state of a sort, shared by the files that carry it out
 *
 *	sort.c			the sort on one page
 *	sort_phases.c		its phases
 *	distributed_sort.c	the additional steps of several ranks
 *	distributed_exchange.c	their splitters and the exchange of runs
 *
 * The other modules of src/sort see only what they are passed.
 */
#pragma once

#include "src/exchange/exchange.h"
#include "src/run/run.h"
#include "src/sort/setup.h"
#include "src/sort/sort_output.h"

/*
 * Evidence that the output is correct. Every record is digested when it is read, when it is
 * written, and when -u drops it, so that as multisets, up to a probability of 2^-64,
 *
 *	read = written + dropped
 *
 * and the merge counts neighbours in the output that are out of order.
 */
struct integrity {
	struct record_totals totals;
	struct merge_result result; /* totals of the final merge */
};

/* Used if there are several ranks. */
struct distributed_sort {
	struct peer_memory *peer_memory;
	struct all_to_all *all_to_all;   /* the runs are exchanged in memory, */
	struct remote_runs *remote_runs; /* or read from the ranks that have stored them */
	uint64_t *cuts;                  /* of sort.parent_runs, between the ranks' partitions */
	struct merge_edges edges;        /* first and last key of this rank's partition */
	uint64_t n_total;                /* records that all ranks write */
	bool is_complete;                /* the output is committed */
};

struct sort {
	struct resolved_spec resolved;
	const struct sort_spec *spec; /* resolved.spec */
	struct job job;
	struct checkpoint *checkpoint; /* or NULL */
	struct sort_output output;
	struct run_list runs;        /* the runs that this process merges */
	struct run_list parent_runs; /* whole runs, if those in `runs` are parts of runs */
	struct input_runs *inputs;   /* of a merge: owns the files that the runs read */
	struct integrity integrity;
	struct distributed_sort distributed;
	struct sort_summary summary;
};

/* --- sort_phases.c --- */

/* Fill sort.runs: restore runs from the checkpoint, generate runs, or open merge inputs. */
int sort_create_runs(struct sort *sort);

/*
 * Merge runs until the final merge can take all of them; or to a single run, if the number of
 * records must be known before the final merge.
 */
int sort_reduce_runs(struct sort *sort);

/* Merge all runs into the output. */
int sort_run_final_merge(struct sort *sort);

/* Check the output: the evidence, and with --verify the bytes. */
int sort_check_output(struct sort *sort);

int sort_commit_output(struct sort *sort);

/* Set sort.summary. May close runs and chunk pool to measure peak rates. */
void sort_collect_summary(struct sort *sort);

/*
 * Fill sort.runs with the items [lower_cuts[i], upper_cuts[i]) of each run of sort.parent_runs,
 * none of which is resident.
 */
int sort_slice_runs(struct sort *sort, const uint64_t *lower_cuts, const uint64_t *upper_cuts);

/* Merge the resident runs into a stored run, which other ranks or a resumed sort can read. */
int sort_store_resident_runs(struct sort *sort);

/* Check the evidence. Returns 0, or -EIO for a fault of gsort or of the machine. */
int integrity_check(const struct integrity *integrity, const struct job *job);

/* Copy the plan into the summary. */
void sort_summary_set_plan(const struct plan *plan, struct sort_summary *summary);
