/*
 * setup - opening what all parts of a sort share
 *
 * The inputs are open; this opens the rest: back end, plan, temporary space and chunk buffers. What
 * is opened must fit: when a device has less memory than it said (others use it, too), a smaller
 * plan is made, and in the end, if the user left the choice to gsort, another back end.
 */
#pragma once

#include "src/checkpoint/checkpoint.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/sort/device_assignment.h"
#include "src/sort/sort.h"

/* What is sorted, as far as it is known: an input may say itself what its records are. */
struct resolved_spec {
	struct sort_spec spec;       /* complete once is_resolved */
	struct key *keys;            /* of it; NULL: they were given */
	struct output_header header; /* of the output, as far as it is known (output_framing.h) */
	bool is_resolved;
	const struct sort_observer *observer;
};

struct sort_output;

struct setup {
	const struct sort_spec *spec;
	struct checkpoint *checkpoint; /* where runs are kept; NULL: nowhere */
	struct sort_output *output;    /* where they go; NULL: nowhere */
	bool ordered_output;           /* as in plan_request */
	bool needs_count_first;        /* as well */
	bool explain_only;             /* only a plan is wanted, ... */
	uint64_t assumed_nbytes;       /* ... of so much, where it is not known; 0: endless */
	struct device_assignment
		assignment; /* what is this process's of them: setup_open() finds it */
};

/*
 * Into a job that has nothing but stats: what is given in it (job.h), of which the inputs are
 * opened. If they are pipes, it is known what is sorted when these have been looked at. Returns 0,
 * or a negative errno after a message; setup_close_inputs() is due in both cases.
 */
int setup_open_inputs(const struct sort_spec *spec, const struct sort_observer *observer,
		      struct resolved_spec *ret_resolved, struct job *job);
void setup_close_inputs(struct resolved_spec *resolved, struct job *job);

/*
 * What is planned for a pipe depends on what it is, and whether it is compressed: see
 * input_probe_pipe(). Of a merge each pipe is read by itself (input_runs.h): the first is looked at
 * if nothing else says what all of them are.
 */
int setup_probe_inputs(struct resolved_spec *resolved, struct job *job, bool may_open);

/*
 * Open what is not given in the job (job.h). Returns 0, or a negative errno after a message;
 * setup_close() is due in both cases.
 */
int setup_open(struct setup *setup, struct job *job);

/* What is stored of such a job, which is planned, may do to the page cache. */
enum cache_policy setup_spill_cache_policy(const struct job *job);

/* Close what setup_open() opened; no run may be left. A zeroed job is fine. */
void setup_close(struct job *job);

/* The memory that the sort may take: -S, or its default. */
uint64_t setup_memory_nbytes(const struct sort_spec *spec);

/* CPU threads to use: as many as are asked for, or all that this process may use. */
unsigned setup_n_threads(const struct sort_spec *spec);

/* Those of them that compress the output: a quarter of the memory has room for them, or it is 1. */
unsigned setup_n_compressors(const struct sort_spec *spec);

/*
 * Set the share of the memory that compressed inputs may take whose window is not known before they
 * are read.
 */
void setup_limit_input_memory(struct input *input, const struct sort_spec *spec);

/*
 * Lower *n_threads until reading the input with so many, each of which takes thread_nbytes besides,
 * keeps to the memory. Returns 0, or -E2BIG after a message if one thread takes too much.
 */
int setup_check_reading_memory(const struct input *input, const struct sort_spec *spec,
			       uint64_t thread_nbytes, unsigned *n_threads);
