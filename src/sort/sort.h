/*
 * sort - the whole sort (or merge) that a spec asks for
 */
#pragma once

#include "src/cost/estimate.h"
#include "src/cost/cluster_estimate.h"
#include "src/plan/sort_spec.h"
#include "src/sort/sort_summary.h"

/* Who wants to know more than the result. A zeroed struct is nobody. */
struct sort_observer {
	void *context;
	/*
	 * The inputs are open, it is known what their records are, and nothing has been read; NULL:
	 * no matter. input_read_at() may be used. The spec is complete. A negative errno, after a
	 * message, ends the sort.
	 */
	int (*on_opened)(void *context, const struct sort_spec *spec, const struct layout *layout,
			 struct input *input);
	/* With these it is sorted; of several ranks the first hears of each. NULL: no matter. */
	void (*on_device)(void *context, const char *name);
	/* The output has its name: the sort does not fail any more. NULL: no matter. */
	void (*on_committed)(void *context);
};

/*
 * Sort or merge the inputs into the output. stats may be NULL. Returns 0 and *ret_summary, or a
 * negative errno after a message; the output is then untouched.
 */
int sort_run(const struct sort_spec *spec, const struct sort_observer *observer,
	     struct stats *stats, struct sort_summary *ret_summary);

/*
 * Find out whether the input of a spec that checks is in order. checker: as of a framing. Returns
 * 0, what is known of the records, and the number, from 1, of the first that is not in order with
 * the one before it, or 0; or a negative errno after a message.
 */
int sort_check(const struct sort_spec *spec, const char *checker,
	       const struct sort_observer *observer, struct stats *stats,
	       struct sort_summary *ret_summary, uint64_t *ret_disorder);

/* What is needed of a disk, at most, and what there is. */
struct disk_space {
	bool is_needed_known, is_available_known;
	uint64_t needed_nbytes, available_nbytes;
};

/* What a sort would do, and how long that would take. */
struct explanation {
	struct input_content content;
	struct disk_space temp_space; /* of an endless input: for each PLAN_UNBOUNDED_UNIT_NBYTES */
	struct disk_space output_space; /* of a file */
	struct plan plan;
	struct stage_volumes loads;
	struct stage_rates rates;
	/* Of several ranks, of which the plan is one's, in the place of loads and rates. */
	struct cluster_estimate rank_loads; /* n_ranks 0: there are none */
	struct rank_rates rank_rates;
	bool is_size_assumed;        /* cluster_estimate.all_nbytes is */
	struct sort_summary summary; /* what is planned */
};

/* What nobody knows, and is taken for known. */
struct assumptions {
	uint64_t nbytes;              /* of an input of unknown size; 0: it is endless */
	struct rank_rates rank_rates; /* 0: not even that */
};

/*
 * Plan the same, and write nothing but files without a name that are gone again. Of several ranks
 * the first plans for all. Where they are assumed (spec.n_assumed_ranks), so are their machines:
 * directories and devices of this one do not matter, nor an input of which the size is assumed.
 */
int sort_explain(const struct sort_spec *spec, const struct assumptions *assumed,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation);
