/*
 * checkpoint_internal - what the files of a checkpoint's implementation share
 *
 *	checkpoint_resume.c		is what is there of this sort?
 *	checkpoint.c		what is there when the sort begins
 *	restore_runs.c			the runs of that
 *	input_check.c		what these were made of
 *	checkpoint_write.c			what comes to it while the sort goes on, and the end
 *	merge_progress.c		of that, how far each range of the output is written
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/sync_thread.h"
#include "src/checkpoint/manifest_records.h"
#include "src/checkpoint/written_extents.h"

struct fingerprint;
struct pending_restore_point;

/* How far a range of the output is written. */
struct partition_progress {
	void *key; /* that it begins in front of; NULL: it is the first */
	struct written_extents written;
	size_t n_queued;  /* of the parts: with the points that were handed over ... */
	size_t n_durable; /* ... and that are durable */
	struct pending_restore_point *pending, **last_pending;
};

/* What to remove, in words: no more than what is gsort's. */
struct advice {
	char text[160];
};

struct checkpoint {
	/* Set by open. */
	const struct syscalls *io;
	const struct sort_spec *spec;
	const struct layout *layout;
	const struct input *input;
	struct checkpoint_dir dir;
	struct checkpoint_state state; /* as it was found */
	bool is_new, is_complete;
	bool runs_are_frozen; /* those that are merged now are not to be kept */
	struct checkpoint_hooks hooks;
	struct partition_desc
		*restore_partitions; /* the ranges of `state`; NULL: nothing is written of them */

	/* Set by open_spill, restore and start_merge. */
	struct advice advice; /* about what is stored */
	struct spill *spill;
	struct sync_thread *sync_thread;
	struct run *const *merged_runs; /* n_merged_runs: the runs of the final merge */
	size_t n_merged_runs;
	atomic_bool is_worth_keeping; /* something is there that need not be done again */

	struct partition_progress
		*progress; /* n_partitions: set by restore, and before any is written */
	size_t n_partitions;
	pthread_mutex_t lock; /* of what is in them but for where they begin */
};

/*
 * The files are open: begin a checkpoint of the sort that is described, or find what there is of it
 * in `state`. 0, or a negative errno after a message: it is of another sort, or damaged.
 */
int checkpoint_resume(struct checkpoint *checkpoint, const struct fingerprint *current);

struct advice checkpoint_format_advice(const struct checkpoint *checkpoint);

/* "the checkpoint is damaged: WHAT"; -EBADMSG. */
int checkpoint_fail_damaged(const struct checkpoint *checkpoint, const char *problem);

/*
 * The block that was not what was written when it was read: it may have been the reading. Returns 0
 * if it is now, or if no run has it any more; or a negative errno after a message.
 */
int checkpoint_recheck_damage(const struct checkpoint *checkpoint);

/* Add the runs to the store. 0, or a negative errno after a message. */
int checkpoint_restore_runs(const struct checkpoint *checkpoint, const struct job *job,
			    struct run_list *store);

/*
 * A range of the final merge that begins in front of key `from` (NULL: the first) has passed `to`:
 * what is between them is not needed any more. One thread at a time.
 */
void checkpoint_discard_between(const struct layout *layout, const void *from, const void *to,
				struct run *const *runs, size_t n);

/* A record to be saved, of n parts. NULL after a message. */
struct sync_request *checkpoint_create_request(enum checkpoint_record type,
					       const struct payload_slice *slices, size_t n);
/* One that was not handed over; NULL is fine. */
void checkpoint_free_request(struct sync_request *request);

/* What is written of the ranges in `state`. 0, or a negative errno after a message. */
int checkpoint_restore_progress(struct checkpoint *checkpoint);
void checkpoint_free_progress(struct checkpoint *checkpoint);

/* All is written: where that ends, and the parts that no durable point has, in DONE. */
uint64_t checkpoint_written_end(const struct checkpoint *checkpoint);
uint64_t checkpoint_n_pending_extents(const struct checkpoint *checkpoint);
/* ret_parts: one for each range. */
void checkpoint_list_pending_extents(const struct checkpoint *checkpoint,
				     struct payload_slice *ret_slices);

/* What a keeper is told (checkpoint_hooks.h); the context is the checkpoint. */
int checkpoint_run_stored(void *context, struct run_list *store, size_t first, size_t n,
			  const struct run *run);
