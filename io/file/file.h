/*
 * file - complete transfers on a descriptor, through a replaceable table of system calls
 *
 * All of gsort's files are accessed through the table. The plain one calls the kernel. A test
 * replaces it to make calls transfer less, fail, or return EINTR. Above the calls a transfer is
 * complete or an error: short transfers are continued, EINTR is retried, and a non-blocking
 * descriptor is polled.
 *
 * Except for size_limit_hint() nothing here knows about messages: the callers know what a file is
 * to the user (an input, the output, temporary space) and report errors. All functions are
 * thread-safe, also for the same file, unless they say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct rendezvous;
struct mapping_table;
struct undo_table;

/* Each member has the contract of the system call of its name: -1 and errno on failure. */
struct syscalls {
	int (*openat)(int directory, const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *buffer, size_t nbytes);
	ssize_t (*write)(int fd, const void *data, size_t nbytes);
	ssize_t (*pread)(int fd, void *buffer, size_t nbytes, off_t offset);
	ssize_t (*pwrite)(int fd, const void *data, size_t nbytes, off_t offset);
	int (*fallocate)(int fd, int mode, off_t offset, off_t nbytes);
	int (*ftruncate)(int fd, off_t nbytes);
	int (*fsync)(int fd);
	int (*linkat)(int from_directory, const char *from, int to_directory, const char *to,
		      int flags);
	int (*renameat)(int from_directory, const char *from, int to_directory, const char *to);
	int (*renameat2)(int from_directory, const char *from, int to_directory, const char *to,
			 unsigned flags);
	int (*mkdirat)(int directory, const char *name, mode_t mode);
	int (*unlinkat)(int directory, const char *name, int flags);
	int (*fsetxattr)(int fd, const char *name, const void *value, size_t nbytes, int flags);
	/*
	 * Tables of the process, set by a front end that handles signals. NULL: files are not
	 * mapped (mapping.h), and a fatal signal leaves unfinished files behind (undo.h).
	 */
	struct mapping_table *mappings;
	struct undo_table *undo;
};

extern const struct syscalls syscalls_plain;

struct pipe_buffer;

/* Plain data. A closed file has fd -1. */
struct file {
	const struct syscalls *calls;
	int fd;
	struct pipe_buffer *pipe_buffer; /* file_alloc_pipe_buffer(), or NULL */
};

/* Identifies a file, whatever its name. */
struct file_id {
	dev_t device;
	ino_t inode;
};

static inline struct file_id file_id_from_stat(const struct stat *status)
{
	return (struct file_id){ .device = status->st_dev, .inode = status->st_ino };
}

static inline bool file_id_equal(struct file_id a, struct file_id b)
{
	return a.device == b.device && a.inode == b.inode;
}

/*
 * Open `path`, relative to the descriptor `directory` (or AT_FDCWD). O_CLOEXEC is added. The caller
 * closes *ret_file. Returns 0 or a negative errno.
 */
int file_open(const struct syscalls *calls, int directory, const char *path, int flags, mode_t mode,
	      struct file *ret_file);

/*
 * Open the same file again with other flags, without its name. Returns 0 or a negative errno,
 * -EINVAL if the file system refuses O_DIRECT.
 */
int file_reopen(const struct file *file, int flags, struct file *ret_file);

/*
 * Remove the name of a file, or with AT_REMOVEDIR in `flags` of a directory, relative to the
 * descriptor `directory` (or AT_FDCWD). A missing name is no error. Returns 0 or a negative errno.
 */
int file_remove(const struct syscalls *calls, int directory, const char *name, int flags);

/* The size of ".gsort-", 16 random hexadecimal digits, and '\0'. */
#define FILE_UNIQUE_NAME_SIZE 24

/* Make a unique hidden file name. */
void file_unique_name(char name[static FILE_UNIQUE_NAME_SIZE]);

enum { FILE_UNIQUE_DIGITS = 16 };

/* Make random hexadecimal digits, and a '\0'. */
void file_unique_digits(char digits[static FILE_UNIQUE_DIGITS + 1]);

/* Return whether file_unique_name() may have made a name. */
bool file_is_unique_name(const char *name);

/*
 * Close a file. Returns 0, or the error that the file system reports at close (network file systems
 * may). Does nothing if the file is closed.
 */
int file_close(struct file *file);

/*
 * Read exactly nbytes at `offset`. Returns 0, -ENODATA if the file ends before, or another negative
 * errno. On failure the buffer is undefined.
 */
int file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes);

/*
 * Write exactly nbytes at `offset`. Returns 0 or a negative errno. On failure any part may have
 * been written.
 */
int file_write_at(const struct file *file, uint64_t offset, const void *data, size_t nbytes);

/*
 * Write exactly nbytes at the descriptor's position: for pipes, devices and O_APPEND. Returns like
 * file_write_at().
 */
int file_write_next(const struct file *file, const void *data, size_t nbytes);

/*
 * Read nbytes at the descriptor's position. *ret_nbytes is smaller only at the end of the stream.
 * Returns 0, -ECANCELED once cancel_fd is readable (-1: never), or another negative errno.
 */
int file_read_next(const struct file *file, void *buffer, size_t nbytes, int cancel_fd,
		   size_t *ret_nbytes);

/*
 * Let file_read_next() read a pipe through a buffer of 128 KiB, from which later reads of this
 * struct file are served. That is faster, unless there are few CPUs. It is also necessary: if the
 * writer opened the pipe with O_DIRECT, its writes make packets, and a read that is shorter than a
 * packet drops the remainder. A reader cannot detect packets. Does nothing for other files. Returns
 * 0 or -ENOMEM. file_close() or file_free_pipe_buffer() frees the buffer.
 */
int file_alloc_pipe_buffer(struct file *file);
void file_free_pipe_buffer(struct file *file);

/*
 * Clear O_DIRECT of a regular file or a block device that another program has opened with it, until
 * file_restore_o_direct(). O_DIRECT requires aligned transfers and memory. All processes that
 * inherited the descriptor share the flag. Returns whether it was cleared. Does nothing for a pipe,
 * where the flag means packets. If the flag cannot be cleared, unaligned transfers fail.
 */
bool file_clear_o_direct(const struct file *file);
void file_restore_o_direct(const struct file *file);

/*
 * Enlarge the buffer of a pipe to the limit for unprivileged users (/proc/sys/fs/pipe-max-size).
 * With the default of 64 KiB both ends often wait for each other. A hint: errors are ignored, and
 * other files are not changed.
 */
void file_enlarge_pipe(const struct file *file);

/*
 * Allocate the range on the disk and extend the file to it. Returns 0, also if the file system
 * cannot preallocate; or -ENOSPC or a similar error.
 */
int file_preallocate(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Allocate the range without changing the file's size. Returns 0 or a negative errno, which callers
 * may ignore.
 */
int file_preallocate_keep_size(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Free the range's disk space; it reads as zeros then. Only whole blocks of the file system
 * (usually 4096 bytes) are freed. Returns 0, or -EOPNOTSUPP or a similar error.
 */
int file_punch_hole(const struct file *file, uint64_t offset, uint64_t nbytes);

/* Drop the range from the page cache: a hint. */
void file_drop_cache(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Start writing the range, which has just been written, to the disk, and drop what was written long
 * before it from the page cache. For files that the page cache cannot hold. Hints.
 */
void file_start_writeback(const struct file *file, uint64_t offset, uint64_t nbytes);

/* Set the size of a file. Returns 0 or a negative errno. */
int file_truncate(const struct file *file, uint64_t nbytes);

/* Make the data and metadata of a file durable. Returns 0 or a negative errno. */
int file_sync(const struct file *file);

/* Get the size of a regular file. Returns 0 or a negative errno. */
int file_size(const struct file *file, uint64_t *ret_nbytes);

/* --- changes of a file --- */

/*
 * The size and times of a file. Any program can set mtime back, so ctime is compared as well. A
 * change of ctime that comes with other links, mode or owner does not count: these do not affect
 * the content.
 *
 * Not detected: a store through a mapping that has not reached the disk, and a second change within
 * a tick of the system's clock (some milliseconds).
 */
struct file_state {
	uint64_t nbytes;
	struct timespec modified, changed;
	/* Changes of these change ctime as well. */
	nlink_t n_links;
	mode_t mode;
	uid_t user;
	gid_t group;
};

struct file_state file_state_from_stat(const struct stat *status);

/* Return whether the content of a file is unchanged, as far as size and times tell. */
bool file_state_is_unchanged(const struct file_state *old_state,
			     const struct file_state *new_state);

/* --- limits --- */

/* Check a file size against RLIMIT_FSIZE. Returns 0, or -EFBIG (not reported). */
int size_limit_check(uint64_t end);

/*
 * Format a hint to append to the message of a failed write, after the %m of `r`, a negative errno.
 * For EFBIG ("File too large"), which usually comes from a limit of the shell, it names the limit;
 * otherwise it is empty.
 */
struct size_limit_text {
	char text[128];
};
struct size_limit_text size_limit_hint(int r);

/*
 * Polls free disk space. XFS frees the space of a removed file some milliseconds later, and sooner
 * if the free space is queried. Without polling, a sort that follows the removal of an older output
 * would fail for lack of space.
 *
 *	struct free_space_poll poll_state = { 0 };
 *
 *	do
 *		nbytes = (query free space);
 *	while (free_space_should_retry(&poll_state, nbytes, required_nbytes));
 */
struct free_space_poll {
	uint64_t last_nbytes;
	unsigned n_polls, n_unchanged;
};

/*
 * Return whether to query the free space again, after sleeping 10 ms. Returns false if the nbytes
 * that are free suffice, after 0.1 s without growth, or after 2 s.
 */
bool free_space_should_retry(struct free_space_poll *poll_state, uint64_t nbytes,
			     uint64_t required_nbytes);

/*
 * An input or output. The path is given separately; for descriptors and channels it is the name in
 * messages.
 */
struct endpoint {
	enum {
		ENDPOINT_PATH,       /* the path names it */
		ENDPOINT_DESCRIPTOR, /* fd, used from its position; stays open */
		ENDPOINT_RENDEZVOUS, /* a byte channel between threads */
	} kind;
	int fd;
	struct rendezvous *rendezvous;
};
