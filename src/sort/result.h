/*
 * result - what comes of a sort: records that are written in any order, a file when all is checked
 *
 *	open -> choose_way -> sink, and what is around the records -> commit
 *	                                                           \-> abort
 *
 * It is an output (io/output/output.h), and what a checkpoint knows of it.
 */
#pragma once

#include "io/output/output.h"
#include "src/checkpoint/checkpoint.h"
#include "src/merge/sink.h"

struct result {
	const struct sort_spec *spec;
	const struct job *job;
	struct checkpoint *checkpoint; /* NULL: none */
	struct output *output;         /* NULL: not open, or not any more */
	bool is_input;                 /* it takes the place of one */
	bool is_committed;             /* it has its name */
	uint32_t n_ranges;             /* that it was merged in; 0: none yet */
	struct file_writer_ways ways;  /* that it was written in, once all is */
};

/*
 * The records that will be written, in bytes, and what is around them; OUTPUT_SIZE_UNKNOWN if that
 * is not known before the end.
 */
uint64_t result_expected_nbytes(const struct sort_spec *spec, const struct job *job);

/* Could a file hold them? 0, or -EFBIG after a message. */
int result_check_size(const struct sort_spec *spec, const struct job *job);

/*
 * Open the output of a job whose inputs are open; checkpoint: NULL: none. All must outlive it.
 * Returns 0, or a negative errno after a message; result_abort() is due in both cases.
 */
int result_open(const struct sort_spec *spec, const struct job *job, struct checkpoint *checkpoint,
		struct result *result);

/*
 * Choose the way to where it is to lie, when the job is planned; and, if only then it is known how
 * large it will be, when all runs are there, which make nbytes.
 */
void result_choose_way(struct result *result);
void result_choose_way_late(struct result *result, uint64_t nbytes);

/* For the final merge: its records go into the output. The result's. */
struct sink result_sink(struct result *result);

/* Where its records begin, in bytes. */
uint64_t result_begin(const struct result *result);

/*
 * All is written and checked: give it its name, if the inputs are still what they were. Returns 0,
 * or a negative errno after a message.
 */
int result_commit(struct result *result);

/* Leave what was there before, unless it is committed. */
void result_abort(struct result *result);
