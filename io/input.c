/*
 * input - several files and pipes as one stream of whole records (see input.h)
 *
 * There are two ways through this file. With regular files only, a part is claimed by moving `next`
 * and then read with pread(), through the sources that it touches. With a pipe among the inputs,
 * the claim lock is held while the current source is read to its end, then the next one.
 *
 * Locks: `claim` orders the stream; `table` guards the descriptors and how far sources have been
 * started. Who holds the claim lock may take the table lock, not the other way round.
 */
#include "io/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/status.h"

/* What the kernel lets everybody have (/proc/sys/fs/pipe-max-size); 64 KiB is the default. */
#define PIPE_NBYTES (1 << 20)

struct source {
	/* Set at creation. */
	const char *name; /* for messages */
	const char *path; /* NULL: standard input */
	bool is_stream;   /* has an end that shows only when it is reached */
	struct file_identity identity;
	uint64_t base;    /* where in the file we start */
	uint64_t nbytes;  /* from there; of a stream, under the claim lock, what has been read */

	/* Under the table lock. */
	uint64_t position; /* in the stream, once started */
	struct file file;  /* fd -1 when closed */
	unsigned n_users;
};

struct input {
	/* Set at creation. */
	const struct io_engine *engine;
	uint64_t record_nbytes;
	uint64_t total_nbytes;
	size_t n_sources;
	size_t max_idle_files; /* more than these are closed when nobody uses them */
	int cancel_fd;         /* readable once input_cancel() was called; -1 without streams */

	atomic_int r; /* the first failure, or 0 */

	pthread_mutex_t claim;
	/* Under the claim lock. */
	uint64_t next;    /* position that is given out next */
	size_t current;   /* the source being read, in a serial input */

	pthread_mutex_t table;
	/* Under the table lock, with parts of the sources. */
	size_t n_files;   /* open */
	size_t n_started; /* sources whose position is known */

	struct source sources[];
};

static bool is_serial(const struct input *input)
{
	return input->total_nbytes == INPUT_SIZE_UNKNOWN;
}

/* Remember the first failure; every later reader gets it. */
static void stop(struct input *input, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&input->r, &none, r);
}

/* --- descriptors --- */

static int open_source(struct input *input, struct source *source)
{
	struct file file = { .engine = input->engine, .fd = STDIN_FILENO };
	struct stat status;
	int r = 0;

	if (source->path)
		r = file_open(input->engine, AT_FDCWD, source->path, O_RDONLY, 0, &file);
	if (r < 0)
		return fail(r, "%s: cannot open: %m", source->name);
	if (fstat(file.fd, &status) < 0 ||
	    !file_identity_equal(file_identity_of(&status), source->identity)) {
		r = fail(-EBUSY, "%s: became another file while it was read", source->name);
		file_close(&file);
		return r;
	}
	/* Hints, which may fail. */
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (S_ISFIFO(status.st_mode))
		fcntl(file.fd, F_SETPIPE_SZ, PIPE_NBYTES);
	source->file = file;
	input->n_files++;
	return 0;
}

static void close_source(struct input *input, struct source *source)
{
	if (source->path)
		file_close(&source->file);
	source->file.fd = -1;
	input->n_files--;
}

/* The source's descriptor stays open until it is released. */
static int acquire_source(struct input *input, struct source *source)
{
	int r = 0;

	pthread_mutex_lock(&input->table);
	if (source->file.fd < 0)
		r = open_source(input, source);
	if (r == 0)
		source->n_users++;
	pthread_mutex_unlock(&input->table);
	return r;
}

static void release_source(struct input *input, struct source *source)
{
	pthread_mutex_lock(&input->table);
	assert(source->n_users > 0);
	source->n_users--;
	if (source->n_users == 0 && (source->is_stream || input->n_files > input->max_idle_files))
		close_source(input, source);
	pthread_mutex_unlock(&input->table);
}

/* --- opening --- */

/* A quarter of the descriptors, so that outputs and temporary files find some. */
static size_t max_idle_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1024)
		return 256;
	return limit.rlim_cur / 4;
}

static int check_whole_records(const struct input *input, const struct source *source)
{
	const uint64_t remainder = source->nbytes % input->record_nbytes;

	if (remainder == 0)
		return 0;
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes are not a whole number of records of %" PRIu64
		    " bytes: %" PRIu64 " left over",
		    source->name, source->nbytes, input->record_nbytes, remainder);
}

/* Files that the kernel makes up (/proc) are regular and say 0, but have something to read. */
static bool has_unsaid_bytes(const struct source *source)
{
	char byte;

	return file_read_at(&source->file, source->base, &byte, 1) == 0;
}

/* Find out what a regular file contributes. Its descriptor is open. */
static int measure_regular(struct input *input, struct source *source, const struct stat *status)
{
	const off_t base = source->path ? 0 : lseek(STDIN_FILENO, 0, SEEK_CUR);

	if (base < 0)
		return fail(-errno, "%s: cannot seek: %m", source->name);
	source->base = (uint64_t)base;
	source->nbytes = base < status->st_size ? (uint64_t)(status->st_size - base) : 0;
	if (source->nbytes == 0 && has_unsaid_bytes(source)) {
		source->is_stream = true;
		return 0;
	}
	return check_whole_records(input, source);
}

/* Look at the source. A stream is not opened yet: a FIFO's open waits for its writer. */
static int examine_source(struct input *input, struct source *source)
{
	struct stat status;
	int r = source->path ? stat(source->path, &status) : fstat(STDIN_FILENO, &status);

	if (r < 0)
		return fail(-errno, "%s: cannot open: %m", source->name);
	if (S_ISDIR(status.st_mode))
		return fail(-EISDIR, "%s: cannot read: %m", source->name);
	source->identity = file_identity_of(&status);
	source->is_stream = !S_ISREG(status.st_mode);
	if (source->is_stream) {
		if (source->path && access(source->path, R_OK) < 0)
			return fail(-errno, "%s: cannot open: %m", source->name);
		return 0;
	}
	r = acquire_source(input, source);
	if (r < 0)
		return r;
	r = measure_regular(input, source, &status);
	release_source(input, source);
	return r;
}

static int examine_sources(struct input *input)
{
	const struct source *standard_input = NULL;
	bool streams = false;

	for (size_t i = 0; i < input->n_sources; i++) {
		struct source *source = &input->sources[i];
		int r;

		source->position = input->total_nbytes;
		if (!source->path && standard_input) {
			/* Given again it has nothing left to read, as to every other program. */
			source->identity = standard_input->identity;
			continue;
		}
		if (!source->path)
			standard_input = source;
		r = examine_source(input, source);
		if (r < 0)
			return r;
		streams |= source->is_stream;
		input->total_nbytes += source->nbytes;
	}
	if (!streams) {
		input->n_started = input->n_sources;
		return 0;
	}
	input->total_nbytes = INPUT_SIZE_UNKNOWN;
	input->cancel_fd = eventfd(0, EFD_CLOEXEC);
	return input->cancel_fd < 0 ? fail(-errno, "cannot wait for pipes: eventfd: %m") : 0;
}

int input_open(const struct io_engine *engine, const char *const *paths, size_t n,
	       uint64_t record_nbytes, struct input **ret_input)
{
	struct input *input = calloc(1, sizeof *input + n * sizeof *input->sources);
	int r;

	if (!input)
		return fail(-ENOMEM, "list of inputs: %m");
	input->engine = engine;
	input->record_nbytes = record_nbytes;
	input->n_sources = n;
	input->max_idle_files = max_idle_files();
	input->cancel_fd = -1;
	pthread_mutex_init(&input->claim, NULL);
	pthread_mutex_init(&input->table, NULL);
	for (size_t i = 0; i < n; i++) {
		const bool is_stdin = strcmp(paths[i], "-") == 0;

		input->sources[i].name = is_stdin ? "standard input" : paths[i];
		input->sources[i].path = is_stdin ? NULL : paths[i];
		input->sources[i].file = (struct file){ .engine = engine, .fd = -1 };
	}
	r = examine_sources(input);
	if (r < 0) {
		input_close(input);
		return r;
	}
	*ret_input = input;
	return 0;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	for (size_t i = 0; i < input->n_sources; i++)
		if (input->sources[i].file.fd >= 0)
			close_source(input, &input->sources[i]);
	if (input->cancel_fd >= 0)
		close(input->cancel_fd);
	pthread_mutex_destroy(&input->claim);
	pthread_mutex_destroy(&input->table);
	free(input);
}

uint64_t input_total_nbytes(const struct input *input)
{
	return input->total_nbytes;
}

size_t input_n_files(const struct input *input)
{
	return input->n_sources;
}

struct input_extent input_file_extent(const struct input *input, size_t i)
{
	const struct source *source = &input->sources[i];

	assert(!is_serial(input) && i < input->n_sources);
	return (struct input_extent){ .path = source->name,
				      .position = source->position,
				      .nbytes = source->nbytes };
}

bool input_has_file(const struct input *input, struct file_identity identity)
{
	for (size_t i = 0; i < input->n_sources; i++)
		if (file_identity_equal(input->sources[i].identity, identity))
			return true;
	return false;
}

/* The last of the started sources that begins at or before `position`. */
static size_t find_source(const struct input *input, uint64_t position)
{
	size_t lo = 0, hi = input->n_started;

	while (hi - lo > 1) {
		const size_t i = lo + (hi - lo) / 2;

		if (input->sources[i].position <= position)
			lo = i;
		else
			hi = i;
	}
	return lo;
}

void input_path_at(struct input *input, uint64_t position, const char **ret_path,
		   uint64_t *ret_record)
{
	const struct source *source;

	pthread_mutex_lock(&input->table);
	assert(input->n_started > 0);
	source = &input->sources[find_source(input, position)];
	*ret_path = source->name;
	*ret_record = (position - source->position) / input->record_nbytes;
	pthread_mutex_unlock(&input->table);
}

/* --- regular files --- */

static int fail_changed(const struct source *source, uint64_t now_nbytes)
{
	return fail(-EBUSY,
		    "%s: changed while it was read: %" PRIu64 " bytes at first, %" PRIu64 " now",
		    source->name, source->base + source->nbytes, now_nbytes);
}

static int check_size(const struct source *source)
{
	uint64_t now_nbytes;
	const int r = file_size(&source->file, &now_nbytes);

	if (r < 0)
		return fail(r, "%s: cannot look at its size: %m", source->name);
	return now_nbytes == source->base + source->nbytes ? 0 : fail_changed(source, now_nbytes);
}

/* Read nbytes at `offset` of what an open source contributes. */
static int read_open_source(const struct source *source, uint64_t offset, void *buffer,
			    size_t nbytes)
{
	int r = file_read_at(&source->file, source->base + offset, buffer, nbytes);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", source->name, nbytes,
			    source->base + offset);
	if (r < 0 || offset + nbytes == source->nbytes) {
		const int checked = check_size(source);

		if (checked < 0)
			return checked;
	}
	return r < 0 ? fail(r, "%s: ends before its size, within %zu bytes at %" PRIu64,
			    source->name, nbytes, source->base + offset) :
		       0;
}

static int read_source(struct input *input, struct source *source, uint64_t offset, void *buffer,
		       size_t nbytes)
{
	int r = acquire_source(input, source);

	if (r < 0)
		return r;
	r = read_open_source(source, offset, buffer, nbytes);
	release_source(input, source);
	return r;
}

int input_read_at(struct input *input, uint64_t position, void *buffer, size_t nbytes)
{
	unsigned char *to = buffer;

	assert(!is_serial(input) && position + nbytes <= input->total_nbytes);
	for (size_t i = find_source(input, position); nbytes > 0; i++) {
		struct source *source = &input->sources[i];
		const uint64_t offset = position - source->position;
		const uint64_t left = source->nbytes - offset;
		const size_t n = left < nbytes ? (size_t)left : nbytes;
		const int r = n ? read_source(input, source, offset, to, n) : 0;

		if (r < 0)
			return r;
		position += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}

static int read_parallel(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			 size_t *ret_nbytes)
{
	uint64_t position, left;
	int r;

	pthread_mutex_lock(&input->claim);
	position = input->next;
	left = input->total_nbytes - position;
	if (nbytes > left)
		nbytes = (size_t)left;
	input->next += nbytes;
	pthread_mutex_unlock(&input->claim);

	r = input_read_at(input, position, buffer, nbytes);
	if (r < 0)
		return r;
	*ret_position = position;
	*ret_nbytes = nbytes;
	return 0;
}

/* --- with streams --- */

/* Make the current source ready to be read, if it is not. */
static int start_current(struct input *input)
{
	struct source *source = &input->sources[input->current];
	int r;

	if (input->n_started > input->current)
		return 0;
	r = acquire_source(input, source);
	if (r < 0)
		return r;
	pthread_mutex_lock(&input->table);
	source->position = input->next;
	input->n_started++;
	pthread_mutex_unlock(&input->table);
	return 0;
}

/* The current source has come to its end. */
static int finish_current(struct input *input)
{
	struct source *source = &input->sources[input->current];
	const uint64_t nbytes = input->next - source->position;
	int r = 0;

	if (source->is_stream) {
		source->nbytes = nbytes;
		r = check_whole_records(input, source);
	} else if (nbytes != source->nbytes) {
		r = fail_changed(source, source->base + nbytes);
	}
	release_source(input, source);
	input->current++;
	return r;
}

static int read_serial(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
		       size_t *ret_nbytes)
{
	unsigned char *const to = buffer;
	const uint64_t position = input->next;
	size_t filled = 0;

	while (filled < nbytes && input->current < input->n_sources) {
		struct source *source = &input->sources[input->current];
		const size_t wanted = nbytes - filled;
		size_t n;
		int r = start_current(input);

		if (r < 0)
			return r;
		r = file_read_next(&source->file, to + filled, wanted, input->cancel_fd, &n);
		if (r == -ECANCELED)
			return r;
		if (r < 0)
			return fail(r, "%s: read: %m", source->name);
		filled += n;
		input->next += n;
		if (n < wanted)
			r = finish_current(input);
		if (r < 0)
			return r;
	}
	*ret_position = position;
	*ret_nbytes = filled;
	return 0;
}

static int read_in_turn(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
			size_t *ret_nbytes)
{
	int r;

	pthread_mutex_lock(&input->claim);
	r = atomic_load(&input->r); /* of those who were in turn before us */
	if (r == 0)
		r = read_serial(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		stop(input, r);
	pthread_mutex_unlock(&input->claim);
	return r;
}

int input_read(struct input *input, void *buffer, size_t nbytes, uint64_t *ret_position,
	       size_t *ret_nbytes)
{
	int r = atomic_load(&input->r);

	assert(nbytes % input->record_nbytes == 0);
	if (r < 0)
		return r;
	if (is_serial(input))
		return read_in_turn(input, buffer, nbytes, ret_position, ret_nbytes);
	r = read_parallel(input, buffer, nbytes, ret_position, ret_nbytes);
	if (r < 0)
		stop(input, r);
	return r;
}

void input_cancel(struct input *input)
{
	const uint64_t one = 1;

	stop(input, -ECANCELED);
	if (input->cancel_fd >= 0 && write(input->cancel_fd, &one, sizeof one) < 0)
		assert(errno == EAGAIN); /* it is readable already */
}
