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
static void note_where_it_begins(struct output *output)
{
	const struct target *target = &output->target;

	if (!target->replacement && !target->is_ordered && target->ends_at_base)
		output->cut = cut_back_take(target->file.calls->cuts, target->file.fd, target->base,
					    &output->own_cut);
}

static void forget_where_it_begins(struct output *output)
{
	if (output->cut)
		cut_back_give_up(output->target.file.calls->cuts, output->cut);
	output->cut = NULL;
}

size_t output_memory_nbytes(void)
{
	return sizeof(struct output);
}

struct output *output_make(const struct syscalls *calls, const char *name)
{
	struct output *output = calloc(1, sizeof *output);

	if (!output) {
		fail(-ENOMEM, "%s: no memory for an output", name);
		return NULL;
	}
	file_writer_init(&output->writer, &output->target.file, calls);
	pthread_mutex_init(&output->lock, NULL);
	pthread_cond_init(&output->turn, NULL);
	codec_pool_init(&output->contexts, 0);
	reservation_init(&output->reservation);
	return output;
}

int output_open(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		struct output **ret_output)
{
	return output_open_given(calls, path, (struct given){ .kind = GIVEN_PATH }, expected_nbytes,
				 ret_output);
}

int output_open_given(const struct syscalls *calls, const char *name, struct given given,
		      uint64_t expected_nbytes, struct output **ret_output)
{
	static const struct target_way own = { .kind = TARGET_OWN };
	struct output *output = output_make(calls, name);
	int r;

	if (!output)
		return -ENOMEM;
	r = given.kind == GIVEN_PATH ? target_open(calls, name, &own, &output->target) :
				       target_open_given(calls, name, given, &output->target);
	if (r == 0 && output->target.is_ordered)
		file_enlarge_pipe(&output->target.file);
	if (r == 0) {
		note_where_it_begins(output);
		r = output_expect(output, expected_nbytes);
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
	struct output *output = output_make(calls, path);
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

/* Before anything is checked: what is read behind the checks could have been changed since. */
static void read_older_first(struct output *output, uint64_t end)
{
	const size_t n = end < OUTPUT_FIRST_NBYTES ? (size_t)end : OUTPUT_FIRST_NBYTES;

	output->first_is_lost = file_read_at(&output->target.file, 0, output->first, n) < 0;
}

/* Take up the part that is written already. */
static int restore(struct output *output, const struct output_kept *kept)
{
	const uint64_t end = kept->nbytes ? kept->end : 0;
	const int r = file_truncate(&output->target.file, end);

	if (r == 0)
		read_older_first(output, end);
	output->written_nbytes = kept->nbytes;
	output->end = end;
	return r < 0 ? fail(r, "%s: cannot cut to %" PRIu64 " bytes: %m", output->target.name,
			    end) :
		       0;
}

int output_open_kept(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		     const struct output_kept *kept, struct output **ret_output)
{
	struct output *output = output_make(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = target_open(calls, path, &(struct target_way){ .kind = TARGET_OWN, .name = kept->name },
			&output->target);
	if (r == 0 && !output->target.replacement)
		r = fail(-EINVAL, "%s: is no regular file, which could be taken up again", path);
	output->is_kept = output->target.replacement;
	if (r == 0)
		r = restore(output, kept);
	output->reservation.to_come_nbytes = output_space_to_come(output, &kept->to_come);
	if (r == 0)
		r = output_expect(output, expected_nbytes);
	if (r < 0) {
		output->is_kept = output->is_kept && kept->nbytes > 0;
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
	codec_pool_destroy(&output->contexts);
	reservation_destroy(&output->reservation);
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

bool output_identity(const struct output *output, struct file_identity *ret_identity)
{
	if (output->target.has_identity)
		*ret_identity = output->target.identity;
	return output->target.has_identity;
}

int output_new_identity(const struct output *output, struct file_identity *ret_identity)
{
	struct stat status;

	if (fstat(output->target.file.fd, &status) < 0)
		return fail(-errno, "%s: cannot tell which file is its new one: %m",
			    output->target.name);
	*ret_identity = file_identity_of(&status);
	return 0;
}

bool output_is_atomic(const struct output *output)
{
	return output->target.replacement != NULL;
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
static int cut(struct output *output)
{
	int r;

	if (output->written_nbytes != output->end)
		return fail(-EIO,
			    "%s: internal error: %" PRIu64 " of %" PRIu64 " bytes were not written",
			    output->target.name, output->end - output->written_nbytes, output->end);
	if (output->end >= output->reservation.extended_nbytes)
		return 0;
	r = file_truncate(&output->target.file, output->target.base + output->end);
	if (r < 0)
		return fail(r, "%s: cannot cut to %" PRIu64 " bytes: %m", output->target.name,
			    output->end);
	output->reservation.extended_nbytes = output->end; /* a second time would set the time */
	return 0;
}

/* All writes are done: nothing but its attributes and its name are ours to change now. */
static int finish_file(struct output *output)
{
	struct target *target = &output->target;
	int r;

	output_stop_readying(output);
	r = output_finish_writes(output);
	if (r == 0)
		r = cut(output);
	return r == 0 && target->replacement ?
		       replacement_note_written(target->replacement, &target->file) :
		       r;
}

int output_settle(struct output *output, struct stat *ret_status)
{
	int r = finish_file(output);

	if (r == 0 && fstat(output->target.file.fd, ret_status) < 0)
		r = fail(-errno, "%s: cannot tell its size: %m", output->target.name);
	return r;
}

/* Bring the file itself into its final state; its name is the replacement's business. */
int output_complete(struct output *output, enum output_durability durability)
{
	int r = output->is_complete ? 0 : finish_file(output);

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

static uint64_t final_nbytes(const struct output *output)
{
	return output->zst_writer ? zst_writer_stored_nbytes(output->zst_writer) : output->end;
}

static int close_in_place(struct output *output)
{
	const uint64_t nbytes = final_nbytes(output);
	int r;

	/* Who shares the descriptor goes on after our output. */
	if (!output->target.is_ordered)
		lseek(output->target.file.fd, (off_t)(output->target.base + nbytes), SEEK_SET);
	r = target_close(&output->target);
	return r < 0 ? fail(r, "%s: close: %m", output->target.name) : 0;
}

int output_check_target(const struct output *output)
{
	return output->target.replacement ? replacement_check(output->target.replacement) : 0;
}

int output_commit(struct output *output, enum output_durability durability)
{
	struct replacement *replacement = output->target.replacement;
	int r = output_complete(output, durability);

	if (r < 0) {
		output_abort(output);
		return r;
	}
	output->target.replacement = NULL;
	if (!replacement)
		commitment_make(output->target.file.calls->commitment);
	forget_where_it_begins(output);
	if (replacement)
		r = replacement_finish(replacement, &output->target.file, final_nbytes(output),
				       durability == OUTPUT_SYNC_ALL, output->is_kept);
	else
		r = close_in_place(output);
	output_free(output);
	return r;
}

void output_abort(struct output *output)
{
	if (!output)
		return;
	output_stop_readying(output);
	if (output->cut && cut_back_is_ours(output->cut))
		file_truncate(&output->target.file, output->target.base);
	forget_where_it_begins(output);
	if (output->is_kept)
		replacement_leave(output->target.replacement);
	else
		replacement_drop(output->target.replacement);
	output_free(output);
}

void output_forget(struct output *output)
{
	output->is_kept = false;
}
