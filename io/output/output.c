/*
 * output - a file that appears complete or not at all, or a pipe in order (see output.h)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/file/size_limit.h"
#include "io/output/commitment.h"
#include "io/output/output_inside.h"
#include "src/base/messages.h"
#include "src/base/multiples.h"

/* Only if the file then ends where the output does. */
static bool can_reserve(const struct output *output, uint64_t nbytes)
{
	return nbytes != OUTPUT_SIZE_UNKNOWN && !output->target.is_ordered &&
	       output->target.ends_at_base;
}

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

static int fail_no_room(const struct output *output, int r, uint64_t nbytes, uint64_t free_nbytes)
{
	char advice[SIZE_LIMIT_NBYTES];

	if (r == -EFBIG)
		return fail(r, "%s: %m: %" PRIu64 " bytes are needed%s", output->target.name,
			    nbytes, size_limit_advice(r, advice));
	return fail(r, "%s: %m: %" PRIu64 " bytes are needed, %" PRIu64 " are available",
		    output->target.name, nbytes, free_nbytes);
}

/*
 * In a file that has something already, which is gone, or behind which a part would stay, when
 * there is not enough space in the end: what can be known of that is looked at before.
 */
static int check_in_place(const struct output *output, uint64_t nbytes)
{
	const struct target *target = &output->target;
	const uint64_t end = target->base + nbytes;
	uint64_t more_nbytes, free_nbytes;
	int r;

	if (end <= target->end)
		return 0;
	more_nbytes = end - target->end;
	r = reservation_try_behind(&target->file, target->end, more_nbytes, &free_nbytes);
	return r < 0 ? fail_no_room(output, r, more_nbytes, free_nbytes) : 0;
}

/* Reserve space ahead of the writers, or see at least whether there is some. */
static int reserve(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes;
	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || !output->target.is_file)
		return 0;
	/* What is kept goes on from where it has come to, when the limit is higher. */
	r = output->is_kept ? 0 : size_limit_check(output->target.base + nbytes);
	if (r < 0)
		return fail_no_room(output, r, nbytes, 0);
	if (!can_reserve(output, nbytes))
		return check_in_place(output, nbytes);
	if (output->cut)
		cut_back_reach(output->cut, output->target.base + nbytes);
	r = reservation_start(&output->reservation, &output->target.file, output->target.base,
			      nbytes, &free_nbytes);
	if (r == 0)
		return 0;
	file_truncate(&output->target.file, output->is_kept ? output->end : output->target.base);
	return fail_no_room(output, r, nbytes, free_nbytes);
}

int output_expect(struct output *output, uint64_t nbytes)
{
	return reserve(output, nbytes);
}

void output_expect_late(struct output *output, uint64_t nbytes)
{
	uint64_t free_nbytes = reservation_free_nbytes(&output->target.file);

	if (!can_reserve(output, nbytes) || free_nbytes < nbytes)
		return;
	if (output->cut)
		cut_back_reach(output->cut, output->target.base + nbytes);
	reservation_start(&output->reservation, &output->target.file, output->target.base, nbytes,
			  &free_nbytes);
}

int output_check_room(const struct output *output, uint64_t nbytes)
{
	const uint64_t free_nbytes = reservation_free_nbytes(&output->target.file);

	if (output->target.is_ordered || nbytes <= free_nbytes ||
	    !reservation_is_real(&output->target.file))
		return 0;
	return fail(-ENOSPC,
		    "%s: %m: %" PRIu64 " bytes are needed for all parts, %" PRIu64 " are available",
		    output->target.name, nbytes, free_nbytes);
}

size_t output_memory_nbytes(void)
{
	return sizeof(struct output);
}

static struct output *output_make(const struct syscalls *calls, const char *name)
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
		r = reserve(output, expected_nbytes);
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
	if (r == 0)
		r = reserve(output, expected_nbytes);
	if (r < 0) {
		output->is_kept = output->is_kept && kept->nbytes > 0;
		output_abort(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

static int open_shared(const struct syscalls *calls, const char *path, const struct target_way *way,
		       struct output **ret_output)
{
	struct output *output = output_make(calls, path);
	int r;

	if (!output)
		return -ENOMEM;
	r = target_open(calls, path, way, &output->target);
	if (r == 0 && !output->target.replacement)
		r = fail(-EINVAL, "%s: is no regular file, which several ranks could write to",
			 path);
	if (r < 0) {
		output_abort(output);
		return r;
	}
	*ret_output = output;
	return 0;
}

int output_open_shared(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		       bool tells, const struct leftovers_owner *owner, struct output **ret_output)
{
	struct target_way way = { .kind = TARGET_SHARED, .is_silent = !tells };
	int r;

	if (owner)
		way.owner = *owner;
	r = open_shared(calls, path, &way, ret_output);
	if (r == 0)
		r = reserve(*ret_output, expected_nbytes);
	return r;
}

int output_join(const struct syscalls *calls, const char *path, const char *name,
		struct output **ret_output)
{
	const struct target_way way = { .kind = TARGET_JOINED, .name = name };

	return open_shared(calls, path, &way, ret_output);
}

bool output_reserves(const struct output *output)
{
	return output->reservation.steps ? output->reservation.is_real :
					   reservation_is_real(&output->target.file);
}

void output_share(struct output *output, uint64_t nbytes)
{
	reservation_join(&output->reservation, &output->target.file, output->target.base, nbytes);
	file_writer_share(&output->writer);
}

const char *output_shared_name(const struct output *output)
{
	return replacement_hidden_name(output->target.replacement);
}

uint64_t output_stripe_nbytes(const struct output *output)
{
	const uint64_t least = 1 << 20, most = 16 << 20;
	struct stat status;
	uint64_t nbytes;

	if (fstat(output->target.file.fd, &status) < 0 || status.st_blksize < 0)
		return least;
	nbytes = (uint64_t)status.st_blksize;
	if (nbytes < least) /* whole ones of it */
		nbytes = nbytes ? round_up(least, nbytes) : least;
	return nbytes < most ? nbytes : most;
}

void output_note_others(struct output *output, uint64_t nbytes, uint64_t end)
{
	pthread_mutex_lock(&output->lock);
	output->written_nbytes += nbytes;
	if (output->end < end)
		output->end = end;
	pthread_mutex_unlock(&output->lock);
}

static void output_free(struct output *output)
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

void output_try_both_ways(struct output *output)
{
	if (!output_is_ordered(output) && !output->target.is_null)
		file_writer_try_both_ways(&output->writer);
}

void output_write_behind(struct output *output)
{
	output_stop_readying(output);
	file_writer_pass_by_cache(&output->writer);
}

void output_pass_by_cache(struct output *output)
{
	output_stop_readying(output);
	file_writer_pass_by_cache(&output->writer);
	output_try_both_ways(output);
}

void output_divide(struct output *output, uint32_t n_writers)
{
	file_writer_divide(&output->writer, n_writers);
}

/* Room for what it takes, and three times as much for what its sort may store meanwhile. */
enum { AMPLE_TIMES = 4 };

bool output_has_ample_room(const struct output *output, uint64_t nbytes)
{
	return reservation_free_nbytes(&output->target.file) / AMPLE_TIMES >= nbytes;
}

static bool can_be_made_ready(const struct output *output)
{
	return output->reservation.is_real && !output->early;
}

void output_make_ready(struct output *const *outputs, uint32_t n, uint32_t n_writers,
		       unsigned n_threads)
{
	struct early_file *files = calloc(n, sizeof *files);
	struct early_pages *early;
	uint32_t n_files = 0;

	while (files && n_files < n && can_be_made_ready(outputs[n_files])) {
		files[n_files] = (struct early_file){
			file_writer_to_map(&outputs[n_files]->writer),
			&outputs[n_files]->reservation,
		};
		n_files++;
	}
	if (n_files == n && early_pages_start(files, n, n_writers, n_threads, &early) == 0)
		for (uint32_t i = 0; i < n; i++) {
			outputs[i]->early = early;
			file_writer_expect_ready(&outputs[i]->writer, true);
		}
	free(files);
}

void output_stop_readying(struct output *output)
{
	if (!output || !output->early)
		return;
	early_pages_stop(output->early);
	output->early = NULL;
	file_writer_expect_ready(&output->writer, false);
}

struct file_writer_ways output_ways(const struct output *output)
{
	return file_writer_ways(&output->writer);
}

uint32_t output_alignment(const struct output *output, uint64_t *ret_base)
{
	const uint32_t nbytes = file_writer_alignment(&output->writer);

	if (nbytes)
		*ret_base = output->target.base;
	return nbytes;
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

int output_leave(struct output *output)
{
	/* What a file system of several machines could not write it may say only now. */
	const int r = target_close(&output->target);

	if (r < 0) {
		fail(r, "%s: close: %m", output->target.name);
		output_abort(output);
		return r;
	}
	replacement_leave(output->target.replacement);
	output_free(output);
	return 0;
}

void output_forget(struct output *output)
{
	output->is_kept = false;
}
