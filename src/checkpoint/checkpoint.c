/*
 * checkpoint.c - keep the finished runs of a sort for another process (see checkpoint.h)
 *
 * checkpoint_open() compares the manifest with the fingerprint of the sort and with the file at the
 * output's path. Then it begins a new checkpoint, resumes the existing one, or fails with a hint
 * which files to remove. Foreign files are not touched.
 *
 * The sync thread (manifest.h) makes records durable, so that no thread of the sort waits for a
 * disk.
 */
#include "src/checkpoint/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/codec/checksum.h"
#include "io/file/path_identity.h"
#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/checkpoint/checkpoint_state.h"
#include "src/checkpoint/fingerprint.h"
#include "src/comm/comm.h"

/* A hint for messages: which files of gsort to remove to start again. */
struct restart_hint {
	char text[160];
};

struct checkpoint {
	/* Set by open. */
	const struct sort_spec *spec;
	const struct layout *layout;
	const struct input *input;
	uint64_t input_nbytes;
	struct checkpoint_dir dir;
	struct checkpoint_state state; /* as read from the manifest */
	struct orphan_owner owner;
	bool is_new, is_complete;
	bool runs_are_frozen; /* the results of further merges are not recorded */
	struct checkpoint_hooks hooks;

	/* Set by open_spill and restore. */
	struct restart_hint hint; /* for damaged runs */
	struct spill *spill;
	struct sync_thread *sync_thread;
	atomic_bool is_worth_keeping; /* it has runs */
};

/* --- Begin or resume --- */

/* location: names the directories of the files */
static struct restart_hint format_restart_hint(const char *location)
{
	struct restart_hint hint;

	snprintf(hint.text, sizeof hint.text, "to start again, remove %s and %s in %s",
		 checkpoint_file_names[CHECKPOINT_MANIFEST], checkpoint_file_names[CHECKPOINT_RUNS],
		 location);
	return hint;
}

static int fail_damaged(const struct checkpoint *checkpoint, const char *problem)
{
	return fail(-EBADMSG, "%s: the checkpoint is damaged: %s; %s", checkpoint->dir.path,
		    problem, format_restart_hint("it").text);
}

static int fail_different_sort(const struct checkpoint *checkpoint,
			       const struct fingerprint_difference *difference)
{
	const char *location = checkpoint->dir.parent_path ? "the directory of each rank" : "it";
	const struct restart_hint hint = format_restart_hint(location);

	if (difference->input_path)
		return fail(-EINVAL,
			    "%s: input '%s' has changed since the checkpoint was written; %s",
			    checkpoint->dir.path, difference->input_path, hint.text);
	return fail(-EINVAL,
		    "%s: the checkpoint is of another sort: %s was '%s' and is '%s' now; %s",
		    checkpoint->dir.path, difference->name, difference->saved_value,
		    difference->value, hint.text);
}

/* Begin a new checkpoint: write its first record and make the names of its files durable. */
static int start_new(struct checkpoint *checkpoint, const struct fingerprint *fingerprint)
{
	struct checkpoint_dir *dir = &checkpoint->dir;
	uint64_t runs_nbytes;
	int r = file_size(&dir->runs, &runs_nbytes);

	if (r < 0)
		return fail(r, "%s/%s: %m", dir->path, checkpoint_file_names[CHECKPOINT_RUNS]);
	if (runs_nbytes > CHECKPOINT_RUNS_BEGIN)
		return fail_damaged(checkpoint, "its runs are not recorded");
	checkpoint->is_new = true;
	r = manifest_truncate(&dir->manifest);
	if (r == 0)
		r = manifest_append(&dir->manifest,
				    &(struct manifest_record){ RECORD_HEADER, fingerprint->text,
							       fingerprint->nbytes });
	if (r == 0)
		r = manifest_sync(&dir->manifest);
	return r < 0 ? r : checkpoint_dir_sync(dir);
}

/* Discard the runs of the checkpoint and begin a new one, after a notice with the reason. */
static int restart_from_scratch(struct checkpoint *checkpoint, const struct fingerprint *current,
				const char *reason)
{
	struct checkpoint_dir *dir = &checkpoint->dir;
	const int r = file_truncate(&dir->runs, CHECKPOINT_RUNS_BEGIN);

	if (r < 0)
		return fail(r, "%s/%s: cannot truncate: %m", dir->path,
			    checkpoint_file_names[CHECKPOINT_RUNS]);
	notice("%s: %s; starting again", dir->path, reason);
	checkpoint_state_free(&checkpoint->state);
	dir->manifest.end = dir->manifest.begin;
	return start_new(checkpoint, current);
}

/*
 * The published output was modified: start again with the inputs as they are now. If the output is
 * also an input, that is refused where a second sort is wrong: it would read the records of other
 * inputs twice (they are in the output already), or records of another format (--count,
 * --keys-only, --argsort).
 */
static int resume_modified(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	const struct sort_spec *spec = checkpoint->spec;
	const struct saved_done *done = &checkpoint->state.done;

	if (input_has_file(checkpoint->input, (struct file_id){ done->device, done->inode }) &&
	    (spec->n_inputs > 1 || spec->count || spec->keys_only || spec->argsort))
		return fail(-EINVAL,
			    "%s: the sort was complete, but its output %s, also an input, has "
			    "changed since; %s",
			    checkpoint->dir.path, spec->output_path,
			    format_restart_hint("it").text);
	return restart_from_scratch(checkpoint, current,
				    "the sort was complete, but its output has changed since");
}

/* The published output is unmodified: the sort is complete unless another input has changed. */
static int resume_complete(struct checkpoint *checkpoint, const struct fingerprint *saved,
			   const struct fingerprint *current)
{
	const struct saved_done *done = &checkpoint->state.done;
	const struct file_id output = { done->device, done->inode };
	struct fingerprint_difference difference;
	char accepted[80];

	fingerprint_format_file(output, accepted);
	if (fingerprint_differs(saved, current, accepted, &difference))
		return restart_from_scratch(
			checkpoint, current,
			"the sort was complete, but an input has changed since");
	checkpoint->is_complete = true;
	return 0;
}

/* Resume an existing checkpoint if it is of this sort. Sets is_complete if the sort is done. */
static int resume_existing(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct saved_done *done = &state->done;
	const struct fingerprint saved = { state->fingerprint, state->fingerprint_nbytes };
	struct fingerprint_difference difference;
	struct stat output;
	int r;

	if (fingerprint_differs(&saved, current, ACCEPT_ALL, &difference))
		return fail_different_sort(checkpoint, &difference);
	/* The records must be durable before anything is discarded because of them. */
	r = manifest_sync(&checkpoint->dir.manifest);
	if (r < 0)
		return r;
	/* Has an earlier process published the output? */
	if (state->is_done && stat(checkpoint->spec->output_path, &output) == 0 &&
	    output.st_dev == done->device && output.st_ino == done->inode) {
		const bool is_modified = (uint64_t)output.st_size != done->nbytes ||
					 output.st_mtim.tv_sec != done->modified_seconds ||
					 output.st_mtim.tv_nsec != done->modified_nanos;

		return is_modified ? resume_modified(checkpoint, current) :
				     resume_complete(checkpoint, &saved, current);
	}
	if (fingerprint_differs(&saved, current, ACCEPT_NONE, &difference))
		return fail_different_sort(checkpoint, &difference);
	if (state->is_damaged) {
		r = checkpoint_state_recheck_damage(state, &checkpoint->dir);
		if (r == -EBADMSG)
			fail_damaged(checkpoint, "a block of its runs has a wrong checksum");
		if (r < 0)
			return r;
	}
	return manifest_truncate(&checkpoint->dir.manifest);
}

/* Check that the runs match the sort. */
static int check_runs(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;
	uint64_t nbytes = checkpoint->input_nbytes;

	for (size_t i = 0; i < state->n_runs; i++) {
		const struct checkpoint_run *run = &state->runs[i];

		if (run->index.item_nbytes != layout->item_nbytes)
			return fail_damaged(checkpoint, "its runs have items of another size");
		if (run->origin.nbytes > nbytes ||
		    run->origin.totals.read.n_records > run->origin.nbytes / layout->record_nbytes)
			return fail_damaged(checkpoint,
					    "its runs contain more records than the input");
		nbytes -= run->origin.nbytes;
	}
	return 0;
}

/* Resume the checkpoint, or begin one. */
static int start_or_resume(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct checkpoint_dir *dir = &checkpoint->dir;
	uint64_t runs_nbytes;
	int r = manifest_read(&dir->manifest, checkpoint_state_visit, state);

	if (r == -EBADMSG)
		return fail(r,
			    "%s: the checkpoint is damaged at byte %" PRIu64
			    "; to start again, remove it and the %s beside it",
			    dir->manifest.path, dir->manifest.end,
			    checkpoint_file_names[CHECKPOINT_RUNS]);
	if (r == 0)
		r = state->fingerprint ? resume_existing(checkpoint, current) :
					 start_new(checkpoint, current);
	if (r < 0 || checkpoint->is_complete)
		return r;
	r = file_size(&dir->runs, &runs_nbytes);
	if (r < 0)
		return fail(r, "%s/%s: %m", dir->path, checkpoint_file_names[CHECKPOINT_RUNS]);
	/*
	 * A process may have been killed while it removed the checkpoint of a complete sort, and
	 * another one after it had created a new file for the runs.
	 */
	if (state->n_runs && runs_nbytes <= CHECKPOINT_RUNS_BEGIN)
		return restart_from_scratch(checkpoint, current,
					    "the runs of the checkpoint are missing");
	return check_runs(checkpoint);
}

static int open_dir_and_resume(struct checkpoint *checkpoint)
{
	struct comm *comm = checkpoint->spec->comm;
	struct fingerprint current;
	uint64_t identity[2];
	int r = fingerprint_create(checkpoint->spec, false, &current);

	if (r < 0)
		return r;
	r = checkpoint_dir_open(&checkpoint->dir);
	if (r == 0)
		r = start_or_resume(checkpoint, &current);
	if (r == 0)
		r = checkpoint_dir_check_ranks(&checkpoint->dir, comm ? comm_size(comm) : 0);
	/*
	 * The owner of temporary outputs is not read from the manifest, so a forged manifest cannot
	 * cause a file of another sort to be removed.
	 */
	identity[0] = checksum64(current.text, current.nbytes);
	identity[1] = checkpoint->dir.file_ids[CHECKPOINT_MANIFEST].inode;
	snprintf(checkpoint->owner.digits, sizeof checkpoint->owner.digits, "%016" PRIx64,
		 checksum64(identity, sizeof identity));
	free(current.text);
	return r;
}

/*
 * Check that the output can be written from the beginning again. The check does not open the
 * output: the reader of a pipe would see an end of file.
 */
static int check_rewritable(const struct sort_spec *spec)
{
	const char *path = spec->output_path;
	struct stat status;

	if (spec->output_endpoint.kind == ENDPOINT_PATH && path_to_descriptor(path) < 0 &&
	    (stat(path, &status) < 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
		return 0;
	return fail(-EINVAL, "%s: a checkpoint requires a regular file as output", path);
}

static int save_spilled_run(void *context, struct run_list *list, size_t first, size_t n,
			    const struct run *run);

int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input, uint64_t input_nbytes,
		    struct checkpoint **ret_checkpoint)
{
	struct checkpoint *checkpoint;
	int r;

	if (input_nbytes == INPUT_SIZE_UNKNOWN) { /* a stream cannot be read again */
		const char *stream = input_stream_name(input);

		return fail(-ESPIPE,
			    "%s: a checkpoint requires regular files as input; compressed files "
			    "need a seek table",
			    stream ? stream : spec->checkpoint_path);
	}
	r = spec->comm ? 0 : check_rewritable(spec);
	if (r < 0)
		return r;
	checkpoint = calloc(1, sizeof *checkpoint);
	if (!checkpoint)
		return fail(-ENOMEM, "--checkpoint: no memory for its state: %m");
	checkpoint->spec = spec;
	checkpoint->layout = layout;
	checkpoint->input = input;
	checkpoint->input_nbytes = input_nbytes;
	checkpoint->hooks = (struct checkpoint_hooks){ checkpoint, save_spilled_run };
	if (spec->comm)
		r = checkpoint_dir_init_rank(&checkpoint->dir, io, spec->checkpoint_path,
					     comm_rank(spec->comm));
	else
		checkpoint_dir_init(&checkpoint->dir, io, spec->checkpoint_path);
	if (r == 0)
		r = open_dir_and_resume(checkpoint);
	if (r < 0) {
		if (checkpoint->is_new)
			checkpoint_dir_remove(&checkpoint->dir);
		else
			checkpoint_dir_remove_created(&checkpoint->dir);
		checkpoint_close(checkpoint);
		return r;
	}
	*ret_checkpoint = checkpoint;
	return 0;
}

bool checkpoint_is_complete(const struct checkpoint *checkpoint)
{
	return checkpoint->is_complete;
}

void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner)
{
	*ret_owner = checkpoint->owner;
}

/* --- Restore runs --- */

int checkpoint_open_spill(struct checkpoint *checkpoint, struct spill **ret_spill)
{
	const uint64_t limit_nbytes = checkpoint->spec->temp_limit_nbytes;
	struct checkpoint_dir *dir = &checkpoint->dir;
	uint64_t end, used_nbytes;
	int r = checkpoint_state_punch_unused(&checkpoint->state, dir, &end, &used_nbytes);

	if (r == -EBADMSG)
		fail_damaged(checkpoint, "blocks overlap or exceed the file");
	/* The limit may be lower than in the earlier process. */
	if (r == 0 && used_nbytes > limit_nbytes)
		r = fail(-ENOSPC,
			 "%s: the runs of the checkpoint take %" PRIu64
			 " bytes; the limit is %" PRIu64 "; use a larger --temp-limit",
			 dir->path, used_nbytes, limit_nbytes);
	if (r == 0)
		r = spill_open_persistent(&dir->runs, &dir->path, end, used_nbytes, limit_nbytes,
					  &checkpoint->spill);
	if (r < 0)
		return r;
	dir->runs.fd = -1; /* owned by the spill now */
	checkpoint->hint = format_restart_hint("it");
	spill_set_damage_hint(checkpoint->spill, checkpoint->hint.text);
	*ret_spill = checkpoint->spill;
	return 0;
}

uint64_t checkpoint_block_nbytes(const struct checkpoint *checkpoint)
{
	return checkpoint_state_max_block_items(&checkpoint->state) *
	       (uint64_t)checkpoint->layout->resident_nbytes;
}

int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job,
		       const struct input_check *check, struct run_list *list,
		       struct run_origin *ret_origin)
{
	struct checkpoint_state *state = &checkpoint->state;
	const struct run_origin origin = checkpoint_state_origin(state);
	struct input_change change;
	int r;

	if (job->has_end && origin.totals.read.n_records > job->end_record - job->first_record)
		return fail_damaged(checkpoint,
				    "its runs contain more records than the part of this rank");
	/* Unchanged times do not prove that files are unchanged. */
	r = checkpoint_state_check_input(state, job, check, &change);
	if (r == -EBADMSG)
		return fail(-EINVAL,
			    "%s: has changed after %s %" PRIu64 " since the checkpoint in %s; %s",
			    change.path, change.unit, change.position, checkpoint->dir.path,
			    format_restart_hint("it").text);
	if (r == 0)
		r = checkpoint_state_restore_runs(state, job, list);
	if (r < 0)
		return r;
	*ret_origin = origin;
	atomic_store(&checkpoint->is_worth_keeping, state->n_runs > 0);
	if (!checkpoint->is_new && !checkpoint->spec->comm)
		notice("resuming: %zu %s %s of %s", state->n_runs,
		       state->n_runs == 1 ? "run holds" : "runs hold",
		       size_format(origin.nbytes).text,
		       size_format(input_total_nbytes(checkpoint->input)).text);
	checkpoint_state_free_runs(state);
	return sync_thread_open(&checkpoint->dir.manifest, checkpoint->spill,
				&checkpoint->sync_thread);
}

/* --- Record runs --- */

/* Stored runs that were merged into another one. */
struct replaced_runs {
	struct checkpoint *checkpoint;
	size_t n_runs;
	struct run *runs[];
};

/* sync_request.on_complete: remove the runs if the record of the merge is durable. */
static void remove_replaced_runs(void *context, bool durable)
{
	struct replaced_runs *replaced = context;

	for (size_t i = 0; i < replaced->n_runs; i++)
		(durable ? run_remove : run_close)(replaced->runs[i]);
	if (durable)
		atomic_store(&replaced->checkpoint->is_worth_keeping, true);
	free(replaced);
}

/* Move the stored runs among n runs out of the list. Returns NULL after a message. */
static struct replaced_runs *collect_replaced_runs(struct checkpoint *checkpoint,
						   struct run_list *list, size_t first, size_t n)
{
	const size_t n_spilled = n - runs_n_resident(list->runs + first, n);
	struct replaced_runs *replaced =
		malloc(sizeof *replaced + n_spilled * sizeof *replaced->runs);

	if (!replaced) {
		fail(-ENOMEM, "no memory for a list of %zu runs", n_spilled);
		return NULL;
	}
	*replaced = (struct replaced_runs){ .checkpoint = checkpoint };
	for (size_t i = first; i < first + n; i++)
		if (!run_is_resident(list->runs[i])) {
			replaced->runs[replaced->n_runs++] = list->runs[i];
			list->runs[i] = NULL;
		}
	return replaced;
}

/* Create the record of the run, with the index of its blocks. Returns NULL after a message. */
static struct sync_request *create_run_request(const struct run *run, size_t first,
					       size_t n_replaced)
{
	const struct run_index *index = run_file_index(run_spilled_file(run));
	const size_t blocks_nbytes = index->n_blocks * sizeof *index->blocks;
	struct sync_request *request = calloc(1, sizeof *request);
	struct saved_run *saved = malloc(sizeof *saved + blocks_nbytes);

	if (!request || !saved) {
		free(request);
		free(saved);
		fail(-ENOMEM, "no memory for a record of a checkpoint");
		return NULL;
	}
	*saved = (struct saved_run){
		.first = first,
		.n_replaced = n_replaced,
		.origin = run->origin,
		.n_items = index->n_items,
		.item_nbytes = index->item_nbytes,
		.n_blocks = index->n_blocks,
	};
	if (blocks_nbytes)
		memcpy(saved->blocks, index->blocks, blocks_nbytes);
	*request = (struct sync_request){ .type = RECORD_RUN,
					  .payload = saved,
					  .nbytes = sizeof *saved + blocks_nbytes };
	return request;
}

/*
 * checkpoint_hooks: record a stored run, which replaces n runs of the list from `first` on. Frozen
 * runs: remove those of the n runs that are results of unrecorded merges. Recorded runs are kept.
 */
static int save_spilled_run(void *context, struct run_list *list, size_t first, size_t n,
			    const struct run *run)
{
	struct checkpoint *checkpoint = context;
	struct sync_request *request;

	for (size_t i = first; i < first + n && checkpoint->runs_are_frozen; i++)
		if (!run_is_resident(list->runs[i]) && list->runs[i]->level > 0) {
			run_remove(list->runs[i]);
			list->runs[i] = NULL;
		}
	if (checkpoint->runs_are_frozen)
		return 0;
	request = create_run_request(run, first, n - runs_n_resident(list->runs + first, n));
	if (!request)
		return -ENOMEM;
	request->context = collect_replaced_runs(checkpoint, list, first, n);
	if (!request->context) {
		free(request->payload);
		free(request);
		return -ENOMEM;
	}
	request->on_complete = remove_replaced_runs;
	return sync_thread_add(checkpoint->sync_thread, request);
}

const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint)
{
	return &checkpoint->hooks;
}

void checkpoint_freeze_runs(struct checkpoint *checkpoint)
{
	checkpoint->runs_are_frozen = true;
}

/* --- Finish --- */

static int close_sync_thread(struct checkpoint *checkpoint, bool drain)
{
	const int r = sync_thread_close(checkpoint->sync_thread, drain);

	checkpoint->sync_thread = NULL;
	return r;
}

int checkpoint_close_sync_thread(struct checkpoint *checkpoint)
{
	return close_sync_thread(checkpoint, false);
}

/* The record must be durable before the rename: then an input differs from the fingerprint. */
int checkpoint_record_done(struct checkpoint *checkpoint, struct output *output)
{
	struct manifest *manifest = &checkpoint->dir.manifest;
	struct saved_done done;
	struct stat status;
	int r = output_finalize(output, &status);

	if (r < 0)
		return r;
	done = (struct saved_done){ .device = status.st_dev,
				    .inode = status.st_ino,
				    .nbytes = (uint64_t)status.st_size,
				    .modified_seconds = status.st_mtim.tv_sec,
				    .modified_nanos = status.st_mtim.tv_nsec };
	r = manifest_append(manifest, &(struct manifest_record){ RECORD_DONE, &done, sizeof done });
	return r < 0 ? r : manifest_sync(manifest);
}

void checkpoint_stop(struct checkpoint *checkpoint)
{
	struct saved_damage damage;
	const struct checkpoint_dir *dir;
	const char *path;

	if (!checkpoint)
		return;
	dir = &checkpoint->dir;
	path = dir->parent_path ? dir->parent_path : dir->path;
	close_sync_thread(checkpoint, true);
	if (checkpoint->spill && spill_get_damage(checkpoint->spill, &damage.offset)) {
		/* So a resumed sort fails at once, not after sorting the rest. */
		manifest_append(&checkpoint->dir.manifest,
				&(struct manifest_record){ RECORD_DAMAGED, &damage,
							   sizeof damage });
		return;
	}
	if (!atomic_load(&checkpoint->is_worth_keeping)) {
		if (checkpoint->is_new)
			checkpoint_dir_remove(dir);
	} else if (checkpoint_dir_is_intact(dir)) {
		notice("%s: checkpoint kept; rerun the same command to resume", path);
	} else {
		warn("%s: checkpoint directory was moved or removed; restore it to resume this "
		     "sort",
		     path);
	}
}

void checkpoint_remove(struct checkpoint *checkpoint)
{
	checkpoint_dir_remove(&checkpoint->dir);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
	if (!checkpoint)
		return;
	close_sync_thread(checkpoint, false);
	checkpoint_state_free(&checkpoint->state);
	checkpoint_dir_close(&checkpoint->dir);
	free(checkpoint);
}
