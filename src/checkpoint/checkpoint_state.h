/*
 * checkpoint_state - what an earlier process has finished of a sort: its stored runs
 *
 *	HEADER	what is being sorted (fingerprint.h)
 *	RUN	a stored run: what part of the input it holds, and the index of its blocks, which
 *		lie in the one file of the runs; it replaces runs that were merged into it
 *	DONE	the output, which takes the place of an input, is complete and about to be published
 *	DAMAGED	a block of a run was not what was written when it was read
 *
 * A record is written when what it speaks of is on stable storage. The records of the manifest, one
 * after the other, give the state. None of them names a file. Numbers are the machine's own: a
 * checkpoint does not travel.
 *
 * Restored runs are merged with runs of what is read now. That the inputs are the same files with
 * the same times is known by then. But times can be wrong: a clock was set back, a file system
 * keeps none, a change came within one tick of the clock. A run knows the digest of the records
 * that it was made of, so these can be read again:
 *
 * - where they are in the page cache, which costs little;
 * - elsewhere as long as they are a small part of what all runs hold, the latest runs first.
 *
 * Other records are not compared: to read all of them again could cost as much as the checkpoint
 * saves.
 */
#pragma once

#include "io/spill/run_file.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/plan/job.h"
#include "src/run/run_list.h"

enum checkpoint_record { RECORD_HEADER = 1, RECORD_RUN, RECORD_DONE, RECORD_DAMAGED };

struct saved_run {
	uint64_t first, n_replaced; /* its place among the runs, and how many it replaces there */
	struct record_totals origin;
	uint64_t n_items, item_nbytes;
	uint64_t n_blocks; /* which follow */
};

/* The output before its rename, which leaves all of this as it is. */
struct saved_done {
	uint64_t device, inode, nbytes;
	int64_t modified_seconds, modified_nanos;
};

struct saved_damage {
	uint64_t offset; /* of the block in the file of the runs */
};

/* A run of the state. */
struct checkpoint_run {
	struct saved_run run;
	struct run_block *blocks;
};

struct checkpoint_state {
	char *fingerprint; /* fingerprint.h; NULL: there is no checkpoint yet */
	size_t fingerprint_nbytes;
	struct checkpoint_run *runs; /* n_runs, in the order of the input */
	size_t n_runs;
	bool is_done;
	struct saved_done done;
	bool is_damaged; /* a block of a run, or it was not read as it is */
	struct saved_damage damage;
};

/*
 * A manifest_visitor: add the record to the struct checkpoint_state. -EBADMSG without a message if
 * the record cannot be right, or -ENOMEM after one.
 */
int checkpoint_state_visit(void *state, const struct manifest_record *record);

/* Free the runs: their indexes take memory. */
void checkpoint_state_free_runs(struct checkpoint_state *state);

/* A zeroed state is fine. */
void checkpoint_state_free(struct checkpoint_state *state);

/* A part of a payload. */
struct payload_slice {
	const void *bytes;
	size_t nbytes;
};

/* Join the n slices, for free(); NULL after a message. */
void *payload_join(const struct payload_slice *slices, size_t n, size_t *ret_nbytes);

/* Append a record of n slices. 0, or a negative errno after a message. */
int checkpoint_append_record(struct manifest *manifest, enum checkpoint_record type,
			     const struct payload_slice *slices, size_t n);

/*
 * Read the damaged block again, which may only have been read wrongly. Returns 0 if it is right
 * now, or if no run has it any more; -EBADMSG without a message if it is still damaged; or another
 * negative errno after a message.
 */
int checkpoint_state_recheck_damage(const struct checkpoint_state *state,
				    const struct checkpoint_dir *dir);

/*
 * Give back the space that no block has: it belonged to runs that were not complete, or whose
 * removal was interrupted. *ret_end: where the last block ends. *ret_used_nbytes: what all blocks
 * take. Returns 0; -EBADMSG without a message if blocks overlap or lie behind the end of the file;
 * or another negative errno after a message.
 */
int checkpoint_state_punch_unused(const struct checkpoint_state *state,
				  const struct checkpoint_dir *dir, uint64_t *ret_end,
				  uint64_t *ret_used_nbytes);

/* Return the items in the longest block of all runs; 0 if there is none. */
uint32_t checkpoint_state_max_block_items(const struct checkpoint_state *state);

/* Add the runs to the list. 0, or a negative errno after a message. */
int checkpoint_state_restore_runs(const struct checkpoint_state *state, const struct job *job,
				  struct run_list *list);

/* Return how many records the runs were made of. */
uint64_t checkpoint_state_n_records(const struct checkpoint_state *state);

/*
 * Compare the job's input with what the runs were made of. Returns 0; -EBADMSG without a message if
 * the records of a run are not there any more, of which *ret_first_record is the first; or another
 * negative errno after a message.
 */
int checkpoint_state_check_input(const struct checkpoint_state *state, const struct job *job,
				 uint64_t *ret_first_record);

/* Return how many bytes are read at most that are not cached, of runs of nbytes. */
uint64_t checkpoint_input_budget(uint64_t nbytes);
