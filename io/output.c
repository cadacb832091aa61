/*
 * output - a file that appears complete or not at all, or a pipe in order (see output.h)
 *
 * Three kinds of output come down to two questions: is there a replacement (a regular file with a
 * name), and is it ordered (no writes at offsets)? Standard output that is a regular file is
 * neither.
 */
#include "io/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/codec_pool.h"
#include "io/direct.h"
#include "io/replacement.h"
#include "io/reservation.h"
#include "io/zst_reader.h"
#include "io/zst_writer.h"
#include "src/status.h"

/* Less than that is not worth a direct transfer. */
enum { LEAST_DIRECT_NBYTES = 1 << 20 };

struct output {
	/* Set at creation. */
	const char *name; /* for messages */
	struct file file;
	struct replacement *replacement; /* NULL: written in place */
	bool is_ordered;
	bool is_kept; /* and a regular file: what is written stays, whatever happens */
	bool has_identity;
	struct file_identity identity;
	uint64_t base;                  /* where in the file the output starts */
	struct reservation reservation; /* of what it will be */

	/* Constant once anything is written. */
	bool passes_by_cache;
	struct file direct;     /* then, if the file system can: the file, open with O_DIRECT */
	struct io_queue *queue; /* of direct writes; NULL if there is none */

	atomic_int r; /* the first failure, or 0; set under the lock */

	struct zst_writer *zst_writer; /* NULL: not compressed */
	struct zst_reader *zst_reader; /* of what was; made under the lock */
	struct codec_pool contexts;    /* of the reader */

	pthread_mutex_t lock;
	pthread_cond_t turn; /* ordered: written_nbytes has changed, or r */
	/* Under the lock. */
	uint64_t written_nbytes;
	uint64_t end; /* of the last byte written */
};

static int open_standard(struct output *output, struct stat *ret_status)
{
	/* A duplicate: it can be closed, which reports what the file system kept back. */
	const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	off_t base;

	output->name = "standard output";
	if (fd < 0)
		return fail(-errno, "standard output: %m");
	output->file.fd = fd;
	if (isatty(fd))
		return fail(-ENOTTY, "standard output is a terminal, which is no place for binary "
				     "records; name a file with -o");
	if (fstat(fd, ret_status) < 0)
		return fail(-errno, "standard output: %m");
	/* With O_APPEND the kernel ignores offsets. */
	base = S_ISREG(ret_status->st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	output->is_ordered = base < 0 || fcntl(fd, F_GETFL) & O_APPEND;
	output->base = output->is_ordered ? 0 : (uint64_t)base;
	return 0;
}

static int open_in_place(struct output *output, const char *path)
{
	const int r = file_open(output->file.engine, AT_FDCWD, path, O_WRONLY, 0, &output->file);

	output->is_ordered = true;
	return r < 0 ? fail(r, "%s: cannot open: %m", path) : 0;
}

static int open_path(struct output *output, const char *path, const char *kept_name,
		     struct stat *ret_status)
{
	const bool exists = stat(path, ret_status) == 0;

	output->name = path;
	if (!exists && errno != ENOENT)
		return fail(-errno, "%s: %m", path);
	if (!exists) {
		memset(ret_status, 0, sizeof *ret_status);
		return replacement_start(output->file.engine, path, NULL, kept_name, &output->file,
					 &output->replacement);
	}
	if (S_ISDIR(ret_status->st_mode))
		return fail(-EISDIR, "%s: %m", path);
	if (!S_ISREG(ret_status->st_mode))
		return open_in_place(output, path);
	/* A rename would replace a file that we may not write. */
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
		return fail(-errno, "%s: %m", path);
	return replacement_start(output->file.engine, path, ret_status, kept_name, &output->file,
				 &output->replacement);
}

/* Reserve space ahead of the writers, if the file then ends where the output does. */
static int reserve(struct output *output, uint64_t nbytes, const struct stat *status)
{
	uint64_t free_nbytes;
	int r;

	if (nbytes == OUTPUT_SIZE_UNKNOWN || output->is_ordered ||
	    (!output->replacement && output->base != (uint64_t)status->st_size))
		return 0;
	r = reservation_start(&output->reservation, &output->file, output->base, nbytes,
			      &free_nbytes);
	if (r == 0)
		return 0;
	file_truncate(&output->file, output->is_kept ? output->end : output->base);
	return fail(r, "%s: %m: %" PRIu64 " bytes are needed, %" PRIu64 " are available",
		    output->name, nbytes, free_nbytes);
}

static struct output *output_make(const struct io_engine *engine)
{
	struct output *output = calloc(1, sizeof *output);

	if (!output) {
		fail(-ENOMEM, "output: %m");
		return NULL;
	}
	output->file = output->direct = (struct file){ .engine = engine, .fd = -1 };
	pthread_mutex_init(&output->lock, NULL);
	pthread_cond_init(&output->turn, NULL);
	codec_pool_init(&output->contexts, 0);
	reservation_init(&output->reservation);
	return output;
}

static void note_identity(struct output *output, const struct stat *status)
{
	output->has_identity = S_ISREG(status->st_mode) || S_ISBLK(status->st_mode);
	output->identity = file_identity_of(status);
}

int output_open(const struct io_engine *engine, const char *path, uint64_t expected_nbytes,
		struct output **ret_output)
{
	struct output *output = output_make(engine);
	struct stat status;
	int r;

	if (!output)
		return -ENOMEM;
	if (!path || strcmp(path, "/dev/stdout") == 0)
		r = open_standard(output, &status);
	else
		r = open_path(output, path, NULL, &status);
	if (r == 0 && output->is_ordered)
		file_enlarge_pipe(&output->file);
	if (r == 0)
		r = reserve(output, expected_nbytes, &status);
	if (r < 0) {
		output_abort(output);
		return r;
	}
	note_identity(output, &status);
	*ret_output = output;
	return 0;
}

/* Take up the part that is written already. */
static int restore(struct output *output, const struct output_kept *kept)
{
	const uint64_t end = kept->nbytes ? kept->offset + kept->nbytes : 0;
	const int r = file_truncate(&output->file, end);

	output->written_nbytes = kept->nbytes;
	output->end = end;
	return r < 0 ? fail(r, "%s: cannot cut to %" PRIu64 " bytes: %m", output->name, end) : 0;
}

int output_open_kept(const struct io_engine *engine, const char *path, uint64_t expected_nbytes,
		     const struct output_kept *kept, struct output **ret_output)
{
	struct output *output = output_make(engine);
	struct stat status;
	int r;

	if (!output)
		return -ENOMEM;
	r = open_path(output, path, kept->name, &status);
	if (r == 0 && !output->replacement)
		r = fail(-EINVAL, "%s: is no regular file, which could be taken up again", path);
	output->is_kept = output->replacement;
	if (r == 0)
		r = restore(output, kept);
	if (r == 0)
		r = reserve(output, expected_nbytes, &status);
	if (r < 0) {
		output->is_kept = output->is_kept && kept->nbytes > 0;
		output_abort(output);
		return r;
	}
	note_identity(output, &status);
	*ret_output = output;
	return 0;
}

static void output_free(struct output *output)
{
	zst_writer_close(output->zst_writer);
	zst_reader_close(output->zst_reader);
	codec_pool_destroy(&output->contexts);
	reservation_destroy(&output->reservation);
	io_queue_close(output->queue);
	file_close(&output->direct);
	file_close(&output->file);
	pthread_cond_destroy(&output->turn);
	pthread_mutex_destroy(&output->lock);
	free(output);
}

void output_pass_by_cache(struct output *output)
{
	output->passes_by_cache = true;
	if (output_is_ordered(output) ||
	    file_reopen(&output->file, O_WRONLY | O_DIRECT, &output->direct) < 0)
		return;
	io_queue_open(output->file.engine, IO_QUEUE_URING, DIRECT_DEPTH, &output->queue);
}

uint32_t output_alignment(const struct output *output, uint64_t *ret_base)
{
	if (output->direct.fd < 0)
		return 0;
	*ret_base = output->base;
	return DIRECT_ALIGN_NBYTES;
}

const char *output_name(const struct output *output)
{
	return output->name;
}

bool output_identity(const struct output *output, struct file_identity *ret_identity)
{
	if (output->has_identity)
		*ret_identity = output->identity;
	return output->has_identity;
}

int output_new_identity(const struct output *output, struct file_identity *ret_identity)
{
	struct stat status;

	if (fstat(output->file.fd, &status) < 0)
		return fail(-errno, "%s: cannot tell which file is its new one: %m", output->name);
	*ret_identity = file_identity_of(&status);
	return 0;
}

bool output_is_atomic(const struct output *output)
{
	return output->replacement != NULL;
}

bool output_is_ordered(const struct output *output)
{
	return output->is_ordered || output->zst_writer;
}

/*
 * Wait until all before `offset` is written. Returns 0, or the failure that keeps it from ever
 * being.
 */
static int wait_for_turn(struct output *output, uint64_t offset)
{
	int r;

	pthread_mutex_lock(&output->lock);
	while ((r = atomic_load(&output->r)) == 0 && output->written_nbytes != offset) {
		assert(output->written_nbytes < offset);
		pthread_cond_wait(&output->turn, &output->lock);
	}
	pthread_mutex_unlock(&output->lock);
	return r;
}

/* Account for a write that returned r. */
static void note_write(struct output *output, int r, uint64_t offset, size_t nbytes)
{
	pthread_mutex_lock(&output->lock);
	if (r == 0) {
		output->written_nbytes += nbytes;
		if (output->end < offset + nbytes)
			output->end = offset + nbytes;
	} else if (atomic_load(&output->r) == 0) {
		atomic_store(&output->r, r);
	}
	pthread_cond_broadcast(&output->turn);
	pthread_mutex_unlock(&output->lock);
}

static int write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	int r;

	if (output->direct.fd >= 0 && nbytes >= LEAST_DIRECT_NBYTES &&
	    direct_lies_alike(data, offset))
		return direct_write_at(output->queue, &output->direct, &output->file, offset, data,
				       nbytes);
	r = file_write_at(&output->file, offset, data, nbytes);
	if (r == 0 && output->passes_by_cache)
		file_write_behind(&output->file, offset, nbytes);
	return r;
}

/* Bytes as they are to stand in the file, at `offset` from the base. */
static int write_stored(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct output *output = context;
	int r;

	if (output->is_ordered) {
		r = file_write_next(&output->file, data, nbytes);
	} else {
		reservation_reach(&output->reservation, offset + nbytes);
		r = write_at(output, output->base + offset, data, nbytes);
	}
	return r < 0 ? fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m", output->name, nbytes,
			    offset) :
		       0;
}

int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes)
{
	int r = atomic_load(&output->r);

	if (r == 0 && output_is_ordered(output))
		r = wait_for_turn(output, offset);
	if (r < 0)
		return r;
	if (output->zst_writer)
		r = zst_writer_append(output->zst_writer, data, nbytes);
	else
		r = write_stored(output, offset, data, nbytes);
	note_write(output, r, offset, nbytes);
	return r;
}

int output_compress(struct output *output, int level, unsigned n_threads)
{
	const struct zst_sink sink = { .context = output,
				       .in_order = output->is_ordered,
				       .write = write_stored };

	assert(output->written_nbytes == 0 && output->reservation.total_nbytes == 0 &&
	       !output->is_kept);
	return zst_writer_open(output->name, &sink, level, n_threads, &output->zst_writer);
}

/* What was compressed is complete in the file; then it can be read. Under the lock. */
static int finish_compression(struct output *output)
{
	int r;

	if (output->zst_reader)
		return 0;
	r = zst_writer_finish(output->zst_writer);
	if (r < 0)
		return r;
	return zst_reader_open(output->name, zst_writer_take_index(output->zst_writer),
			       output->base, &output->contexts, &output->zst_reader);
}

/* Wait for all that was written. The first failure stays. */
static int finish_writes(struct output *output)
{
	int r;

	pthread_mutex_lock(&output->lock);
	r = atomic_load(&output->r);
	if (r == 0 && output->zst_writer)
		r = finish_compression(output);
	atomic_store(&output->r, r);
	pthread_mutex_unlock(&output->lock);
	return r;
}

int output_read_at(struct output *output, uint64_t offset, void *buffer, size_t nbytes)
{
	int r;

	if (output->is_ordered)
		return -ESPIPE;
	r = finish_writes(output);
	if (r < 0)
		return r;
	if (output->zst_reader)
		return zst_reader_read_at(output->zst_reader, &output->file, offset, buffer,
					  nbytes);
	r = file_read_at(&output->file, output->base + offset, buffer, nbytes);
	if (r == -EBADF) /* `> file` is open for writing only */
		return -ESPIPE;
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", output->name, nbytes,
			    offset) :
		       0;
}

int output_sync(struct output *output)
{
	const int r = file_sync(&output->file);

	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", output->name) : 0;
}

void output_cancel(struct output *output)
{
	note_write(output, -ECANCELED, 0, 0);
}

/* Bring the file itself into its final state; its name is the replacement's business. */
static int complete(struct output *output, enum output_durability durability)
{
	int r;

	if (output->written_nbytes != output->end)
		return fail(-EIO,
			    "%s: internal error: %" PRIu64 " of %" PRIu64 " bytes were not written",
			    output->name, output->end - output->written_nbytes, output->end);
	if (output->end < output->reservation.reserved_nbytes) {
		r = file_truncate(&output->file, output->base + output->end);
		if (r < 0)
			return fail(r, "%s: cannot cut to %" PRIu64 " bytes: %m", output->name,
				    output->end);
	}
	if (durability == OUTPUT_UNSYNCED)
		return 0;
	r = file_sync(&output->file);
	if (r == -EINVAL && output->is_ordered) /* pipes have no storage */
		return 0;
	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", output->name) : 0;
}

static int close_in_place(struct output *output)
{
	const uint64_t nbytes = output->zst_writer ? zst_writer_stored_nbytes(output->zst_writer) :
						     output->end;
	int r;

	/* Who shares the descriptor goes on after our output. */
	if (!output->is_ordered)
		lseek(output->file.fd, (off_t)(output->base + nbytes), SEEK_SET);
	r = file_close(&output->file);
	return r < 0 ? fail(r, "%s: close: %m", output->name) : 0;
}

int output_commit(struct output *output, enum output_durability durability)
{
	struct replacement *replacement = output->replacement;
	int r = finish_writes(output);

	if (r == 0)
		r = complete(output, durability);
	if (r < 0) {
		output_abort(output);
		return r;
	}
	output->replacement = NULL;
	if (replacement)
		r = replacement_finish(replacement, &output->file, durability == OUTPUT_SYNC_ALL);
	else
		r = close_in_place(output);
	output_free(output);
	return r;
}

void output_abort(struct output *output)
{
	if (!output)
		return;
	if (!output->replacement && output->reservation.reserved_nbytes > 0)
		file_truncate(&output->file, output->base);
	if (output->is_kept)
		replacement_leave(output->replacement);
	else
		replacement_drop(output->replacement);
	output_free(output);
}

void output_forget(struct output *output)
{
	output->is_kept = false;
}

void output_cleanup_from_signal(void)
{
	replacement_cleanup_from_signal();
}
