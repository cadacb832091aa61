/*
 * checkpoint - what of a sort is finished is kept, and need not be done again after a kill
 *
 *	open -> open_output, open_spill -> restore		what is there already
 *	     -> add_run*					a spilled run is complete
 *	     -> start_merge -> save_partitions			of the output
 *		-> { note_point, note_written }*		windows of it are written
 *	     -> finish -> (the output gets its name) -> remove
 *	close: after a failure, keeps it all
 *
 * docs/checkpoint.md says what is written in which order, and why nothing is lost whenever the
 * process, or the machine, ends.
 */
#pragma once

#include "io/output/output.h"
#include "src/merge/checkpoint_hooks.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/run/run_list.h"

struct checkpoint;

/*
 * Begin a checkpoint in spec->checkpoint_path, or go on with the one that is there, if it is of
 * the same sort. Returns 0, or a negative errno after a message, with nothing left of a checkpoint
 * that was begun. What is passed must outlive it; the layout and the input are those of the
 * spec. Of several ranks each has its own, of its part of the sort.
 */
int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input,
		    struct checkpoint **ret_checkpoint);

/* The output is complete and has its name: there is nothing to do but checkpoint_remove(). */
bool checkpoint_is_complete(const struct checkpoint *checkpoint);

/* What its runs take, which is given back while the output is written. */
void checkpoint_space_released_later(const struct checkpoint *checkpoint,
				     struct space_released_later *ret_released_later);

/*
 * The output, with what is written of it, which is read again to see that it still is what was
 * written. Returns 0, or a negative errno after a message.
 */
int checkpoint_open_output(struct checkpoint *checkpoint, uint64_t expected_nbytes,
			   struct output **ret_output);

/*
 * Where nothing of the output is kept: whose unfinished files are those that this sort has begun
 * whenever it was started.
 */
void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner);

/* The spill in the checkpoint's directory. */
int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill);

/* The blocks of its runs, as they are in device memory, are at most so large. */
uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint);

/*
 * Add the finished runs to the empty store, and say what is there (of ranks it is theirs to say).
 * What they were made of, the first records of the job's input, is added to *ledger. Starts to save
 * what comes then. Returns 0, or a negative errno after a message.
 */
int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job, struct output *output,
		       struct run_list *store, struct record_totals *ledger);

/* For merging: who is told of runs, and tells what of the output is there. The checkpoint's. */
const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint);

/*
 * Of several ranks: all of this one's part is in runs, and what is merged from now on are parts of
 * those of all. It is kept no more, and begun anew from these runs by whoever takes them up.
 */
void checkpoint_freeze_runs(struct checkpoint *checkpoint);

/*
 * And then, in the place of checkpoint_finish(): nothing more is saved. 0, or a negative errno
 * after a message: something could not be.
 */
int checkpoint_close_sync_thread(struct checkpoint *checkpoint);

/*
 * The final merge begins: makes the sink go on where the last one got to, and tells it which points
 * are wanted. With -u all runs must be stored if any is. The runs must not change any more.
 */
void checkpoint_start_merge(struct checkpoint *checkpoint, const struct run_list *store,
			    struct sink *sink);

/* For the sink (sink.h): the ranges that it is merged in, before anything is written. */
int checkpoint_record_partitions(struct checkpoint *checkpoint,
				 const struct partition_desc *partitions, uint32_t n);

/* And a point of one of them, and a window that has been written. Thread-safe. */
int checkpoint_record_restore_point(struct checkpoint *checkpoint, uint32_t partition,
				    const struct restore_point *restore_point);
int checkpoint_record_written(struct checkpoint *checkpoint, uint64_t offset, const void *data,
			      size_t nbytes);

/*
 * All is written, and the output is about to get its name. If it does not, it is kept only if the
 * checkpoint is. Returns 0, or a negative errno after a message.
 */
int checkpoint_finish(struct checkpoint *checkpoint, struct output *output);

/*
 * Save what was asked for, after a failure, before the runs and the output are closed. If nothing
 * is worth being kept, the output is told so.
 */
void checkpoint_stop(struct checkpoint *checkpoint, struct output *output);

/* The output has its name: remove the checkpoint. */
void checkpoint_remove(struct checkpoint *checkpoint);

/* NULL is fine. The spill must be closed. */
void checkpoint_close(struct checkpoint *checkpoint);
