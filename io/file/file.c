/*
 * file - complete transfers on a descriptor (see file.h)
 */
#include "io/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "src/base/size.h"
#include "src/base/system_limits.h"

enum { PIPE_NBYTES = 1 << 20 };

#ifndef RENAME_EXCHANGE /* older C libraries lack the function */
static int renameat2(int from, const char *name, int to, const char *as, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from, name, to, as, flags);
}
#endif

/* openat() is variadic, which a function pointer of the table cannot be. */
static int plain_openat(int directory, const char *path, int flags, mode_t mode)
{
	return openat(directory, path, flags, mode);
}

const struct syscalls syscalls_plain = {
	.openat = plain_openat,
	.close = close,
	.read = read,
	.write = write,
	.pread = pread,
	.pwrite = pwrite,
	.fallocate = fallocate,
	.ftruncate = ftruncate,
	.fsync = fsync,
	.linkat = linkat,
	.renameat = renameat,
	.renameat2 = renameat2,
	.mkdirat = mkdirat,
	.unlinkat = unlinkat,
	.fsetxattr = fsetxattr,
};

/* Evaluates to 0 or the negative errno of `call`, which is repeated while it fails with EINTR. */
#define RETRY_ON_EINTR(call)                                                                       \
	({                                                                                         \
		int r_;                                                                            \
                                                                                                   \
		do                                                                                 \
			r_ = (call) < 0 ? -errno : 0;                                              \
		while (r_ == -EINTR);                                                              \
		r_;                                                                                \
	})

int file_open(const struct syscalls *calls, int directory, const char *path, int flags, mode_t mode,
	      struct file *ret_file)
{
	int fd = -1;
	const int r = RETRY_ON_EINTR(fd = calls->openat(directory, path, flags | O_CLOEXEC, mode));

	if (r < 0)
		return r;
	*ret_file = (struct file){ .calls = calls, .fd = fd };
	return 0;
}

int file_reopen(const struct file *file, int flags, struct file *ret_file)
{
	char path[sizeof "/proc/self/fd/" + 12];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
	return file_open(file->calls, AT_FDCWD, path, flags, 0, ret_file);
}

int file_remove(const struct syscalls *calls, int directory, const char *name, int flags)
{
	return calls->unlinkat(directory, name, flags) < 0 && errno != ENOENT ? -errno : 0;
}

void file_unique_digits(char digits[static FILE_UNIQUE_DIGITS + 1])
{
	uint64_t random = 0;

	/* Fails only while the system boots. Then use the process and the time. */
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		random = (uint64_t)getpid() << 32 ^ (uint64_t)now.tv_nsec;
	}
	snprintf(digits, FILE_UNIQUE_DIGITS + 1, "%016" PRIx64, random);
}

static const char unique_prefix[] = ".gsort-";

_Static_assert(sizeof unique_prefix + FILE_UNIQUE_DIGITS == FILE_UNIQUE_NAME_SIZE, "name's size");

void file_unique_name(char name[static FILE_UNIQUE_NAME_SIZE])
{
	memcpy(name, unique_prefix, sizeof unique_prefix);
	file_unique_digits(name + sizeof unique_prefix - 1);
}

bool file_is_unique_name(const char *name)
{
	const size_t n = sizeof unique_prefix - 1;

	return strncmp(name, unique_prefix, n) == 0 &&
	       strspn(name + n, "0123456789abcdef") == FILE_UNIQUE_DIGITS &&
	       name[n + FILE_UNIQUE_DIGITS] == '\0';
}

int file_close(struct file *file)
{
	const int fd = file->fd;

	if (fd < 0)
		return 0;
	file_free_pipe_buffer(file);
	file->fd = -1;
	/*
	 * Linux has closed the descriptor even if close() fails with EINTR. A second close() could
	 * close a descriptor of another thread.
	 */
	return file->calls->close(fd) < 0 && errno != EINTR ? -errno : 0;
}

/* Wait until the descriptor is ready. Returns -ECANCELED once cancel_fd is readable (-1: never). */
static int wait_ready(int fd, short events, int cancel_fd)
{
	struct pollfd polled[2] = {
		{ .fd = fd, .events = events },
		{ .fd = cancel_fd, .events = POLLIN },
	};
	const int r = RETRY_ON_EINTR(poll(polled, 2, -1));

	if (r < 0)
		return r;
	return polled[1].revents ? -ECANCELED : 0;
}

/*
 * Handle a failed transfer. Returns 0 to retry, after waiting for a non-blocking descriptor, or a
 * negative errno to give up.
 */
static int handle_transfer_error(int fd, short events, int cancel_fd)
{
	if (errno == EINTR)
		return 0;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return wait_ready(fd, events, cancel_fd);
	return -errno;
}

enum transfer_kind { READ_AT, WRITE_AT, READ_NEXT, WRITE_NEXT };

struct transfer {
	enum transfer_kind kind;
	unsigned char *bytes; /* only READ_* writes to it */
	size_t nbytes;
	uint64_t offset; /* *_AT */
	int cancel_fd;   /* or -1 */
};

static ssize_t transfer_once(const struct file *file, const struct transfer *t)
{
	const struct syscalls *calls = file->calls;

	switch (t->kind) {
	case READ_AT:
		return calls->pread(file->fd, t->bytes, t->nbytes, (off_t)t->offset);
	case WRITE_AT:
		return calls->pwrite(file->fd, t->bytes, t->nbytes, (off_t)t->offset);
	case READ_NEXT:
		return calls->read(file->fd, t->bytes, t->nbytes);
	case WRITE_NEXT:
		return calls->write(file->fd, t->bytes, t->nbytes);
	}
	errno = EINVAL;
	return -1;
}

/* Transfer at least one byte. Returns the count, 0 at the end, or a negative errno. */
static ssize_t transfer_some(const struct file *file, const struct transfer *t)
{
	const short events = t->kind == READ_AT || t->kind == READ_NEXT ? POLLIN : POLLOUT;

	for (;;) {
		int r = t->cancel_fd < 0 ? 0 : wait_ready(file->fd, events, t->cancel_fd);
		ssize_t n;

		if (r < 0)
			return r;
		n = transfer_once(file, t);
		if (n >= 0)
			return n;
		r = handle_transfer_error(file->fd, events, t->cancel_fd);
		if (r < 0)
			return r;
	}
}

static void advance_transfer(struct transfer *t, size_t n)
{
	t->bytes += n;
	t->nbytes -= n;
	t->offset += n;
}

/* Transfer everything, or up to the end of the file. t->nbytes is what remains. */
static int transfer_all(const struct file *file, struct transfer *t)
{
	while (t->nbytes > 0) {
		const ssize_t n = transfer_some(file, t);

		if (n <= 0)
			return (int)n;
		advance_transfer(t, (size_t)n);
	}
	return 0;
}

/*
 * Bytes read from a pipe and not yet consumed. The kernel locks a pipe while it copies. It copies
 * faster to memory in the processor's cache, and the writer continues while the bytes are copied
 * from there to their destination. With few CPUs, the second copy takes more time than it saves.
 */
enum { PIPE_BUFFER_NBYTES = 128 << 10, MIN_CPUS_FOR_LONG_READS = 4 };

struct pipe_buffer {
	bool for_long_reads; /* use it for reads that are longer than the buffer, too */
	size_t begin, end;   /* the bytes that are not consumed */
	unsigned char bytes[PIPE_BUFFER_NBYTES]; /* larger than any packet */
};

int file_alloc_pipe_buffer(struct file *file)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0 || !S_ISFIFO(status.st_mode))
		return 0;
	file->pipe_buffer = malloc(sizeof *file->pipe_buffer);
	if (!file->pipe_buffer)
		return -ENOMEM;
	file->pipe_buffer->for_long_reads = cpus_available("") >= MIN_CPUS_FOR_LONG_READS;
	file->pipe_buffer->begin = file->pipe_buffer->end = 0;
	return 0;
}

void file_free_pipe_buffer(struct file *file)
{
	free(file->pipe_buffer);
	file->pipe_buffer = NULL;
}

static void drain_pipe_buffer(struct pipe_buffer *buffer, struct transfer *t)
{
	const size_t n = buffer->end - buffer->begin < t->nbytes ? buffer->end - buffer->begin :
								   t->nbytes;

	memcpy(t->bytes, buffer->bytes + buffer->begin, n);
	buffer->begin += n;
	advance_transfer(t, n);
}

/* Like transfer_all(), but through the buffer, so that no read is shorter than a packet. */
static int read_pipe(const struct file *file, struct transfer *t)
{
	struct pipe_buffer *buffer = file->pipe_buffer;
	const struct transfer fill = { READ_NEXT, buffer->bytes, sizeof buffer->bytes, 0,
				       t->cancel_fd };

	for (;;) {
		bool is_direct;
		ssize_t n;

		drain_pipe_buffer(buffer, t);
		if (t->nbytes == 0)
			return 0;
		is_direct = t->nbytes >= sizeof buffer->bytes && !buffer->for_long_reads;
		n = transfer_some(file, is_direct ? t : &fill);
		if (n <= 0)
			return (int)n;
		if (is_direct) {
			advance_transfer(t, (size_t)n);
		} else {
			buffer->begin = 0;
			buffer->end = (size_t)n;
		}
	}
}

int file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes)
{
	struct transfer t = { READ_AT, buffer, nbytes, offset, -1 };
	const int r = transfer_all(file, &t);

	return r == 0 && t.nbytes > 0 ? -ENODATA : r;
}

/* A write of zero bytes sets no errno. Like coreutils, treat it as a full disk. */
static int write_all(const struct file *file, struct transfer t)
{
	const int r = transfer_all(file, &t);

	return r == 0 && t.nbytes > 0 ? -ENOSPC : r;
}

int file_write_at(const struct file *file, uint64_t offset, const void *data, size_t nbytes)
{
	return write_all(file, (struct transfer){ WRITE_AT, (void *)data, nbytes, offset, -1 });
}

int file_write_next(const struct file *file, const void *data, size_t nbytes)
{
	return write_all(file, (struct transfer){ WRITE_NEXT, (void *)data, nbytes, 0, -1 });
}

int file_read_next(const struct file *file, void *buffer, size_t nbytes, int cancel_fd,
		   size_t *ret_nbytes)
{
	struct transfer t = { READ_NEXT, buffer, nbytes, 0, cancel_fd };
	const int r = file->pipe_buffer ? read_pipe(file, &t) : transfer_all(file, &t);

	if (r == 0)
		*ret_nbytes = nbytes - t.nbytes;
	return r;
}

int file_preallocate(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	int r;

	if (nbytes == 0)
		return 0;
	r = RETRY_ON_EINTR(file->calls->fallocate(file->fd, 0, (off_t)offset, (off_t)nbytes));
	return r == -EOPNOTSUPP || r == -ENOSYS ? 0 : r;
}

int file_preallocate_keep_size(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	return RETRY_ON_EINTR(file->calls->fallocate(file->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset,
						     (off_t)nbytes));
}

bool file_clear_o_direct(const struct file *file)
{
	const int flags = fcntl(file->fd, F_GETFL);
	struct stat status;

	return flags >= 0 && (flags & O_DIRECT) && fstat(file->fd, &status) == 0 &&
	       (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) &&
	       fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

/* Other flags may have changed in the meantime. */
void file_restore_o_direct(const struct file *file)
{
	const int flags = fcntl(file->fd, F_GETFL);

	if (flags >= 0)
		fcntl(file->fd, F_SETFL, flags | O_DIRECT);
}

void file_enlarge_pipe(const struct file *file)
{
	fcntl(file->fd, F_SETPIPE_SZ, PIPE_NBYTES);
}

int file_punch_hole(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	return RETRY_ON_EINTR(file->calls->fallocate(file->fd, mode, (off_t)offset, (off_t)nbytes));
}

void file_drop_cache(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	posix_fadvise(file->fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_DONTNEED);
}

/* Pages this far behind are clean by now, or the disk limits the writer anyway. */
#define DROPBEHIND_NBYTES (UINT64_C(64) << 20)

void file_start_writeback(const struct file *file, uint64_t offset, uint64_t nbytes)
{
	sync_file_range(file->fd, (off_t)offset, (off_t)nbytes, SYNC_FILE_RANGE_WRITE);
	if (offset >= DROPBEHIND_NBYTES)
		file_drop_cache(file, offset - DROPBEHIND_NBYTES, nbytes);
}

int file_truncate(const struct file *file, uint64_t nbytes)
{
	return RETRY_ON_EINTR(file->calls->ftruncate(file->fd, (off_t)nbytes));
}

int file_sync(const struct file *file)
{
	return RETRY_ON_EINTR(file->calls->fsync(file->fd));
}

int file_size(const struct file *file, uint64_t *ret_nbytes)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return -errno;
	*ret_nbytes = (uint64_t)status.st_size;
	return 0;
}

/* --- changes of a file --- */

struct file_state file_state_from_stat(const struct stat *status)
{
	return (struct file_state){ .nbytes = (uint64_t)status->st_size,
				    .modified = status->st_mtim,
				    .changed = status->st_ctim,
				    .n_links = status->st_nlink,
				    .mode = status->st_mode,
				    .user = status->st_uid,
				    .group = status->st_gid };
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool has_same_links_and_mode(const struct file_state *a, const struct file_state *b)
{
	return a->n_links == b->n_links && a->mode == b->mode && a->user == b->user &&
	       a->group == b->group;
}

bool file_state_is_unchanged(const struct file_state *old_state, const struct file_state *new_state)
{
	return old_state->nbytes == new_state->nbytes &&
	       is_same_time(&old_state->modified, &new_state->modified) &&
	       (is_same_time(&old_state->changed, &new_state->changed) ||
		!has_same_links_and_mode(old_state, new_state));
}

/* --- limits --- */

int size_limit_check(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
			       end > limit.rlim_cur ?
		       -EFBIG :
		       0;
}

struct size_limit_text size_limit_hint(int r)
{
	struct size_limit_text hint = { "" };
	struct rlimit limit;

	if (r != -EFBIG || getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return hint;
	snprintf(hint.text, sizeof hint,
		 "; the limit on the size of files (RLIMIT_FSIZE) is %s: raise it with ulimit -f",
		 size_format_down(limit.rlim_cur).text);
	return hint;
}

enum { PAUSE_MS = 10, MAX_UNCHANGED_POLLS = 10, MAX_POLLS = 200 };

bool free_space_should_retry(struct free_space_poll *poll_state, uint64_t nbytes,
			     uint64_t required_nbytes)
{
	const bool has_grown = nbytes > poll_state->last_nbytes;

	if (nbytes >= required_nbytes)
		return false;
	poll_state->last_nbytes = nbytes;
	poll_state->n_unchanged = has_grown ? 0 : poll_state->n_unchanged + 1;
	if (++poll_state->n_polls > MAX_POLLS || poll_state->n_unchanged > MAX_UNCHANGED_POLLS)
		return false;
	poll(NULL, 0, PAUSE_MS);
	return true;
}
