/*
 * checkpoint.h - keep the finished runs of a sort for another process
 *
 *	open -> open_spill -> restore		restore the runs of an earlier process
 *	     -> (the hook for each stored run)*
 *	     -> close_sync_thread
 *	     -> record_done			an output that replaces an input is complete
 *	     -> (the output is published) -> remove
 *	stop: after a failure, keep the runs
 *
 * A killed sort resumes from its stored runs and merges them again. docs/checkpoint.md describes
 * what is written in which order, and why nothing is lost when the process or the machine fails.
 */
#pragma once

#include "io/output/output.h"
#include "src/merge/merge.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/run/run.h"

struct checkpoint;
struct input_check; /* checkpoint_state.h */

/*
 * Begin a checkpoint in spec->checkpoint_path, or resume the existing one if it is of the same
 * sort. The arguments must outlive it; the layout and the input are those of the spec.
 * input_nbytes: no run is made of records beyond these; INPUT_SIZE_UNKNOWN is refused. Each of
 * several ranks has its own checkpoint, of its part of the sort. A checkpoint that was begun is
 * removed after a failure.
 */
int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input, uint64_t input_nbytes,
		    struct checkpoint **ret_checkpoint);

/* Return whether the output is published, so that only checkpoint_remove() is left to do. */
bool checkpoint_is_complete(const struct checkpoint *checkpoint);

/* Get the owner of temporary outputs that earlier starts of this sort have left. */
void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner);

/* Open the spill in the checkpoint's directory. */
int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill);

/* Return the size of the largest stored block in device memory. */
uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint);

/*
 * Append the finished runs to the empty list, and report them (except with several ranks).
 * *ret_origin: the input records in these runs, which are the first ones of the job. check: of
 * these records; NULL: they have one size. Starts to record further runs.
 */
int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job,
		       const struct input_check *check, struct run_list *list,
		       struct run_origin *ret_origin);

/* Return the hooks for merges, which are part of the checkpoint. */
const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint);

/*
 * With several ranks: do not record merges from now on, because they merge parts of the runs of all
 * ranks. Another start repeats them.
 */
void checkpoint_freeze_runs(struct checkpoint *checkpoint);

/*
 * Stop recording runs, before the output is published. Returns the errno of a record that could not
 * be written.
 */
int checkpoint_close_sync_thread(struct checkpoint *checkpoint);

/*
 * Record that the output is durable and about to replace an input, so that another process does not
 * sort the sorted records again.
 */
int checkpoint_record_done(struct checkpoint *checkpoint, struct output *output);

/*
 * After a failure, before the runs are closed: write all pending records. Removes the checkpoint if
 * it is of no use. NULL is ignored.
 */
void checkpoint_stop(struct checkpoint *checkpoint);

/* Remove the checkpoint of a published output. */
void checkpoint_remove(struct checkpoint *checkpoint);

/* Requires that the spill is closed. NULL is ignored. */
void checkpoint_close(struct checkpoint *checkpoint);
