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

static int open_and_resume(struct checkpoint *checkpoint)
{
	struct comm *ranks = checkpoint->spec->comm;
	struct fingerprint current;
	int r = fingerprint_create(checkpoint->spec, &current);

	if (r < 0)
		return r;
	r = checkpoint_dir_open(&checkpoint->dir);
	if (r == 0)
		r = checkpoint_resume(checkpoint, &current);
	if (r == 0)
		r = checkpoint_dir_check_ranks(&checkpoint->dir, ranks ? comm_size(ranks) : 0);
	free(current.text);
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

static const struct partition_desc *get_restore_partitions(void *context, uint32_t *ret_n)
{
	const struct checkpoint *checkpoint = context;

	*ret_n = checkpoint->restore_partitions ? (uint32_t)checkpoint->state.n_partitions : 0;
	return checkpoint->restore_partitions;
}

static int fail_input_changed(void *context, uint64_t position, uint64_t n_expected,
			      uint64_t n_items)
{
	const struct checkpoint *checkpoint = context;

	return fail(
		-EINVAL,
		"%s: the inputs have changed since the checkpoint was made: the output had %" PRIu64
		" records from number %" PRIu64 " on where there are %" PRIu64 " now; %s",
		checkpoint->dir.path, n_expected, position + 1, n_items,
		checkpoint_format_advice(checkpoint).text);
}

void checkpoint_freeze_runs(struct checkpoint *checkpoint)
{
	checkpoint->runs_are_frozen = true;
}

static struct checkpoint *checkpoint_alloc(void)
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
	struct checkpoint *checkpoint = r == 0 ? checkpoint_alloc() : NULL;

	if (!checkpoint)
		return r < 0 ? r : -ENOMEM;
	checkpoint->io = io;
	checkpoint->spec = spec;
	checkpoint->layout = layout;
	checkpoint->input = input;
	checkpoint->hooks = (struct checkpoint_hooks){
		checkpoint,
		get_restore_partitions,
		fail_input_changed,
		checkpoint_run_stored,
	};
	if (spec->comm)
		r = checkpoint_dir_init_rank(&checkpoint->dir, io, spec->checkpoint_path,
					     comm_rank(spec->comm));
	else
		checkpoint_dir_init(&checkpoint->dir, io, spec->checkpoint_path);
	if (r == 0)
		r = open_and_resume(checkpoint);
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

/* An output, from where its records begin. */
struct output_records {
	struct output *output;
	uint64_t offset;
};

static int read_output(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct output_records *records = context;

	return output_read_at(records->output, records->offset + offset, buffer, nbytes);
}

static int check_output(const struct checkpoint *checkpoint, struct output *output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct output_records records = { output, checkpoint->spec->header_nbytes };
	struct output_extent bad;
	int r = written_extents_check_all(state, read_output, &records, &bad);

	if (r != -EBADMSG)
		return r;
	return fail(r,
		    "%s: %" PRIu64 " bytes at %" PRIu64
		    " of the output under construction, %s, are "
		    "not what was written; %s",
		    checkpoint->dir.path, bad.nbytes, bad.offset, state->header.output_name,
		    checkpoint_format_advice(checkpoint).text);
}

/* Remember which file the output is, to know it again when it has its name. */
static int record_output_identity(struct checkpoint *checkpoint, const struct output *output)
{
	struct checkpoint_state *state = &checkpoint->state;
	struct file_id file_id;
	struct payload_slice slice = { &state->output, sizeof state->output };
	const int r = output_file_id(output, &file_id);

	if (r < 0)
		return r;
	if (file_id.device == state->output.device && file_id.inode == state->output.inode)
		return 0;
	state->output = (struct saved_output){ file_id.device, file_id.inode };
	return checkpoint_append_record(&checkpoint->dir.manifest, RECORD_OUTPUT, &slice, 1);
}

void checkpoint_space_released_later(const struct checkpoint *checkpoint,
				     struct space_released_later *ret_released_later)
{
	struct stat runs;

	*ret_released_later = (struct space_released_later){ 0 };
	if (fstat(checkpoint->dir.runs.fd, &runs) == 0)
		*ret_released_later =
			(struct space_released_later){ runs.st_dev,
						       (uint64_t)runs.st_blocks * 512 };
}

int checkpoint_open_output(struct checkpoint *checkpoint, uint64_t expected_nbytes,
			   struct output **ret_output)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct resumable_output resumable = {
		.name = state->header.output_name,
		.written_nbytes = checkpoint_state_written_nbytes(state),
		.written_end =
			checkpoint->spec->header_nbytes + checkpoint_state_written_end(state),
	};
	int r;

	checkpoint_space_released_later(checkpoint, &resumable.released_later);
	r = output_open_resumable(checkpoint->io, checkpoint->spec->output_path, expected_nbytes,
				  &resumable, ret_output);
	if (r == 0)
		r = check_output(checkpoint, *ret_output);
	return r < 0 ? r : record_output_identity(checkpoint, *ret_output);
}

void checkpoint_get_orphan_owner(const struct checkpoint *checkpoint,
				 struct orphan_owner *ret_owner)
{
	const char *name = checkpoint->state.header.output_name;

	*ret_owner = (struct orphan_owner){ .digits = "" };
	if (file_is_unique_name(name))
		memcpy(ret_owner->digits, file_unique_name_digits(name), sizeof ret_owner->digits);
}

static void report_resumed_state(const struct checkpoint *checkpoint, uint64_t n_records)
{
	const struct checkpoint_state *state = &checkpoint->state;
	char runs_size[32], input_size[32], written_size[32];

	if (checkpoint->is_new || checkpoint->spec->comm)
		return;
	size_format(n_records * checkpoint->layout->record_nbytes, runs_size);
	size_format(input_total_nbytes(checkpoint->input), input_size);
	size_format(checkpoint_state_written_nbytes(state), written_size);
	if (spec_checkpoints_output(checkpoint->spec))
		notice("resuming: %zu runs hold %s of %s, and %s of the output are written",
		       state->n_runs, runs_size, input_size, written_size);
	else
		notice("resuming: %zu runs hold %s of %s; the output is written anew",
		       state->n_runs, runs_size, input_size);
}

/* For whoever merges: where each range is to be taken up. */
static int set_restore_partitions(struct checkpoint *checkpoint)
{
	const struct checkpoint_state *state = &checkpoint->state;

	if (!checkpoint_state_has_progress(state))
		return 0;
	checkpoint->restore_partitions =
		calloc(state->n_partitions, sizeof *checkpoint->restore_partitions);
	if (!checkpoint->restore_partitions)
		return fail(-ENOMEM, "no memory for %zu ranges of a checkpoint",
			    state->n_partitions);
	for (size_t i = 0; i < state->n_partitions; i++) {
		const struct checkpoint_partition *partition = &state->partitions[i];

		checkpoint->restore_partitions[i] = (struct partition_desc){
			.key = partition->key,
			.position = partition->begin / checkpoint->layout->output_nbytes,
			.restore_point = partition->has_restore_point ? &partition->restore_point :
									NULL,
		};
	}
	return 0;
}

/* Times may say that inputs are the same when they are not. */
static int check_inputs(const struct checkpoint *checkpoint, const struct job *job)
{
	const struct checkpoint_state *state = &checkpoint->state;
	const struct input_check check = { .input = job->input,
					   .layout = checkpoint->layout,
					   .runs = state->runs,
					   .n_runs = state->n_runs,
					   .first_record = job->first_record,
					   .n_threads = job->plan_request.n_threads,
					   .stats = job->stats };
	uint64_t first_record = job->first_record, record;
	const char *path;
	size_t bad;
	const int r = input_check_run(&check, &bad);

	if (r != -EBADMSG)
		return r;
	for (size_t i = 0; i < bad; i++)
		first_record += state->runs[i].run.origin.read.n_records;
	input_path_at(job->input, first_record * checkpoint->layout->record_nbytes, &path, &record);
	return fail(-EINVAL,
		    "%s: the input has changed behind record %" PRIu64
		    " since a run of the checkpoint in %s was made of it; %s",
		    path, record, checkpoint->dir.path, checkpoint_format_advice(checkpoint).text);
}

int checkpoint_restore(struct checkpoint *checkpoint, const struct job *job, struct output *output,
		       struct run_list *store, struct record_totals *ledger)
{
	const struct checkpoint_state *state = &checkpoint->state;
	struct record_totals sum = { 0 };
	int r = checkpoint_restore_progress(checkpoint);

	for (size_t i = 0; i < state->n_runs; i++)
		record_totals_add(&sum, state->runs[i].run.origin);
	if (r == 0 && job->has_end && sum.read.n_records > job->end_record - job->first_record)
		r = checkpoint_fail_damaged(checkpoint, "its runs hold more than a rank's part");
	if (r == 0)
		r = check_inputs(checkpoint, job);
	if (r == 0)
		r = checkpoint_restore_runs(checkpoint, job, store);
	if (r == 0)
		r = set_restore_partitions(checkpoint);
	if (r < 0)
		return r;
	atomic_store(&checkpoint->is_worth_keeping, state->n_runs > 0);
	report_resumed_state(checkpoint, sum.read.n_records);
	checkpoint_state_free_runs(&checkpoint->state);
	record_totals_add(ledger, sum);
	return sync_thread_open(&checkpoint->dir.manifest, checkpoint->spill, output,
				&checkpoint->sync_thread);
}

const struct checkpoint_hooks *checkpoint_get_hooks(const struct checkpoint *checkpoint)
{
	return &checkpoint->hooks;
}
