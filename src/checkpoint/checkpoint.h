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
 *
 * Functions that return an int return 0 or a negative errno (reported).
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
 * sort. The arguments must outlive the checkpoint. The layout and the input are those of the spec.
 * input_nbytes: the size of the input's records; INPUT_SIZE_UNKNOWN is refused. Each of several
 * ranks has its own checkpoint, of its part of the sort. After a failure a new checkpoint is
 * removed, and an existing one is kept.
 */
int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input, uint64_t input_nbytes,
		    struct checkpoint **ret_checkpoint);

/* Return whether an earlier process published the output: then only checkpoint_remove() is left. */
bool checkpoint_is_complete(const struct checkpoint *checkpoint);

/* Get the owner of the temporary outputs of this sort, including those of killed processes. */
void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner);

/* Open a spill in the checkpoint's directory. The caller closes it before checkpoint_close(). */
int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill);

/* Return the size in device memory of the largest block of the runs to restore. */
uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint);

/*
 * Append the runs of earlier processes to the empty list, and report them (except with several
 * ranks). From then on, further runs are recorded. *ret_origin: the part of the input that the runs
 * were made of, which is the first part of the job. check: compares that part with the runs; NULL:
 * records have a fixed size and are compared here.
 */
int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job,
		       const struct input_check *check, struct run_list *list,
		       struct run_origin *ret_origin);

/* Return the hooks of the checkpoint, which the merges call. They are valid until it is closed. */
const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint);

/*
 * With several ranks: do not record merges from now on, because they merge parts of the runs of all
 * ranks. A resumed sort repeats them.
 */
void checkpoint_freeze_runs(struct checkpoint *checkpoint);

/*
 * Stop recording runs, before the output is published. Pending records are dropped. Returns 0, or
 * the negative errno of a record that could not be written (reported).
 */
int checkpoint_close_sync_thread(struct checkpoint *checkpoint);

/*
 * Record that the output is durable and about to replace an input, so that another process does not
 * sort the sorted records again.
 */
int checkpoint_record_done(struct checkpoint *checkpoint, struct output *output);

/*
 * After a failure, before the runs are closed: write all pending records. Removes a new checkpoint
 * without runs. NULL is ignored.
 */
void checkpoint_stop(struct checkpoint *checkpoint);

/* Remove the files of the checkpoint, once the output is published. A failure is a warning. */
void checkpoint_remove(struct checkpoint *checkpoint);

/* Free the checkpoint, after its spill was closed. NULL is ignored. */
void checkpoint_close(struct checkpoint *checkpoint);
