/*
 * inside - what the files of a checkpoint's implementation share
 *
 *	take_up.c		is what is there of this sort?
 *	checkpoint.c		what is there when the sort begins
 *	runs.c			the runs of that
 *	run_origins.c		what these were made of
 *	save.c			what comes to it while the sort goes on
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/files.h"
#include "src/checkpoint/saver.h"
#include "src/checkpoint/state.h"
#include "src/checkpoint/written_parts.h"

struct description;
struct pending_point;

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
	struct checkpoint_files files;
	struct checkpoint_state state; /* as it was found */
	bool is_new, is_complete;
	bool has_left_runs; /* those that are merged now are not to be kept */
	struct keeper keeper;
	struct merge_point skip;

	/* Set by open_spill, restore and start_merge. */
	struct advice advice; /* about what is stored */
	struct spill *spill;
	struct saver *saver;
	struct run *const *merged; /* n_merged: the runs of the final merge */
	size_t n_merged;
	atomic_bool is_worth; /* something is there that need not be done again */

	pthread_mutex_t lock;
	/* Under the lock. */
	struct written_parts written;
	size_t n_queued; /* of the parts: with the points that were handed over ... */
	size_t n_saved;  /* ... and that are durable */
	struct pending_point *pending, **last_pending;
};

/*
 * The files are open: begin a checkpoint of the sort that is described, or find what there is of it
 * in `state`. 0, or a negative errno after a message: it is of another sort, or damaged.
 */
int checkpoint_take_up(struct checkpoint *checkpoint, const struct description *now);

struct advice checkpoint_advise(const struct checkpoint *checkpoint);

/* "the checkpoint is damaged: WHAT"; -EBADMSG. */
int checkpoint_fail_damaged(const struct checkpoint *checkpoint, const char *what);

/*
 * The block that was not what was written when it was read: it may have been the reading. Returns 0
 * if it is now, or if no run has it any more; or a negative errno after a message.
 */
int checkpoint_read_damage(const struct checkpoint *checkpoint);

/* Add the runs to the store. 0, or a negative errno after a message. */
int checkpoint_restore_runs(const struct checkpoint *checkpoint, const struct job *job,
			    struct run_store *store);

/* The final merge has passed the key: what is before it is not needed any more. */
void checkpoint_discard_before(const struct layout *layout, const void *key,
			       struct run *const *runs, size_t n);

/* What a keeper is told (keeper.h); the context is the checkpoint. */
int checkpoint_run_stored(void *context, struct run_store *store, size_t first, size_t n,
			  const struct run *run);
