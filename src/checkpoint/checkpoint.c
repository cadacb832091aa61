/*
 * checkpoint - what of a sort is finished is kept (see checkpoint.h)
 *
 * What is there when the sort begins: all of this is done by one thread before the others start.
 */
#include "src/checkpoint/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file/place.h"
#include "src/base/messages.h"
#include "src/base/size.h"
#include "src/checkpoint/description.h"
#include "src/checkpoint/run_origins.h"

struct advice checkpoint_advise(const struct checkpoint *checkpoint)
{
	const char *output = checkpoint->state.header.output_name;
	struct advice advice;

	snprintf(advice.text, sizeof advice.text, "to start again, remove %s and %s in it%s%s%s",
		 checkpoint_file_names[CHECKPOINT_MANIFEST], checkpoint_file_names[CHECKPOINT_RUNS],
		 *output ? ", and " : "", output, *output ? " beside its output" : "");
	return advice;
}

int checkpoint_fail_damaged(const struct checkpoint *checkpoint, const char *what)
{
	return fail(-EBADMSG, "%s: the checkpoint is damaged: %s; %s", checkpoint->files.path, what,
		    checkpoint_advise(checkpoint).text);
}

static int fail_other(const struct checkpoint *checkpoint, const struct difference *difference)
{
	return fail(-EINVAL,
		    "%s: the checkpoint is of another sort: %s was '%s' and is '%s' now; %s",
		    checkpoint->files.path, difference->name, difference->was, difference->is,
		    checkpoint_advise(checkpoint).text);
}

/* Which sort's it is can be read, or not: then nothing but the runs is known to be its. */
static int fail_manifest(const struct checkpoint *checkpoint)
{
	const struct manifest *manifest = &checkpoint->files.manifest;
	const char *output = checkpoint->state.header.output_name;

	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged at byte %" PRIu64
		    "; to start again, remove it and the %s beside it%s%s%s",
		    manifest->path, manifest->end, checkpoint_file_names[CHECKPOINT_RUNS],
		    *output ? ", and " : "", output, *output ? " beside its output" : "");
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

static int fail_unknown_runs(const struct checkpoint *checkpoint)
{
	char name[FILE_UNIQUE_NAME_SIZE];

	find_unfinished(checkpoint->spec->output_path, name);
	return fail(-EBADMSG,
		    "%s: the checkpoint is damaged: nothing is known of its runs; %s%s%s%s",
		    checkpoint->files.path, checkpoint_advise(checkpoint).text, *name ? "; " : "",
		    name,
		    *name ? " beside the output may be what it had written: if no other gsort is "
			    "at work there, remove that, too" :
			    "");
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

/* The sort that it is of is done, but this is another one: what has changed since is different. */
static int begin_anew(struct checkpoint *checkpoint, const struct description *now,
		      const char *what)
{
	struct checkpoint_files *files = &checkpoint->files;
	const int r = file_truncate(&files->runs, CHECKPOINT_RUNS_BEGIN);

	if (r < 0)
		return fail(r, "%s/%s: cannot be cut: %m", files->path,
			    checkpoint_file_names[CHECKPOINT_RUNS]);
	tell("%s: the checkpoint is of a sort that is complete, and %s has changed since: "
	     "beginning anew",
	     files->path, what);
	checkpoint_state_free(&checkpoint->state);
	files->manifest.end = files->manifest.begin;
	return begin(checkpoint, now);
}

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
	return begin_anew(checkpoint, now, "its output");
}

/* 0: the output that has its name is what was written. -EBADMSG without a message: it is not. */
static int check_complete(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct saved_done *done = &state->done;
	const uint64_t end = done->offset + output_parts_nbytes(state->parts, state->n_parts);
	struct named_output records = { checkpoint, done->offset }, all = { checkpoint, 0 };
	uint64_t around;
	size_t bad;
	int r = written_parts_check(state->parts, state->n_parts, read_named, &records, &bad);

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
		return begin_anew(checkpoint, now, "an input");
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

/* Does what the records say agree with the sort? */
static int check_state(const struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct layout *layout = checkpoint->layout;
	const uint64_t n_records = input_total_nbytes(checkpoint->input) / layout->record_nbytes;
	uint64_t n_in_runs = 0;

	if (state->n_runs && checkpoint->files.is_made[CHECKPOINT_RUNS])
		return checkpoint_fail_damaged(checkpoint, "the file of its runs is missing");
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
	if (!state->has_point)
		return 0;
	if (state->key_nbytes != layout_key_nbytes(layout) ||
	    state->edge_nbytes != layout_edge_nbytes(layout) ||
	    state->point.result.n_items * layout->output_nbytes !=
		    output_parts_nbytes(state->parts, state->n_parts) ||
	    (checkpoint->spec->unique && n_in_runs != n_records))
		return checkpoint_fail_damaged(checkpoint, "its output does not fit the sort");
	return 0;
}

static int open_state(struct checkpoint *checkpoint, const struct description *now)
{
	struct checkpoint_state *state = &checkpoint->state;
	int r = manifest_read(&checkpoint->files.manifest, checkpoint_state_visit, state);

	if (r == -EBADMSG)
		return fail_manifest(checkpoint);
	if (r == 0)
		r = state->description ? take_up(checkpoint, now) : begin(checkpoint, now);
	return r < 0 || checkpoint->is_complete ? r : check_state(checkpoint);
}

static int open_files(struct checkpoint *checkpoint)
{
	struct description now;
	int r = description_make(checkpoint->spec, &now);

	if (r < 0)
		return r;
	r = checkpoint_files_open(&checkpoint->files);
	if (r == 0)
		r = open_state(checkpoint, &now);
	free(now.text);
	return r;
}

static int check_input(const struct sort_spec *spec, const struct input *input)
{
	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail_hint(-ESPIPE, HINT_ABOUT_CHECKPOINT, 0,
				 "%s: an input is a pipe, or its size is not known for "
				 "another reason: it cannot be read again from any place",
				 spec->checkpoint_path);
	return 0;
}

static const struct merge_point *skip(void *context)
{
	const struct checkpoint *checkpoint = context;

	return checkpoint->skip.key ? &checkpoint->skip : NULL;
}

static struct checkpoint *checkpoint_make(void)
{
	struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

	if (!checkpoint) {
		fail_hint(-ENOMEM, HINT_ABOUT_CHECKPOINT, 0, "no memory for what it knows: %m");
		return NULL;
	}
	pthread_mutex_init(&checkpoint->lock, NULL);
	checkpoint->last_pending = &checkpoint->pending;
	return checkpoint;
}

int checkpoint_open(const struct syscalls *io, const struct sort_spec *spec,
		    const struct layout *layout, const struct input *input,
		    struct checkpoint **ret_checkpoint)
{
	int r = check_input(spec, input);
	struct checkpoint *checkpoint = r == 0 ? checkpoint_make() : NULL;

	if (!checkpoint)
		return r < 0 ? r : -ENOMEM;
	checkpoint->io = io;
	checkpoint->spec = spec;
	checkpoint->layout = layout;
	checkpoint->input = input;
	checkpoint->keeper = (struct keeper){ checkpoint, skip, checkpoint_run_stored };
	checkpoint_files_init(&checkpoint->files, io, spec->checkpoint_path);
	r = open_files(checkpoint);
	if (r < 0) {
		if (checkpoint->is_new)
			checkpoint_files_remove(&checkpoint->files);
		else
			checkpoint_files_abandon(&checkpoint->files);
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

/* An output, from where its records begin. */
struct records_of {
	struct output *output;
	uint64_t offset;
};

static int read_output(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct records_of *records = context;

	return output_read_at(records->output, records->offset + offset, buffer, nbytes);
}

static int check_output(const struct checkpoint *checkpoint, struct output *output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct records_of records = { output, checkpoint->spec->header_nbytes };
	size_t bad;
	int r = written_parts_check(state->parts, state->n_parts, read_output, &records, &bad);

	if (r != -EBADMSG)
		return r;
	return fail(r,
		    "%s: %" PRIu64 " bytes at %" PRIu64
		    " of the output under construction, %s, are "
		    "not what was written; %s",
		    checkpoint->files.path, state->parts[bad].nbytes, state->parts[bad].offset,
		    state->header.output_name, checkpoint_advise(checkpoint).text);
}

/* Remember which file the output is, to know it again when it has its name. */
static int note_output(struct checkpoint *checkpoint, const struct output *output)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct file_identity identity;
	struct payload_part part = { &state->output, sizeof state->output };
	const int r = output_new_identity(output, &identity);

	if (r < 0)
		return r;
	if (identity.device == state->output.device && identity.inode == state->output.inode)
		return 0;
	state->output = (struct saved_output){ identity.device, identity.inode };
	return checkpoint_append(&checkpoint->files.manifest, RECORD_OUTPUT, &part, 1);
}

int checkpoint_open_output(struct checkpoint *checkpoint, uint64_t expected_nbytes,
			   struct output **ret_output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct output_kept kept = {
		.name = state->header.output_name,
		.offset = checkpoint->spec->header_nbytes,
		.nbytes = output_parts_nbytes(state->parts, state->n_parts),
	};
	int r = output_open_kept(checkpoint->io, checkpoint->spec->output_path, expected_nbytes,
				 &kept, ret_output);

	if (r == 0)
		r = check_output(checkpoint, *ret_output);
	return r < 0 ? r : note_output(checkpoint, *ret_output);
}

static void say_what_is_there(const struct checkpoint *checkpoint, uint64_t n_records)
{
	const struct checkpoint_state *state = &checkpoint->state;
	char in_runs[32], input[32], written[32];

	if (checkpoint->is_new)
		return;
	size_format(n_records * checkpoint->layout->record_nbytes, in_runs);
	size_format(input_total_nbytes(checkpoint->input), input);
	size_format(output_parts_nbytes(state->parts, state->n_parts), written);
	tell("resuming: %zu runs hold %s of %s, and %s of the output are written", state->n_runs,
	     in_runs, input, written);
}

static int restore_parts(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;
	int r = written_parts_add(&checkpoint->written, state->parts, state->n_parts);

	checkpoint->n_queued = checkpoint->n_saved = state->n_parts;
	return r;
}

/* Times may say that inputs are the same when they are not. */
static int check_inputs(const struct checkpoint *checkpoint, const struct job *job)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct run_origins origins = { .input = job->input,
					     .layout = checkpoint->layout,
					     .runs = state->runs,
					     .n_runs = state->n_runs,
					     .n_threads = job->request.n_threads,
					     .stats = job->stats };
	uint64_t first = 0, record;
	const char *path;
	size_t bad;
	const int r = run_origins_check(&origins, &bad);

	if (r != -EBADMSG)
		return r;
	for (size_t i = 0; i < bad; i++)
		first += state->runs[i].run.origin.read.n_records;
	input_path_at(job->input, first * checkpoint->layout->record_nbytes, &path, &record);
	return fail(-EINVAL,
		    "%s: the input has changed behind record %" PRIu64
		    " since a run of the checkpoint in %s was made of it; %s",
		    path, record, checkpoint->files.path, checkpoint_advise(checkpoint).text);
}

int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job, struct output *output,
		       struct run_store *store, struct ledger *ledger)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct ledger sum = { 0 };
	int r = restore_parts(checkpoint);

	for (size_t i = 0; i < state->n_runs; i++)
		ledger_add(&sum, state->runs[i].run.origin);
	if (r == 0)
		r = check_inputs(checkpoint, job);
	if (r == 0)
		r = checkpoint_restore_runs(checkpoint, job, store);
	if (r < 0)
		return r;
	checkpoint->skip.key = state->point.key;
	atomic_store(&checkpoint->is_worth, state->n_runs > 0);
	say_what_is_there(checkpoint, sum.read.n_records);
	checkpoint_state_free_runs(&checkpoint->state);
	ledger_add(ledger, sum);
	return saver_open(&checkpoint->files.manifest, checkpoint->spill, output,
			  &checkpoint->saver);
}

const struct keeper *checkpoint_keeper(const struct checkpoint *checkpoint)
{
	return &checkpoint->keeper;
}
