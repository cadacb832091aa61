/*
 * setup.h - open what all parts of a sort share
 *
 * The inputs are open; setup_open() opens the devices, makes the plan, and opens the chunk pool and
 * the temporary space. If a device has less memory than it reported, because other processes use it
 * too, the plan is made smaller. If that does not help and the user did not choose the back end,
 * the CPU is used.
 */
#pragma once

#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/sort/open_devices.h"
#include "src/sort/sort_summary.h"

/* A spec, completed from the inputs: these may describe their records. */
struct resolved_spec {
	struct sort_spec spec;       /* complete if is_resolved */
	struct key *keys;            /* of `spec`; NULL: those of the original spec */
	struct output_header header; /* of the output, as far as it is known */
	bool is_resolved;
	const struct sort_observer *observer;
};

struct sort_output;

struct setup {
	const struct sort_spec *spec;
	struct checkpoint *checkpoint;       /* where runs are stored, or NULL */
	struct sort_output *output;          /* or NULL */
	bool ordered_output;                 /* as in plan_request */
	bool needs_count_first;              /* as in plan_request */
	bool explain_only;                   /* make a plan, but open no temporary space */
	uint64_t assumed_nbytes;             /* size of an input of unknown size; 0: endless */
	struct device_assignment assignment; /* set by setup_open() */
};

/*
 * Open the inputs of a job that has only `stats`. If they are pipes, the spec may be resolved
 * later, by setup_probe_inputs(). Call setup_close_inputs() also after a failure.
 */
int setup_open_inputs(const struct sort_spec *spec, const struct sort_observer *observer,
		      struct resolved_spec *ret_resolved, struct job *job);
void setup_close_inputs(struct resolved_spec *resolved, struct job *job);

/*
 * Read the beginning of a pipe (input_probe_pipe()), because the plan depends on its format and
 * compression. A merge reads each pipe by itself (input_runs.c): the first is probed only if
 * nothing else describes the records.
 */
int setup_probe_inputs(struct resolved_spec *resolved, struct job *job, bool may_open);

/*
 * Open the rest of the job. Call setup_close() also after a failure. Returns -ENOMEM only after a
 * message.
 */
int setup_open(struct setup *setup, struct job *job);

/*
 * Open the temporary space of a planned job, and check that its runs fit. checkpoint: where runs
 * are stored, or NULL. Close it with setup_close().
 */
int setup_open_spill(struct job *job, const struct sort_spec *spec, struct checkpoint *checkpoint);

/* Return how the planned job should use the page cache for its temporary files. */
enum cache_policy setup_spill_cache_policy(const struct job *job);

/* Close what setup_open() opened. All runs must be closed. A zeroed job is fine. */
void setup_close(struct job *job);

/* Limit the memory for compressed inputs whose window size is not known before they are read. */
void setup_limit_input_memory(struct input *input, const struct sort_spec *spec);

/* Return the input size of all ranks, or INPUT_SIZE_UNKNOWN. */
uint64_t setup_input_nbytes(const struct job *job, const struct setup *setup);

/* Estimate the memory that the plan needs, including temporary files on a tmpfs. */
void setup_estimate_memory(const struct job *job, const struct sort_spec *spec,
			   struct memory_estimate *ret_estimate);

/* Warn if this process may not use so much memory. Of ranks, the first one does. */
void setup_warn_memory(const struct job *job, const struct sort_spec *spec);
