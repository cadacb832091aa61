/*
 * checkpoint_resume - is what a checkpoint's directory holds of this sort, and how far had that come?
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
#include "src/base/diagnostics.h"
#include "src/checkpoint/fingerprint.h"
#include "src/checkpoint/checkpoint_internal.h"

/* The hidden file beside the output; "": none is kept. */
static const char *kept_name(const struct checkpoint *checkpoint)
{
	return sort_spec_keeps_output(checkpoint->spec) ? checkpoint->state.header.output_name : "";
}

/* where: in which directories */
static struct advice advise(const struct checkpoint *checkpoint, const char *where)
{
	const char *output = kept_name(checkpoint);
	struct advice advice;

	snprintf(advice.text, sizeof advice.text, "to start again, remove %s and %s in %s%s%s%s",
		 checkpoint_file_names[CHECKPOINT_MANIFEST], checkpoint_file_names[CHECKPOINT_RUNS],
		 where, *output ? ", and " : "", output, *output ? " beside its output" : "");
	return advice;
}

/* Of several ranks what one has is sorted again. */
struct advice checkpoint_advise(const struct checkpoint *checkpoint)
{
	return advise(checkpoint, "it");
}

int checkpoint_fail_damaged(const struct checkpoint *checkpoint, const char *what)
{
	return fail(-EBADMSG, "%s: the checkpoint is damaged: %s; %s", checkpoint->files.path, what,
		    checkpoint_advise(checkpoint).text);
}

static int fail_other(const struct checkpoint *checkpoint, const struct difference *difference)
{
	return fail(
		-EINVAL, "%s: the checkpoint is of another sort: %s was '%s' and is '%s' now; %s",
		checkpoint->files.path, difference->name, difference->was, difference->is,
		advise(checkpoint, checkpoint->files.group ? "the directories of all ranks" : "it")
			.text);
}

/*
 * Of a name of gsort's beside the output, which may be of the sort that nothing is known of. ""
 * if there is none.
 */
static void find_unfinished(const char *output_path, char ret_name[static FILE_UNIQUE_NAME_SIZE])
{
	char *path;
	struct dirent *entry;
	DIR *directory = NULL;

	*ret_name = '\0';
	if (place_follow_links(output_path, &path) < 0)
		return;
	directory = opendir(dirname(path));
	free(path);
	while (directory && !*ret_name && (entry = readdir(directory)))
		if (file_is_unique_name(entry->d_name))
			memcpy(ret_name, entry->d_name, FILE_UNIQUE_NAME_SIZE);
	if (directory)
		closedir(directory);
}

/* What to do about that. */
static struct advice advise_unfinished(const struct checkpoint *checkpoint)
{
	struct advice advice = { .text = "" };
	char name[FILE_UNIQUE_NAME_SIZE];

	find_unfinished(checkpoint->spec->output_path, name);
	if (*name)
		snprintf(advice.text, sizeof advice.text,
			 "; %s beside the output may be what it had written: if no other gsort is "
			 "at work there, remove that, too",
			 name);
	return advice;
}

/*
 * Which sort's it is can be read, or not: then nothing but the runs is known to be its, and what it
 * had written of an output.
 */
static int fail_manifest(const struct checkpoint *checkpoint)
{
	const struct manifest *manifest = &checkpoint->files.manifest;
	const char *output = kept_name(checkpoint);
	struct advice unfinished = { .text = "" };

	if (!*output && sort_spec_keeps_output(checkpoint->spec))
		unfinished = advise_unfinished(checkpoint);
	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged at byte %" PRIu64
		    "; to start again, remove it and the %s beside it%s%s%s%s",
		    manifest->path, manifest->end, checkpoint_file_names[CHECKPOINT_RUNS],
		    *output ? ", and " : "", output, *output ? " beside its output" : "",
		    unfinished.text);
}

static int fail_unknown_runs(const struct checkpoint *checkpoint)
{
	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged: nothing is known of its runs; %s%s",
		    checkpoint->files.path, checkpoint_advise(checkpoint).text,
		    advise_unfinished(checkpoint).text);
}

/* A new checkpoint: its first record, and its name. */
static int begin(struct checkpoint *checkpoint, const struct description *description)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct checkpoint_files *files = &checkpoint->files;
	struct payload_part parts[] = { { &state->header, sizeof state->header },
					{ description->text, description->nbytes } };
	uint64_t runs_nbytes;
	int r = file_size(&files->runs, &runs_nbytes);

	if (r < 0)
		return fail(r, "%s/%s: %m", files->path, checkpoint_file_names[CHECKPOINT_RUNS]);
	if (runs_nbytes > CHECKPOINT_RUNS_BEGIN)
		return fail_unknown_runs(checkpoint);
	checkpoint->is_new = true;
	r = manifest_cut(&files->manifest);
	if (r < 0)
		return r;
	file_unique_name(state->header.output_name);
	r = checkpoint_append(&files->manifest, RECORD_HEADER, parts, 2);
	if (r == 0)
		r = manifest_sync(&files->manifest);
	return r < 0 ? r : checkpoint_files_sync_names(files);
}

/* Nothing of what is there is of use for this sort. */
static int begin_anew(struct checkpoint *checkpoint, const struct description *now, const char *why)
{
	struct checkpoint_files *files = &checkpoint->files;
	const int r = file_truncate(&files->runs, CHECKPOINT_RUNS_BEGIN);

	if (r < 0)
		return fail(r, "%s/%s: cannot be cut: %m", files->path,
			    checkpoint_file_names[CHECKPOINT_RUNS]);
	tell("%s: %s: beginning anew", files->path, why);
	checkpoint_state_free(&checkpoint->state);
	files->manifest.end = files->manifest.begin;
	return begin(checkpoint, now);
}

/* The sort that it is of is done, but this is another one. */
static const char output_has_changed[] =
	"the checkpoint is of a sort that is complete, and its output has changed since";
static const char input_has_changed[] =
	"the checkpoint is of a sort that is complete, and an input has changed since";

/* The output that has its name, from `offset` on. */
struct named_output {
	const struct checkpoint *checkpoint;
	uint64_t offset;
};

static int read_named(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct named_output *output = context;
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
static bool has_name(struct checkpoint *checkpoint, struct stat *ret_status)
{
	struct checkpoint_state *state = &checkpoint->state;

	if (!state->is_done)
		return false;
	if (stat(checkpoint->spec->output_path, ret_status) < 0 ||
	    ret_status->st_dev != state->output.device ||
	    ret_status->st_ino != state->output.inode) {
		checkpoint_state_forget_done(state);
		return false;
	}
	*state->header.output_name = '\0'; /* nothing of the hidden name is left to be removed */
	return true;
}

/* The time of modification is not that of the rename. */
static bool has_changed(const struct saved_done *done, const struct stat *status)
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
static int take_up_changed(struct checkpoint *checkpoint, const struct description *now)
{
	const struct sort_spec *spec = checkpoint->spec;
	const struct saved_output *output = &checkpoint->state.output;
	const struct file_identity file = { output->device, output->inode };

	if (input_has_file(checkpoint->input, file) &&
	    (spec->n_inputs > 1 || spec->count || spec->keys_only || spec->index))
		return fail(-EINVAL,
			    "%s: the sort was complete, and its output, %s, which is also an "
			    "input, has changed since; %s",
			    checkpoint->files.path, spec->output_path,
			    checkpoint_advise(checkpoint).text);
	return begin_anew(checkpoint, now, output_has_changed);
}

/* 0: the output that has its name is what was written. -EBADMSG without a message: it is not. */
static int check_complete(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct saved_done *done = &state->done;
	const uint64_t end = done->offset + checkpoint_state_end(state);
	struct named_output records = { checkpoint, done->offset }, all = { checkpoint, 0 };
	uint64_t around;
	struct output_part bad;
	int r = written_parts_check_all(state, read_named, &records, &bad);

	if (r == 0)
		r = written_parts_sum_around(done->offset, end, done->output_nbytes, read_named,
					     &all, &around);
	return r == 0 && around != done->around ? -EBADMSG : r;
}

/* The complete output may have taken the place of an input; else inputs are as they were. */
static int take_up_complete(struct checkpoint *checkpoint, const struct description *saved,
			    const struct description *now)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct file_identity output = { state->output.device, state->output.inode };
	struct difference difference;
	char accepted[80];
	const int r = check_complete(checkpoint);

	if (r == -EBADMSG)
		return checkpoint_fail_damaged(
			checkpoint, "the output has its name, but is not what was written");
	if (r < 0)
		return r;
	description_format_file(output, accepted);
	if (description_differs(saved, now, accepted, &difference))
		return begin_anew(checkpoint, now, input_has_changed);
	checkpoint->is_complete = true;
	return 0;
}

/* A checkpoint that is there: is it of this sort, and not at its end? */
static int take_up(struct checkpoint *checkpoint, const struct description *now)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct description saved = { state->description, state->description_nbytes };
	struct difference difference;
	struct stat output;
	int r;

	if (description_differs(&saved, now, ACCEPT_ALL, &difference))
		return fail_other(checkpoint, &difference);
	/* Nothing may be given up for a record that only the page cache has. */
	r = manifest_sync(&checkpoint->files.manifest);
	if (r < 0)
		return r;
	if (has_name(checkpoint, &output))
		return has_changed(&state->done, &output) ?
			       take_up_changed(checkpoint, now) :
			       take_up_complete(checkpoint, &saved, now);
	if (description_differs(&saved, now, ACCEPT_NONE, &difference))
		return fail_other(checkpoint, &difference);
	if (state->is_damaged) {
		r = checkpoint_read_damage(checkpoint);
		if (r < 0)
			return r;
	}
	return manifest_cut(&checkpoint->files.manifest);
}

/* A range begins where a record does, and its point is where the parts of it end. */
static bool fits_sort(const struct checkpoint_range *range, const struct layout *layout)
{
	const uint64_t end = output_parts_end(range->begin, range->parts, range->n_parts);

	return range->begin % layout->output_nbytes == 0 &&
	       range->point.result.n_items * layout->output_nbytes == end - range->begin;
}

/* Do the ranges, with their points? */
static bool ranges_fit_sort(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;

	for (size_t i = 0; i < state->n_ranges; i++)
		if (!fits_sort(&state->ranges[i], layout))
			return false;
	return !checkpoint_state_has_points(state) ||
	       (state->key_nbytes == layout_key_nbytes(layout) &&
		state->edge_nbytes == layout_edge_nbytes(layout));
}

/*
 * Where the output is kept, too, runs may be gone that are in it already. Else nothing is lost: a
 * sort that was complete may have been killed while it removed its checkpoint.
 */
static int take_up_without_runs(struct checkpoint *checkpoint, const struct description *now)
{
	if (sort_spec_keeps_output(checkpoint->spec))
		return checkpoint_fail_damaged(checkpoint, "the file of its runs is missing");
	return begin_anew(checkpoint, now, "of the checkpoint the file of its runs is missing");
}

/* Does what the records say agree with the sort? */
static int check_state(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;
	const uint64_t n_records = input_total_nbytes(checkpoint->input) / layout->record_nbytes;
	uint64_t n_in_runs = 0;

	for (size_t i = 0; i < state->n_runs; i++) {
		const struct saved_run *run = &state->runs[i].run;

		if (run->item_nbytes != layout->item_nbytes)
			return checkpoint_fail_damaged(checkpoint,
						       "its runs have items of another size");
		if (run->origin.read.n_records > n_records - n_in_runs)
			return checkpoint_fail_damaged(checkpoint,
						       "its runs hold more than there is");
		n_in_runs += run->origin.read.n_records;
	}
	if (!ranges_fit_sort(checkpoint) ||
	    (checkpoint->spec->unique && checkpoint_state_has_points(state) &&
	     (state->n_ranges > 1 || n_in_runs != n_records)))
		return checkpoint_fail_damaged(checkpoint, "its output does not fit the sort");
	return 0;
}

int checkpoint_take_up(struct checkpoint *checkpoint, const struct description *now)
{
	struct checkpoint_state *state = &checkpoint->state;
	int r = manifest_read(&checkpoint->files.manifest, checkpoint_state_visit, state);

	if (r == -EBADMSG)
		return fail_manifest(checkpoint);
	if (r == 0)
		r = state->description ? take_up(checkpoint, now) : begin(checkpoint, now);
	if (r < 0 || checkpoint->is_complete)
		return r;
	if (state->n_runs && checkpoint->files.is_made[CHECKPOINT_RUNS])
		return take_up_without_runs(checkpoint, now);
	return check_state(checkpoint);
}
