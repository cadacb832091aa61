/*
 * output - a file that appears complete or not at all, or a pipe in order (see output.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/output/commit_point.h"
#include "io/output/output_internal.h"
#include "src/base/diagnostics.h"

/* What is written behind the end of a file that others have opened goes again if it fails. */
static void register_truncation(struct output *output)
{
	const struct target *target = &output->target;

	if (!target->atomic_file && !target->is_ordered && target->ends_at_base)
		output->truncate_entry = truncate_register(target->file.calls->truncations,
							   target->file.fd, target->base,
							   &output->own_truncate_entry);
}

static void unregister_truncation(struct output *output)
{
	if (output->truncate_entry)
		truncate_unregister(output->target.file.calls->truncations, output->truncate_entry);
	output->truncate_entry = NULL;
}

size_t output_memory_nbytes(void)
{
	return sizeof(struct output);
}

struct output *output_alloc(const struct syscalls *calls, const char *name)
{
	struct output *output = calloc(1, sizeof *output);

	if (!output) {
		fail(-ENOMEM, "%s: no memory for an output", name);
		return NULL;
	}
	file_writer_init(&output->writer, &output->target.file, calls);
	pthread_mutex_init(&output->lock, NULL);
	pthread_cond_init(&output->turn, NULL);
	codec_pool_init(&output->codec_contexts, 0);
	preallocate_init(&output->preallocation);
	return output;
}

int output_open(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		struct output **ret_output)
{
	return output_open_endpoint(calls, path, (struct endpoint){ .kind = ENDPOINT_PATH },
				    expected_nbytes, ret_output);
}

int output_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 uint64_t expected_nbytes, struct output **ret_output)
{
	static const struct target_params private_params = { .kind = TARGET_PRIVATE };
	struct output *output = output_alloc(calls, name);
	int r;

	if (!output)
		return -ENOMEM;
	r = endpoint.kind == ENDPOINT_PATH ?
		    target_open(calls, name, &private_params, &output->target) :
		    target_open_endpoint(calls, name, endpoint, &output->target);
	if (r == 0 && output->target.is_ordered)
		file_enlarge_pipe(&output->target.file);
	if (r == 0) {
		register_truncation(output);
		r = output_set_expected_size(output, expected_nbytes);
	}
	if (r < 0) {
		output_abort(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

int output_open_text(const struct syscalls *calls, const char *path, struct output **ret_output)
{
	struct output *output = output_alloc(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = target_open_text(calls, path, &output->target);
	if (r < 0) {
		output_abort(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

void output_free(struct output *output)
{
	zst_writer_close(output->zst_writer);
	zst_reader_close(output->zst_reader);
	codec_pool_destroy(&output->codec_contexts);
	preallocate_destroy(&output->preallocation);
	file_writer_destroy(&output->writer);
	target_close(&output->target);
	pthread_cond_destroy(&output->turn);
	pthread_mutex_destroy(&output->lock);
	free(output);
}

const char *output_name(const struct output *output)
{
	return output->target.name;
}

bool output_target_file_id(const struct output *output, struct file_id *ret_file_id)
{
	if (output->target.has_file_id)
		*ret_file_id = output->target.file_id;
	return output->target.has_file_id;
}

bool output_is_atomic(const struct output *output)
{
	return output->target.atomic_file != NULL;
}

bool output_is_ordered(const struct output *output)
{
	return (output->target.is_ordered && !output->target.is_null) || output->zst_writer;
}

int output_sync(struct output *output)
{
	const int r = file_sync(&output->target.file);

	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", output->target.name) :
		       0;
}

/* Give the file its final size. */
static int truncate_to_size(struct output *output)
{
	int r;

	if (output->written_nbytes != output->written_end)
		return fail(-EIO,
			    "%s: internal error: %" PRIu64 " of %" PRIu64 " bytes were not written",
			    output->target.name, output->written_end - output->written_nbytes,
			    output->written_end);
	if (output->written_end >= output->preallocation.extended_nbytes)
		return 0;
	r = file_truncate(&output->target.file, output->target.base + output->written_end);
	if (r < 0)
		return fail(r, "%s: cannot cut to %" PRIu64 " bytes: %m", output->target.name,
			    output->written_end);
	output->preallocation.extended_nbytes =
		output->written_end; /* a second time would set the time */
	return 0;
}

/* All writes are done: nothing but its attributes and its name are ours to change now. */
static int finalize_file(struct output *output)
{
	struct target *target = &output->target;
	int r;

	output_stop_prefault(output);
	r = output_finish_writes(output);
	if (r == 0)
		r = truncate_to_size(output);
	return r == 0 && target->atomic_file ?
		       atomic_file_mark_complete(target->atomic_file, &target->file) :
		       r;
}

int output_finalize(struct output *output, struct stat *ret_status)
{
	int r = finalize_file(output);

	if (r == 0 && fstat(output->target.file.fd, ret_status) < 0)
		r = fail(-errno, "%s: cannot tell its size: %m", output->target.name);
	return r;
}

/* Bring the file itself into its final state; its name is the replacement's business. */
int output_complete(struct output *output, enum output_durability durability)
{
	int r = output->is_complete ? 0 : finalize_file(output);

	if (r < 0 || output->is_complete)
		return r;
	output->is_complete = true;
	if (durability == OUTPUT_UNSYNCED)
		return 0;
	r = file_sync(&output->target.file);
	if (r == -EINVAL && output->target.is_ordered) /* pipes have no storage */
		return 0;
	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", output->target.name) :
		       0;
}

static uint64_t final_file_nbytes(const struct output *output)
{
	return output->zst_writer ? zst_writer_stored_nbytes(output->zst_writer) :
				    output->written_end;
}

static int close_in_place(struct output *output)
{
	const uint64_t nbytes = final_file_nbytes(output);
	int r;

	/* Who shares the descriptor goes on after our output. */
	if (!output->target.is_ordered)
		lseek(output->target.file.fd, (off_t)(output->target.base + nbytes), SEEK_SET);
	r = target_close(&output->target);
	return r < 0 ? fail(r, "%s: close: %m", output->target.name) : 0;
}

int output_check_target(const struct output *output)
{
	return output->target.atomic_file ? atomic_file_check_target(output->target.atomic_file) :
					    0;
}

int output_commit(struct output *output, enum output_durability durability)
{
	struct atomic_file *atomic_file = output->target.atomic_file;
	int r = output_complete(output, durability);

	if (r < 0) {
		output_abort(output);
		return r;
	}
	output->target.atomic_file = NULL;
	if (!atomic_file)
		commit_begin(output->target.file.calls->commit_point);
	unregister_truncation(output);
	if (atomic_file)
		r = atomic_file_commit(atomic_file, &output->target.file, final_file_nbytes(output),
				       durability == OUTPUT_SYNC_ALL);
	else
		r = close_in_place(output);
	output_free(output);
	return r;
}

void output_abort(struct output *output)
{
	if (!output)
		return;
	output_stop_prefault(output);
	if (output->truncate_entry && truncate_is_unmodified(output->truncate_entry))
		file_truncate(&output->target.file, output->target.base);
	unregister_truncation(output);
	atomic_file_discard(output->target.atomic_file);
	output_free(output);
}
