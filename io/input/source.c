/*
 * source - one of the files that an input is made of (see source.h)
 */
#include "io/input/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/file/direct.h"
#include "io/input/source_look.h"
#include "src/base/messages.h"

/* A sixth of the descriptors, so that outputs, their locks and temporary files find some. */
static size_t max_idle_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1024)
		return 256;
	return limit.rlim_cur / 6;
}

/* More would push a good part of what others have in the page cache out of it. */
enum { LARGE_PART_OF_MEMORY = 16 };

static uint64_t find_large_nbytes(void)
{
	const long n_pages = sysconf(_SC_PHYS_PAGES), page_nbytes = sysconf(_SC_PAGESIZE);

	return n_pages > 0 ? (uint64_t)n_pages * (uint64_t)page_nbytes / LARGE_PART_OF_MEMORY :
			     UINT64_MAX;
}

void source_table_init(struct source_table *table, const struct syscalls *calls,
		       const struct format_rules *rules)
{
	table->calls = calls;
	table->rules = *rules;
	table->max_idle = max_idle_files();
	table->large_nbytes = find_large_nbytes();
	table->most_window_nbytes = ZST_MOST_WINDOW_NBYTES;
	table->n_open = 0;
	table->queue = NULL;
	pthread_mutex_init(&table->lock, NULL);
	codec_pool_init(&table->contexts, 0);
}

void source_table_destroy(struct source_table *table)
{
	io_queue_close(table->queue);
	assert(table->n_open == 0);
	pthread_mutex_destroy(&table->lock);
	codec_pool_destroy(&table->contexts);
}

void source_prepare(struct source *source, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;

	*source = (struct source){
		.name = is_stdin ? "standard input" : path,
		.path = is_stdin ? NULL : path,
		.file = { .fd = -1 },
		.direct = { .fd = -1 },
	};
}

/* --- descriptors, under the table's lock --- */

static int open_source(struct source_table *table, struct source *source)
{
	struct file file = { .calls = table->calls, .fd = STDIN_FILENO };
	struct stat status;
	int r = 0;

	if (source->path)
		r = file_open(table->calls, AT_FDCWD, source->path, O_RDONLY, 0, &file);
	if (r < 0)
		return fail(r, "%s: cannot open: %m", source->name);
	if (fstat(file.fd, &status) < 0)
		r = fail(-errno, "%s: %m", source->name);
	else if (!file_identity_equal(file_identity_of(&status), source->identity))
		r = fail(-EBUSY, "%s: became another file while it was read", source->name);
	if (r < 0) {
		if (source->path)
			file_close(&file);
		return r;
	}
	/* Hints, which may fail. */
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	file_enlarge_pipe(&file);
	source->file = file;
	source->is_large = S_ISREG(status.st_mode) &&
			   (uint64_t)status.st_size >= table->large_nbytes;
	/* Refused or not, it is read. */
	if (source->is_large && file_reopen(&file, O_RDONLY | O_DIRECT, &source->direct) == 0 &&
	    !table->queue)
		io_queue_open(table->calls, IO_QUEUE_URING, DIRECT_DEPTH, &table->queue);
	table->n_open++;
	return 0;
}

static void close_source(struct source_table *table, struct source *source)
{
	cold_range_leave(&source->cold_range, &source->file);
	if (source->path)
		file_close(&source->file);
	source->file.fd = -1;
	zst_stream_close(source->zst_stream);
	source->zst_stream = NULL;
	free(source->head);
	source->head = NULL;
	source->is_started = false;
	file_close(&source->direct);
	table->n_open--;
}

int source_acquire(struct source_table *table, struct source *source)
{
	int r = 0;

	pthread_mutex_lock(&table->lock);
	if (source->file.fd < 0)
		r = open_source(table, source);
	if (r == 0)
		source->n_holders++;
	pthread_mutex_unlock(&table->lock);
	return r;
}

void source_release(struct source_table *table, struct source *source)
{
	pthread_mutex_lock(&table->lock);
	assert(source->n_holders > 0);
	source->n_holders--;
	if (source->n_holders == 0 && (source->is_stream || table->n_open > table->max_idle))
		close_source(table, source);
	pthread_mutex_unlock(&table->lock);
}

void source_close(struct source_table *table, struct source *source)
{
	if (source->file.fd >= 0)
		close_source(table, source);
	zst_reader_close(source->zst_reader);
	source->zst_reader = NULL;
}

/* --- looking at it --- */

/*
 * Files that the kernel makes up (/proc) are regular and say 0, but have something to read. 1, 0,
 * or a negative errno after a message: what cannot be read must not be taken for something else.
 */
static int has_unsaid_bytes(const struct source *source)
{
	char byte;
	int r;

	if (source->nbytes > 0)
		return 0;
	r = file_read_at(&source->file, source->base, &byte, 1);
	if (r == -ENODATA)
		return 0;
	return r < 0 ? fail(r, "%s: read: %m", source->name) : 1;
}

/* What zstd adds to what does not shrink, at most, and a frame of it. */
enum { MOST_OVERHEAD_NBYTES = 1 << 20 };

/* What the frame asks for that begins so, or what is usual; 0 of what is damaged or refused. */
static uint64_t window_of(const void *header, size_t nbytes)
{
	const uint64_t window_nbytes =
		nbytes < ZST_HEADER_NBYTES ? 0 : zst_window_nbytes(header, nbytes);

	return window_nbytes > ZST_MOST_WINDOW_NBYTES  ? 0 :
	       window_nbytes > ZST_USUAL_WINDOW_NBYTES ? window_nbytes :
							 ZST_USUAL_WINDOW_NBYTES;
}

/* Of a compressed file that is read as a stream. */
static void note_window(struct source *source)
{
	unsigned char header[ZST_HEADER_NBYTES];

	if (source->nbytes >= sizeof header &&
	    file_read_at(&source->file, source->base, header, sizeof header) == 0)
		source->window_nbytes = window_of(header, sizeof header);
}

/* A compressed file: its content's size if it has an index that is of use, else a stream. */
static int measure_content(struct source_table *table, struct source *source)
{
	struct zst_index index = { 0 };
	uint64_t content_nbytes;
	int r = zst_index_read(&source->file, source->base, source->nbytes, &index);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: cannot read its index of frames: %m", source->name);
	source->zst_end = source->base + source->nbytes;
	if (r < 0 || zst_index_most_nbytes(&index) > ZST_READER_MOST_NBYTES ||
	    zst_index_most_stored_nbytes(&index) > ZST_READER_MOST_NBYTES + MOST_OVERHEAD_NBYTES) {
		zst_index_free(&index);
		note_window(source);
		source->is_stream = true;
		source->nbytes = 0;
		return 0;
	}
	content_nbytes = zst_index_total_nbytes(&index);
	r = source_look_at_content(table, source);
	if (r < 0) {
		zst_index_free(&index);
		return r;
	}
	r = zst_reader_open(source->name, index, source->base, &table->contexts,
			    &source->zst_reader);
	if (r < 0)
		return r;
	source->base = 0;
	source->nbytes = content_nbytes;
	return 0;
}

/* The descriptor is open. */
static int measure_regular(struct source_table *table, struct source *source,
			   const struct stat *status)
{
	const off_t base = source->path ? 0 : lseek(STDIN_FILENO, 0, SEEK_CUR);
	int r;

	if (base < 0)
		return fail(-errno, "%s: cannot seek: %m", source->name);
	source->base = source->n_before = (uint64_t)base;
	source->nbytes = base < status->st_size ? (uint64_t)(status->st_size - base) : 0;
	r = has_unsaid_bytes(source);
	if (r < 0)
		return r;
	source->is_stream = r > 0;
	source->is_file = !source->is_stream;
	r = source_look_at_file(table, source);
	return r > 0 ? measure_content(table, source) : r;
}

int source_examine(struct source_table *table, struct source *source)
{
	struct stat status;
	int r = source->path ? stat(source->path, &status) : fstat(STDIN_FILENO, &status);

	if (r < 0)
		return fail(-errno, "%s: cannot open: %m", source->name);
	if (S_ISDIR(status.st_mode))
		return fail(-EISDIR, "%s: cannot read: %m", source->name);
	source->identity = file_identity_of(&status);
	source->state = file_state_of(&status);
	if (!S_ISREG(status.st_mode)) {
		source->is_stream = true;
		if (source->path && access(source->path, R_OK) < 0)
			return fail(-errno, "%s: cannot open: %m", source->name);
		return 0;
	}
	r = source_acquire(table, source);
	if (r < 0)
		return r;
	r = measure_regular(table, source, &status);
	source_release(table, source);
	return r;
}

void source_narrow(struct source *source, uint64_t skip_nbytes, uint64_t nbytes)
{
	source->n_after += source->nbytes - skip_nbytes - nbytes;
	source->base += skip_nbytes;
	source->nbytes = nbytes;
}

/* --- reading --- */

/* Where the file ends, as it was measured. */
static uint64_t end_of(const struct source *source)
{
	return source->zst_end ? source->zst_end : source->base + source->nbytes + source->n_after;
}

static int fail_changed(const struct source *source, uint64_t before_nbytes, uint64_t now_nbytes)
{
	return fail(-EBUSY,
		    "%s: changed while it was read: %" PRIu64 " bytes at first, %" PRIu64 " now",
		    source->name, before_nbytes, now_nbytes);
}

int source_fail_changed(const struct source *source, uint64_t now_nbytes)
{
	return fail_changed(source, source->base + source->nbytes + source->n_after,
			    source->base + now_nbytes);
}

int source_check_size(const struct source *source)
{
	uint64_t nbytes;
	const int r = file_size(&source->file, &nbytes);

	if (r < 0)
		return fail(r, "%s: cannot look at its size: %m", source->name);
	return nbytes == end_of(source) ? 0 : fail_changed(source, end_of(source), nbytes);
}

/* The file as it is now; false: its name is gone, or another file's. */
static bool look_again(const struct source *source, struct stat *ret_status)
{
	const int r = source->path ? stat(source->path, ret_status) :
				     fstat(STDIN_FILENO, ret_status);

	return r == 0 && file_identity_equal(file_identity_of(ret_status), source->identity);
}

int source_check_state(const struct source *source)
{
	struct file_state now;
	struct stat status;

	if (!source->is_file || !look_again(source, &status))
		return 0;
	now = file_state_of(&status);
	if (file_state_is_same(&source->state, &now))
		return 0;
	return fail(-EBUSY,
		    "%s: changed after it was read, so that what is sorted is not what is in it "
		    "now; sort it when nobody writes to it",
		    source->name);
}

/* With less than this the kernel's read-ahead is better than asking for no more than is wanted. */
enum { LEAST_COLD_NBYTES = (1 << 20) + 1 };

/* Like file_read_at(), for a little of a large source: with what the kernel reads ahead. */
static int read_little(struct source_table *table, struct source *source, uint64_t in_file,
		       void *buffer, size_t nbytes)
{
	int r;

	pthread_mutex_lock(&table->lock);
	cold_range_enter(&source->cold_range, &source->file, end_of(source), in_file);
	pthread_mutex_unlock(&table->lock);
	r = file_read_at(&source->file, in_file, buffer, nbytes);
	pthread_mutex_lock(&table->lock);
	cold_range_pass(&source->cold_range, &source->file, in_file, in_file + nbytes);
	pthread_mutex_unlock(&table->lock);
	return r;
}

/* Like file_read_at(), and leaves the page cache as it is if the source is large. */
static int read_sparing(struct source_table *table, struct source *source, uint64_t in_file,
			void *buffer, size_t nbytes)
{
	int r;

	if (source->is_large && nbytes < LEAST_COLD_NBYTES)
		return read_little(table, source, in_file, buffer, nbytes);
	if (!source->is_large || direct_is_cached(&source->file, in_file, nbytes))
		return file_read_at(&source->file, in_file, buffer, nbytes);
	if (source->direct.fd >= 0) {
		r = direct_read_at(table->queue, &source->direct, in_file, buffer, nbytes);
		if (r != -EINVAL)
			return r;
	}
	r = file_read_at(&source->file, in_file, buffer, nbytes);
	file_forget(&source->file, in_file, nbytes);
	return r;
}

/* The bytes of the file at `in_file`; -ENODATA without a message if it ends before. */
static int read_plain(struct source_table *table, struct source *source, uint64_t in_file,
		      void *buffer, size_t nbytes)
{
	const int r = read_sparing(table, source, in_file, buffer, nbytes);

	if (r < 0 && r != -ENODATA)
		return fail(r, "%s: read of %zu bytes at %" PRIu64 ": %m", source->name, nbytes,
			    in_file);
	return r;
}

static int read_held(struct source_table *table, struct source *source, uint64_t offset,
		     void *buffer, size_t nbytes)
{
	const uint64_t at = source->base + offset;
	const bool reaches_end = offset + nbytes == source->nbytes;
	int r, checked = 0;

	if (source->zst_reader)
		r = zst_reader_read_at(source->zst_reader, &source->file, at, buffer, nbytes);
	else
		r = read_plain(table, source, at, buffer, nbytes);
	if (r < 0 && r != -ENODATA)
		return r;
	if (r < 0 || reaches_end)
		checked = source_check_size(source);
	if (checked < 0)
		return checked;
	return r < 0 ? fail(r, "%s: read of %zu bytes at %" PRIu64 " ends before the file does",
			    source->name, nbytes, at) :
		       0;
}

int source_read_at(struct source_table *table, struct source *source, uint64_t offset, void *buffer,
		   size_t nbytes)
{
	int r = source_acquire(table, source);

	if (r < 0)
		return r;
	r = read_held(table, source, offset, buffer, nbytes);
	source_release(table, source);
	return r;
}

/* As source_read_next(), behind the head. */
static int read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	int r;

	if (source->zst_stream)
		return zst_stream_read(source->zst_stream, &source->file, cancel_fd, buffer, nbytes,
				       ret_nbytes);
	if (source->has_ended) {
		*ret_nbytes = 0;
		return 0;
	}
	r = file_read_next(&source->file, buffer, nbytes, cancel_fd, ret_nbytes);
	if (r < 0)
		return r != -ECANCELED ? fail(r, "%s: read: %m", source->name) : r;
	source->has_ended = source->is_stream && *ret_nbytes < nbytes;
	return 0;
}

/* The first bytes of a stream, or of its content. */
static int read_head(struct source *source, int cancel_fd)
{
	struct source_head *head = source->head;

	head->begin = 0;
	return read_next(source, cancel_fd, head->bytes, sizeof head->bytes, &head->end);
}

/* It is compressed: the head becomes that of the content. */
static int start_content(const struct source_table *table, struct source *source, int cancel_fd)
{
	const struct source_head *head = source->head;
	const uint64_t window_nbytes = window_of(head->bytes, head->end);
	int r;

	/* One that is looked at before the plan is planned with, as large as it is. */
	if (window_nbytes && table->most_window_nbytes == ZST_MOST_WINDOW_NBYTES)
		source->window_nbytes = window_nbytes;
	r = zst_stream_open(source->name, head->bytes, head->end,
			    source->window_nbytes > table->most_window_nbytes ?
				    source->window_nbytes :
				    table->most_window_nbytes,
			    &source->zst_stream);
	if (r == 0)
		r = read_head(source, cancel_fd);
	return r < 0 ? r : source_look_at_head(table, source, source->head, true);
}

int source_start(const struct source_table *table, struct source *source, int cancel_fd)
{
	int r;

	source->is_started = true;
	if ((!source->is_stream && !source->zst_end) || table->rules.choice == FORMAT_RAW)
		return 0; /* it was looked at, and is plain, or need not be */
	source->head = malloc(sizeof *source->head);
	if (!source->head)
		return fail(-ENOMEM, "%s: read: %m", source->name);
	r = read_head(source, cancel_fd);
	if (r < 0)
		return r;
	r = source->zst_end ? 1 : source_look_at_head(table, source, source->head, false);
	return r > 0 ? start_content(table, source, cancel_fd) : r;
}

bool source_may_be_compressed(const struct source *source)
{
	return source->is_stream && (!source->is_started || source->zst_stream);
}

/* What was read when it was started. */
static size_t take_head(struct source *source, void *buffer, size_t nbytes)
{
	struct source_head *head = source->head;
	size_t n;

	if (!head)
		return 0;
	n = head->end - head->begin < nbytes ? head->end - head->begin : nbytes;
	memcpy(buffer, head->bytes + head->begin, n);
	head->begin += n;
	if (head->begin == head->end) {
		free(head);
		source->head = NULL;
	}
	return n;
}

int source_read_next(struct source *source, int cancel_fd, void *buffer, size_t nbytes,
		     size_t *ret_nbytes)
{
	const size_t n = take_head(source, buffer, nbytes);
	const int r =
		read_next(source, cancel_fd, (unsigned char *)buffer + n, nbytes - n, ret_nbytes);

	if (r == 0)
		*ret_nbytes += n;
	return r;
}

int source_check_end(const struct source *source)
{
	off_t position;

	if (!source->zst_end)
		return 0;
	position = lseek(source->file.fd, 0, SEEK_CUR);
	if ((uint64_t)position != source->zst_end)
		return fail_changed(source, source->zst_end, (uint64_t)position);
	return source_check_size(source);
}

void source_pass(const struct source *source)
{
	const bool is_file = !source->is_stream || source->zst_end;

	if (!source->path && is_file)
		lseek(STDIN_FILENO, (off_t)end_of(source), SEEK_SET);
}
