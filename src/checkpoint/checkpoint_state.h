/*
 * checkpoint_state.h - the state that an earlier process has recorded: the stored runs of a sort
 *
 *	HEADER	what is sorted (fingerprint.h)
 *	RUN	a stored run: which records of the input it contains, and the index of its blocks
 *		in the file of the runs; it replaces runs that were merged into it
 *	DONE	the output, which replaces an input, is complete and about to be published
 *	DAMAGED	a block of a run had a wrong checksum when it was read
 *
 * A record is written after the data it refers to is durable. The state results from applying the
 * records of the manifest in order. No record contains a file name. Numbers are in native byte
 * order: a checkpoint cannot be moved to another kind of machine.
 *
 * Restored runs are merged with runs of newly read records, so the inputs must not have changed.
 * The fingerprint compares the files and their times. But times can be wrong: a clock was set back,
 * a file system stores none, or a change came within the same clock tick. A run has the digest of
 * the input records it was made of, so these can be read again and compared. They are compared
 *
 * - if they are in the page cache, which costs little
 * - otherwise for a small part of all runs, the latest runs first
 *
 * Other records are not compared: reading all of them could cost as much as the checkpoint saves.
 *
 * Functions that return an int return 0 or a negative errno (reported), unless stated otherwise.
 */
#pragma once

#include "io/spill/run_file.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/plan/job.h"
#include "src/run/run.h"

enum checkpoint_record { RECORD_HEADER = 1, RECORD_RUN, RECORD_DONE, RECORD_DAMAGED };

/* The part of an input that has changed. */
struct input_change {
	const char *path;
	const char *unit;  /* of the position: "record", "byte" */
	uint64_t position; /* where the part begins in the file */
};

/* Compares the input with runs whose records have no fixed size. */
struct input_check {
	/*
	 * Read the part of the input that begins at byte `position` of its records, and compare it
	 * with the origin of its run. Returns 0, -EBADMSG without a message and *ret_change if they
	 * differ, or another negative errno (reported).
	 */
	int (*check_run)(void *context, uint64_t position, const struct run_origin *origin,
			 struct input_change *ret_change);
	void *context;
};

struct saved_run {
	uint64_t first, n_replaced; /* it replaces n_replaced runs of the list from `first` on */
	struct run_origin origin;
	uint64_t n_items, item_nbytes;
	uint64_t n_blocks;
	struct run_block blocks[]; /* n_blocks */
};

/* Identifies the complete output: its status before the rename, which does not change these. */
struct saved_done {
	uint64_t device, inode, nbytes;
	int64_t modified_seconds, modified_nanos;
};

struct saved_damage {
	uint64_t offset; /* position of the block in the file of the runs */
};

struct checkpoint_run {
	struct run_origin origin;
	struct run_index index;
};

struct checkpoint_state {
	char *fingerprint; /* see fingerprint.h; NULL: no checkpoint yet */
	size_t fingerprint_nbytes;
	struct checkpoint_run *runs; /* n_runs, in the order of the input */
	size_t n_runs;
	bool is_done;
	struct saved_done done;
	bool is_damaged; /* a damaged block was recorded */
	struct saved_damage damage;
};

/*
 * Apply a record to `state`, a struct checkpoint_state (a manifest_visitor). Returns 0, -EBADMSG
 * without a message if the record is invalid, or -ENOMEM (reported).
 */
int checkpoint_state_visit(void *state, const struct manifest_record *record);

/* Free the runs and their indexes. */
void checkpoint_state_free_runs(struct checkpoint_state *state);

/* Free the members of the state, which may be zeroed. */
void checkpoint_state_free(struct checkpoint_state *state);

/*
 * Read the damaged block again, because only the first read may have been wrong. Returns 0 if the
 * block is intact now or no run has it any more, -EBADMSG without a message if it is still damaged,
 * or another negative errno (reported).
 */
int checkpoint_state_recheck_damage(const struct checkpoint_state *state,
				    const struct checkpoint_dir *dir);

/*
 * Free the space in the file of the runs that no block uses: of incomplete runs, and of runs whose
 * removal was interrupted. *ret_end: the end of the last block. *ret_used_nbytes: the space of all
 * blocks. Returns 0, -EBADMSG without a message if blocks overlap or exceed the file, or another
 * negative errno (reported).
 */
int checkpoint_state_punch_unused(const struct checkpoint_state *state,
				  const struct checkpoint_dir *dir, uint64_t *ret_end,
				  uint64_t *ret_used_nbytes);

/* Return the number of items in the largest block, or 0. */
uint32_t checkpoint_state_max_block_items(const struct checkpoint_state *state);

/* Open the runs and append them to the list. The indexes now belong to the list. */
int checkpoint_state_restore_runs(const struct checkpoint_state *state, const struct job *job,
				  struct run_list *list);

/* Return the part of the input that all runs together were made of. */
struct run_origin checkpoint_state_origin(const struct checkpoint_state *state);

/*
 * Compare the job's input with the runs, in their order. check: compares a part of the input; NULL:
 * records have a fixed size and are compared here. Returns 0, -EBADMSG without a message if the
 * records of a run have changed (*ret_change: where they begin), or another negative errno
 * (reported).
 */
int checkpoint_state_check_input(const struct checkpoint_state *state, const struct job *job,
				 const struct input_check *check, struct input_change *ret_change);
