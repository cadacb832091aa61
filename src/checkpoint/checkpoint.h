/*
 * checkpoint - keeps the finished runs of a sort for another process
 *
 *	open -> open_spill -> restore			the runs that are there already
 *	     -> (the hook: a stored run is complete)*
 *	     -> close_sync_thread
 *	     -> record_done			an output that replaces an input is complete
 *	     -> (the output is published) -> remove
 *	stop: after a failure, keeps the runs
 *
 * A killed sort resumes from its stored runs and merges them again. docs/checkpoint.md says what is
 * written in which order, and why nothing is lost whenever the process, or the machine, ends.
 */
#pragma once

#include "io/output/output.h"
#include "src/merge/checkpoint_hooks.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/run/run_list.h"

struct checkpoint;

/*
 * Begin a checkpoint in spec->checkpoint_path, or resume the one that is there, if it is of the
 * same sort. Returns 0, or a negative errno after a message, with nothing left of a checkpoint that
 * was begun. The arguments must outlive it; the layout and the input are those of the spec. Of
 * several ranks each has its own, of its part of the sort.
 */
int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input,
		    struct checkpoint **ret_checkpoint);

/* Is the output published, so that only checkpoint_remove() remains to be done? */
bool checkpoint_is_complete(const struct checkpoint *checkpoint);

/* The owner of the unfinished outputs that starts of this sort have left behind. */
void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner);

/* Open the spill in the checkpoint's directory. 0, or a negative errno after a message. */
int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill);

/* Return the size that the largest stored block has in device memory. */
uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint);

/*
 * Add the finished runs to the empty list, and report them (of ranks that is theirs to report).
 * What they were made of, the first records of the job's input, is added to *totals. Starts to save
 * further runs. Returns 0, or a negative errno after a message.
 */
int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job, struct run_list *list,
		       struct record_totals *totals);

/* The hooks for merges, which belong to the checkpoint. */
const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint);

/*
 * Of several ranks: all of this one's part is in runs, and what is merged from now on are parts of
 * those of all. These merges are not kept: another start repeats them.
 */
void checkpoint_freeze_runs(struct checkpoint *checkpoint);

/*
 * Save no more runs: the output is about to be published. 0, or a negative errno after a message:
 * something could not be saved.
 */
int checkpoint_close_sync_thread(struct checkpoint *checkpoint);

/*
 * The output is complete, on stable storage, and about to replace an input: save that, so that
 * another process does not take the sorted records for its input. 0, or a negative errno after a
 * message.
 */
int checkpoint_record_done(struct checkpoint *checkpoint, struct output *output);

/*
 * After a failure, before the runs are closed: save all requested records. Removes the checkpoint
 * if it is of no use to another process. NULL is fine.
 */
void checkpoint_stop(struct checkpoint *checkpoint);

/* The output is published: remove the checkpoint. */
void checkpoint_remove(struct checkpoint *checkpoint);

/* NULL is fine. The spill must be closed. */
void checkpoint_close(struct checkpoint *checkpoint);
