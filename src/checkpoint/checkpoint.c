/*
 * checkpoint - what of a sort is finished is kept (see checkpoint.h)
 *
 * What is there when the sort begins: all of this is done by one thread before the others start.
 */
#include "src/checkpoint/checkpoint_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/checkpoint/fingerprint.h"
#include "src/checkpoint/input_check.h"
#include "src/comm/comm.h"

static int open_files(struct checkpoint *checkpoint)
{
	struct ranks *ranks = checkpoint->spec->ranks;
	struct description now;
	int r = description_make(checkpoint->spec, &now);

	if (r < 0)
		return r;
	r = checkpoint_files_open(&checkpoint->files);
	if (r == 0)
		r = checkpoint_take_up(checkpoint, &now);
	if (r == 0)
		r = checkpoint_files_check_ranks(&checkpoint->files, ranks ? ranks_size(ranks) : 0);
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

static const struct merge_range *taken_up(void *context, uint32_t *ret_n)
{
	const struct checkpoint *checkpoint = context;

	*ret_n = checkpoint->taken_up ? (uint32_t)checkpoint->state.n_ranges : 0;
	return checkpoint->taken_up;
}

static int refuse(void *context, uint64_t position, uint64_t n_noted, uint64_t n_items)
{
	const struct checkpoint *checkpoint = context;

	return fail(
		-EINVAL,
		"%s: the inputs have changed since the checkpoint was made: the output had %" PRIu64
		" records from number %" PRIu64 " on where there are %" PRIu64 " now; %s",
		checkpoint->files.path, n_noted, position + 1, n_items,
		checkpoint_advise(checkpoint).text);
}

void checkpoint_leave_runs(struct checkpoint *checkpoint)
{
	checkpoint->has_left_runs = true;
}

static struct checkpoint *checkpoint_make(void)
{
	struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);

	if (!checkpoint) {
		fail_hint(-ENOMEM, HINT_ABOUT_CHECKPOINT, 0, "no memory for what it knows: %m");
		return NULL;
	}
	pthread_mutex_init(&checkpoint->lock, NULL);
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
	checkpoint->keeper = (struct keeper){
		checkpoint,
		taken_up,
		refuse,
		checkpoint_run_stored,
	};
	if (spec->ranks)
		r = checkpoint_files_init_rank(&checkpoint->files, io, spec->checkpoint_path,
					       ranks_rank(spec->ranks));
	else
		checkpoint_files_init(&checkpoint->files, io, spec->checkpoint_path);
	if (r == 0)
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
	struct output_part bad;
	int r = written_parts_check_all(state, read_output, &records, &bad);

	if (r != -EBADMSG)
		return r;
	return fail(r,
		    "%s: %" PRIu64 " bytes at %" PRIu64
		    " of the output under construction, %s, are "
		    "not what was written; %s",
		    checkpoint->files.path, bad.nbytes, bad.offset, state->header.output_name,
		    checkpoint_advise(checkpoint).text);
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

void checkpoint_space_to_come(const struct checkpoint *checkpoint,
			      struct output_space_to_come *ret_to_come)
{
	struct stat runs;

	*ret_to_come = (struct output_space_to_come){ 0 };
	if (fstat(checkpoint->files.runs.fd, &runs) == 0)
		*ret_to_come = (struct output_space_to_come){ runs.st_dev,
							      (uint64_t)runs.st_blocks * 512 };
}

int checkpoint_open_output(struct checkpoint *checkpoint, uint64_t expected_nbytes,
			   struct output **ret_output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct output_kept kept = {
		.name = state->header.output_name,
		.nbytes = checkpoint_state_nbytes(state),
		.end = checkpoint->spec->header_nbytes + checkpoint_state_end(state),
	};
	int r;

	checkpoint_space_to_come(checkpoint, &kept.to_come);
	r = output_open_kept(checkpoint->io, checkpoint->spec->output_path, expected_nbytes, &kept,
			     ret_output);
	if (r == 0)
		r = check_output(checkpoint, *ret_output);
	return r < 0 ? r : note_output(checkpoint, *ret_output);
}

void checkpoint_get_owner(const struct checkpoint *checkpoint, struct leftovers_owner *ret_owner)
{
	const char *name = checkpoint->state.header.output_name;

	*ret_owner = (struct leftovers_owner){ .digits = "" };
	if (file_is_unique_name(name))
		memcpy(ret_owner->digits, file_unique_digits_of(name), sizeof ret_owner->digits);
}

static void say_what_is_there(const struct checkpoint *checkpoint, uint64_t n_records)
{
	const struct checkpoint_state *state = &checkpoint->state;
	char in_runs[32], input[32], written[32];

	if (checkpoint->is_new || checkpoint->spec->ranks)
		return;
	size_format(n_records * checkpoint->layout->record_nbytes, in_runs);
	size_format(input_total_nbytes(checkpoint->input), input);
	size_format(checkpoint_state_nbytes(state), written);
	if (sort_spec_keeps_output(checkpoint->spec))
		tell("resuming: %zu runs hold %s of %s, and %s of the output are written",
		     state->n_runs, in_runs, input, written);
	else
		tell("resuming: %zu runs hold %s of %s; the output is written anew", state->n_runs,
		     in_runs, input);
}

/* For whoever merges: where each range is to be taken up. */
static int take_up_ranges(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;

	if (!checkpoint_state_has_points(state))
		return 0;
	checkpoint->taken_up = calloc(state->n_ranges, sizeof *checkpoint->taken_up);
	if (!checkpoint->taken_up)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint", state->n_ranges);
	for (size_t i = 0; i < state->n_ranges; i++) {
		const struct checkpoint_range *range = &state->ranges[i];

		checkpoint->taken_up[i] = (struct merge_range){
			.key = range->key,
			.position = range->begin / checkpoint->layout->output_nbytes,
			.start = range->has_point ? &range->point : NULL,
		};
	}
	return 0;
}

/* Times may say that inputs are the same when they are not. */
static int check_inputs(const struct checkpoint *checkpoint, const struct job *job)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct run_origins origins = { .input = job->input,
					     .layout = checkpoint->layout,
					     .runs = state->runs,
					     .n_runs = state->n_runs,
					     .first_record = job->first_record,
					     .n_threads = job->request.n_threads,
					     .stats = job->stats };
	uint64_t first = job->first_record, record;
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
	int r = checkpoint_restore_progress(checkpoint);

	for (size_t i = 0; i < state->n_runs; i++)
		ledger_add(&sum, state->runs[i].run.origin);
	if (r == 0 && job->has_end && sum.read.n_records > job->end_record - job->first_record)
		r = checkpoint_fail_damaged(checkpoint, "its runs hold more than a rank's part");
	if (r == 0)
		r = check_inputs(checkpoint, job);
	if (r == 0)
		r = checkpoint_restore_runs(checkpoint, job, store);
	if (r == 0)
		r = take_up_ranges(checkpoint);
	if (r < 0)
		return r;
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
