/*
 * checkpoint_resume - is what a checkpoint's directory holds of this sort, and how far had that
 * come?
 *
 * The description of the sort, the output under its own name, and what the records of the manifest
 * say together decide: a new checkpoint is begun, what is kept is gone on with, or it is refused
 * with the names of what to remove. Nothing that is not understood is touched.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file/path_identity.h"
#include "config.h"
#include "src/base/diagnostics.h"
#include "src/checkpoint/fingerprint.h"
#include "src/checkpoint/checkpoint_internal.h"

/* The hidden file beside the output; "": none is kept. */
static const char *resumable_name(const struct checkpoint *checkpoint)
{
	return spec_checkpoints_output(checkpoint->spec) ? checkpoint->state.header.output_name :
							   "";
}

/* where: in which directories */
static struct advice format_advice(const struct checkpoint *checkpoint, const char *location)
{
	const char *temp_output = resumable_name(checkpoint);
	struct advice advice;

	snprintf(advice.text, sizeof advice.text, "to start again, remove %s and %s in %s%s%s%s",
		 checkpoint_file_names[CHECKPOINT_MANIFEST], checkpoint_file_names[CHECKPOINT_RUNS],
		 location, *temp_output ? ", and " : "", temp_output,
		 *temp_output ? " beside its output" : "");
	return advice;
}

/* Of several ranks what one has is sorted again. */
struct advice checkpoint_format_advice(const struct checkpoint *checkpoint)
{
	return format_advice(checkpoint, "it");
}

int checkpoint_fail_damaged(const struct checkpoint *checkpoint, const char *problem)
{
	return fail(-EBADMSG, "%s: the checkpoint is damaged: %s; %s", checkpoint->dir.path,
		    problem, checkpoint_format_advice(checkpoint).text);
}

static int fail_different_sort(const struct checkpoint *checkpoint,
			       const struct fingerprint_difference *difference)
{
	return fail(
		-EINVAL, "%s: the checkpoint is of another sort: %s was '%s' and is '%s' now; %s",
		checkpoint->dir.path, difference->name, difference->saved_value, difference->value,
		format_advice(checkpoint,
			      checkpoint->dir.parent_path ? "the directories of all ranks" : "it")
			.text);
}

/*
 * Of a name of gsort's beside the output, which may be of the sort that nothing is known of. ""
 * if there is none.
 */
static void find_temp_output(const char *output_path, char ret_name[static FILE_UNIQUE_NAME_SIZE])
{
	char *path;
	struct dirent *entry;
	DIR *stream = NULL;

	*ret_name = '\0';
	if (path_follow_links(output_path, &path) < 0)
		return;
	stream = opendir(dirname(path));
	free(path);
	while (stream && !*ret_name && (entry = readdir(stream)))
		if (file_is_unique_name(entry->d_name))
			memcpy(ret_name, entry->d_name, FILE_UNIQUE_NAME_SIZE);
	if (stream)
		closedir(stream);
}

/* What to do about that. */
static struct advice format_temp_output_advice(const struct checkpoint *checkpoint)
{
	struct advice advice = { .text = "" };
	char name[FILE_UNIQUE_NAME_SIZE];

	find_temp_output(checkpoint->spec->output_path, name);
	if (*name)
		snprintf(advice.text, sizeof advice.text,
			 "; %s beside the output may be what it had written: if no "
			 "other " GSORT_PROGRAM " is at work there, remove that, too",
			 name);
	return advice;
}

/*
 * Which sort's it is can be read, or not: then nothing but the runs is known to be its, and what it
 * had written of an output.
 */
static int fail_manifest(const struct checkpoint *checkpoint)
{
	const struct manifest *manifest = &checkpoint->dir.manifest;
	const char *temp_output = resumable_name(checkpoint);
	struct advice temp_advice = { .text = "" };

	if (!*temp_output && spec_checkpoints_output(checkpoint->spec))
		temp_advice = format_temp_output_advice(checkpoint);
	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged at byte %" PRIu64
		    "; to start again, remove it and the %s beside it%s%s%s%s",
		    manifest->path, manifest->end, checkpoint_file_names[CHECKPOINT_RUNS],
		    *temp_output ? ", and " : "", temp_output,
		    *temp_output ? " beside its output" : "", temp_advice.text);
}

static int fail_unknown_runs(const struct checkpoint *checkpoint)
{
	return fail(-EBADMSG, "%s: the checkpoint is damaged: nothing is known of its runs; %s%s",
		    checkpoint->dir.path, checkpoint_format_advice(checkpoint).text,
		    format_temp_output_advice(checkpoint).text);
}

/* A new checkpoint: its first record, and its name. */
static int start_new(struct checkpoint *checkpoint, const struct fingerprint *fingerprint)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct checkpoint_dir *dir = &checkpoint->dir;
	struct payload_slice slices[] = { { &state->header, sizeof state->header },
					  { fingerprint->text, fingerprint->nbytes } };
	uint64_t runs_nbytes;
	int r = file_size(&dir->runs, &runs_nbytes);

	if (r < 0)
		return fail(r, "%s/%s: %m", dir->path, checkpoint_file_names[CHECKPOINT_RUNS]);
	if (runs_nbytes > CHECKPOINT_RUNS_BEGIN)
		return fail_unknown_runs(checkpoint);
	checkpoint->is_new = true;
	r = manifest_truncate(&dir->manifest);
	if (r < 0)
		return r;
	file_unique_name(state->header.output_name);
	r = checkpoint_append_record(&dir->manifest, RECORD_HEADER, slices, 2);
	if (r == 0)
		r = manifest_sync(&dir->manifest);
	return r < 0 ? r : checkpoint_dir_sync(dir);
}

/* Nothing of what is there is of use for this sort. */
static int restart_from_scratch(struct checkpoint *checkpoint, const struct fingerprint *current,
				const char *reason)
{
	struct checkpoint_dir *dir = &checkpoint->dir;
	const int r = file_truncate(&dir->runs, CHECKPOINT_RUNS_BEGIN);

	if (r < 0)
		return fail(r, "%s/%s: cannot be cut: %m", dir->path,
			    checkpoint_file_names[CHECKPOINT_RUNS]);
	notice("%s: %s: beginning anew", dir->path, reason);
	checkpoint_state_free(&checkpoint->state);
	dir->manifest.end = dir->manifest.begin;
	return start_new(checkpoint, current);
}

/* The sort that it is of is done, but this is another one. */
static const char output_has_changed[] =
	"the checkpoint is of a sort that is complete, and its output has changed since";
static const char input_has_changed[] =
	"the checkpoint is of a sort that is complete, and an input has changed since";

/* The output that has its name, from `offset` on. */
struct published_output {
	const struct checkpoint *checkpoint;
	uint64_t offset;
};

static int read_published_output(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct published_output *output = context;
	const struct checkpoint *checkpoint = output->checkpoint;
	struct file file;
	int r = file_open(checkpoint->io, AT_FDCWD, checkpoint->spec->output_path, O_RDONLY, 0,
			  &file);

	if (r == 0) {
		r = file_read_at(&file, output->offset + offset, buffer, nbytes);
		file_close(&file);
	}
	if (r == -ENODATA)
		return -EBADMSG;
	return r < 0 ? fail(r, "%s: read: %m", checkpoint->spec->output_path) : 0;
}

/* Has the output got its name before the process was killed? *ret_status: what it is now. */
static bool is_output_published(struct checkpoint *checkpoint, struct stat *ret_status)
{
	struct checkpoint_state *state = &checkpoint->state;

	if (!state->is_done)
		return false;
	if (stat(checkpoint->spec->output_path, ret_status) < 0 ||
	    ret_status->st_dev != state->output.device ||
	    ret_status->st_ino != state->output.inode) {
		checkpoint_state_clear_done(state);
		return false;
	}
	*state->header.output_name = '\0'; /* nothing of the hidden name is left to be removed */
	return true;
}

/* The time of modification is not that of the rename. */
static bool is_output_modified(const struct saved_done *done, const struct stat *status)
{
	return (uint64_t)status->st_size != done->output_nbytes ||
	       status->st_mtim.tv_sec != done->modified_seconds ||
	       status->st_mtim.tv_nsec != done->modified_nanos;
}

/*
 * Somebody has changed the output since. Where it is no input, or the only one, which is to be
 * sorted as it is now, the sort begins anew. Where other inputs are in it already, or its records
 * are others than those of the input, the same sort of it is not what was asked for.
 */
static int resume_modified(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	const struct sort_spec *spec = checkpoint->spec;
	const struct saved_output *output = &checkpoint->state.output;
	const struct file_id file = { output->device, output->inode };

	if (input_has_file(checkpoint->input, file) &&
	    (spec->n_inputs > 1 || spec->count || spec->keys_only || spec->argsort))
		return fail(-EINVAL,
			    "%s: the sort was complete, and its output, %s, which is also an "
			    "input, has changed since; %s",
			    checkpoint->dir.path, spec->output_path,
			    checkpoint_format_advice(checkpoint).text);
	return restart_from_scratch(checkpoint, current, output_has_changed);
}

/* 0: the output that has its name is what was written. -EBADMSG without a message: it is not. */
static int check_complete(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct saved_done *done = &state->done;
	const uint64_t end = done->offset + checkpoint_state_written_end(state);
	struct published_output records = { checkpoint, done->offset },
				output_file = { checkpoint, 0 };
	uint64_t framing_checksum;
	struct output_extent bad;
	int r = written_extents_check_all(state, read_published_output, &records, &bad);

	if (r == 0)
		r = written_extents_framing_checksum(done->offset, end, done->output_nbytes,
						     read_published_output, &output_file,
						     &framing_checksum);
	return r == 0 && framing_checksum != done->framing_checksum ? -EBADMSG : r;
}

/* The complete output may have taken the place of an input; else inputs are as they were. */
static int resume_complete(struct checkpoint *checkpoint, const struct fingerprint *saved,
			   const struct fingerprint *current)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct file_id output = { state->output.device, state->output.inode };
	struct fingerprint_difference difference;
	char accepted[80];
	const int r = check_complete(checkpoint);

	if (r == -EBADMSG)
		return checkpoint_fail_damaged(
			checkpoint, "the output has its name, but is not what was written");
	if (r < 0)
		return r;
	fingerprint_format_file(output, accepted);
	if (fingerprint_differs(saved, current, accepted, &difference))
		return restart_from_scratch(checkpoint, current, input_has_changed);
	checkpoint->is_complete = true;
	return 0;
}

/* A checkpoint that is there: is it of this sort, and not at its end? */
static int resume_existing(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct fingerprint saved = { state->fingerprint, state->fingerprint_nbytes };
	struct fingerprint_difference difference;
	struct stat output;
	int r;

	if (fingerprint_differs(&saved, current, ACCEPT_ALL, &difference))
		return fail_different_sort(checkpoint, &difference);
	/* Nothing may be given up for a record that only the page cache has. */
	r = manifest_sync(&checkpoint->dir.manifest);
	if (r < 0)
		return r;
	if (is_output_published(checkpoint, &output))
		return is_output_modified(&state->done, &output) ?
			       resume_modified(checkpoint, current) :
			       resume_complete(checkpoint, &saved, current);
	if (fingerprint_differs(&saved, current, ACCEPT_NONE, &difference))
		return fail_different_sort(checkpoint, &difference);
	if (state->is_damaged) {
		r = checkpoint_recheck_damage(checkpoint);
		if (r < 0)
			return r;
	}
	return manifest_truncate(&checkpoint->dir.manifest);
}

/* A range begins where a record does, and its point is where the parts of it end. */
static bool partition_fits_sort(const struct checkpoint_partition *partition,
				const struct layout *layout)
{
	const uint64_t end =
		output_extents_end(partition->begin, partition->extents, partition->n_extents);

	return partition->begin % layout->output_nbytes == 0 &&
	       partition->restore_point.result.n_items * layout->output_nbytes ==
		       end - partition->begin;
}

/* Do the ranges, with their points? */
static bool partitions_fit_sort(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;

	for (size_t i = 0; i < state->n_partitions; i++)
		if (!partition_fits_sort(&state->partitions[i], layout))
			return false;
	return !checkpoint_state_has_progress(state) ||
	       (state->key_nbytes == layout_key_nbytes(layout) &&
		state->edge_nbytes == layout_edge_nbytes(layout));
}

/*
 * Where the output is kept, too, runs may be gone that are in it already. Else nothing is lost: a
 * sort that was complete may have been killed while it removed its checkpoint.
 */
static int resume_without_runs(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	if (spec_checkpoints_output(checkpoint->spec))
		return checkpoint_fail_damaged(checkpoint, "the file of its runs is missing");
	return restart_from_scratch(checkpoint, current,
				    "of the checkpoint the file of its runs is missing");
}

/* Does what the records say agree with the sort? */
static int check_state(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;
	const uint64_t n_records = input_total_nbytes(checkpoint->input) / layout->record_nbytes;
	uint64_t n_run_records = 0;

	for (size_t i = 0; i < state->n_runs; i++) {
		const struct saved_run *run = &state->runs[i].run;

		if (run->item_nbytes != layout->item_nbytes)
			return checkpoint_fail_damaged(checkpoint,
						       "its runs have items of another size");
		if (run->origin.read.n_records > n_records - n_run_records)
			return checkpoint_fail_damaged(checkpoint,
						       "its runs hold more than there is");
		n_run_records += run->origin.read.n_records;
	}
	if (!partitions_fit_sort(checkpoint) ||
	    (checkpoint->spec->unique && checkpoint_state_has_progress(state) &&
	     (state->n_partitions > 1 || n_run_records != n_records)))
		return checkpoint_fail_damaged(checkpoint, "its output does not fit the sort");
	return 0;
}

int checkpoint_resume(struct checkpoint *checkpoint, const struct fingerprint *current)
{
	struct checkpoint_state *state = &checkpoint->state;
	int r = manifest_read(&checkpoint->dir.manifest, checkpoint_state_visit, state);

	if (r == -EBADMSG)
		return fail_manifest(checkpoint);
	if (r == 0)
		r = state->fingerprint ? resume_existing(checkpoint, current) :
					 start_new(checkpoint, current);
	if (r < 0 || checkpoint->is_complete)
		return r;
	if (state->n_runs && checkpoint->dir.is_created[CHECKPOINT_RUNS])
		return resume_without_runs(checkpoint, current);
	return check_state(checkpoint);
}
