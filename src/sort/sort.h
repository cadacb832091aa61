/*
 * sort.h - sort, check or explain what a spec describes
 */
#pragma once

#include "src/cost/estimate.h"
#include "src/plan/sort_spec.h"
#include "src/sort/sort_summary.h"

/* Sort or merge the inputs into the output. After a failure it is unchanged. stats may be NULL. */
int sort_run(const struct sort_spec *spec, const struct sort_observer *observer,
	     struct stats *stats, struct sort_summary *ret_summary);

/*
 * Check whether the input is sorted. `checker` is passed to spec_open_inputs(). *ret_disorder: the
 * number, from 1, of the first record that sorts before its predecessor; or 0.
 */
int sort_check(const struct sort_spec *spec, const char *checker,
	       const struct sort_observer *observer, struct stats *stats,
	       struct sort_summary *ret_summary, uint64_t *ret_disorder);

/* Space on a disk: needed at most, and available. */
struct disk_space {
	bool is_needed_known, is_available_known;
	uint64_t needed_nbytes, available_nbytes;
};

/* What a sort would do, and how long that would take. Of lines, the time is not estimated. */
struct explanation {
	struct input_content content;
	struct disk_space temp_space; /* of an endless input: for each PLAN_UNBOUNDED_UNIT_NBYTES */
	struct disk_space output_space;
	bool output_may_be_smaller; /* with -u of lines, for example */
	struct memory_estimate memory;
	struct plan plan;
	struct estimate estimate;        /* of the process, or of each rank */
	struct cluster_estimate cluster; /* n_ranks 0: one process; else the plan is for one rank */
	bool is_size_assumed;            /* cluster.total_input_nbytes */
	struct sort_summary summary;
};

/* Assumptions for --explain (--assume-size, --assume-rates). */
struct assumptions {
	uint64_t nbytes;              /* of an input of unknown size; 0: endless */
	struct rank_rates rank_rates; /* 0: default */
};

/*
 * Plan the sort without running it. Only unnamed temporary files are written. With several ranks,
 * rank 0 plans for all. If the ranks are assumed (spec.n_assumed_ranks), the directories and
 * devices of this machine do not matter, nor does an input of assumed size.
 */
int sort_explain(const struct sort_spec *spec, const struct assumptions *assumed,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation);

/*
 * Find the available space, for the temporary files without memory_nbytes that are in memory, and
 * check that the output can be created. What is needed is set. Returns 0 or a negative errno.
 */
int sort_find_space(const struct sort_spec *spec, const struct syscalls *calls,
		    uint64_t memory_nbytes, struct explanation *explanation);
