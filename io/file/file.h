/*
 * file - whole transfers on a descriptor, through a replaceable table of calls
 *
 * The table holds the system calls that every byte and every name of gsort's files goes through.
 * The plain one is the kernel; a test puts another in its place that transfers less than
 * asked, is interrupted, or fails. Above the calls a transfer is whole or an error: short ones are
 * continued, EINTR is retried, and a descriptor that somebody made non-blocking is waited for, not
 * spun on.
 *
 * Nothing here prints: the callers know what a file is to the user (an input, the output,
 * temporary space) and say so. All functions may be called by several threads on the same file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct mapping_table;
struct undo_table;

/* Each member keeps the contract of the system call of its name: -1 and errno on failure. */
struct syscalls {
	const char *name;
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
	 * What a process has once, lent by a front end that handles its signals. NULL: there is
	 * none; then nothing is mapped (mapping.h), and a signal that ends the process leaves
	 * unfinished files behind (undo.h).
	 */
	struct mapping_table *mappings;
	struct undo_table *undo;
};

extern const struct syscalls syscalls_plain;

struct packet_buffer;

/* Plain data; a closed file has fd -1. */
struct file {
	const struct syscalls *calls;
	int fd;
	struct packet_buffer *packet_buffer; /* file_enable_packet_buffer(); mostly NULL */
};

/* Which file it is, whatever its name. */
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
 * Open `path`, relative to the descriptor `directory` (or AT_FDCWD); O_CLOEXEC is added. *ret_file
 * is the caller's to close. Returns 0 or a negative errno.
 */
int file_open(const struct syscalls *calls, int directory, const char *path, int flags, mode_t mode,
	      struct file *ret_file);

/*
 * Open the same file once more, with flags of its own: a name is not needed. Returns 0 or a
 * negative errno, -EINVAL if the file system refuses O_DIRECT.
 */
int file_reopen(const struct file *file, int flags, struct file *ret_file);

/*
 * Remove a name, relative to the descriptor `directory` (or AT_FDCWD), of a file, or with
 * AT_REMOVEDIR in `flags` of a directory. Returns 0, also if it is gone already, or a negative
 * errno.
 */
int file_remove(const struct syscalls *calls, int directory, const char *name, int flags);

/* ".gsort-" and 16 random hexadecimal digits, with the final '\0'. */
#define FILE_UNIQUE_NAME_SIZE 24

/* A hidden name that no other file has. */
void file_unique_name(char name[static FILE_UNIQUE_NAME_SIZE]);

/* What is unique in it, with a final '\0'. And: is that all that is left of a name? */
enum { FILE_UNIQUE_DIGITS = 16 };
void file_unique_digits(char digits[static FILE_UNIQUE_DIGITS + 1]);
bool file_is_unique_digits(const char *digits);

/* Could a name come from file_unique_name()? */
bool file_is_unique_name(const char *name);

/*
 * Close, once, and say whether the file system had an error left to report (a network file system
 * may). A closed file is fine.
 */
int file_close(struct file *file);

/*
 * Read exactly nbytes at `offset`. Returns 0, -ENODATA if the file ends before, or another negative
 * errno; on failure the buffer holds anything.
 */
int file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes);

/*
 * Write exactly nbytes at `offset`. Returns 0 or a negative errno; on failure any part may be
 * written.
 */
int file_write_at(const struct file *file, uint64_t offset, const void *data, size_t nbytes);

/* Write exactly nbytes at the descriptor's own position: pipes, devices, O_APPEND. */
int file_write_next(const struct file *file, const void *data, size_t nbytes);

/*
 * Read at the descriptor's own position until nbytes are there or the stream ends, which
 * *ret_nbytes < nbytes tells. cancel_fd: gives up with -ECANCELED as soon as that descriptor is
 * readable; -1: never.
 */
int file_read_next(const struct file *file, void *buffer, size_t nbytes, int cancel_fd,
		   size_t *ret_nbytes);

/*
 * Of a pipe that file_read_next() reads: what is written to a pipe with O_DIRECT comes in packets,
 * and of one that is longer than what is read the rest is gone. Nobody who reads can see that a
 * pipe is of this kind. So nothing shorter than a packet is read, and what there was no room for is
 * kept, for the next read of this struct file. Nothing happens to what is no pipe. Returns 0 or
 * -ENOMEM. file_free_packet_buffer() is due, unless it is closed by file_close().
 */
int file_enable_packet_buffer(struct file *file);
void file_free_packet_buffer(struct file *file);

/*
 * A regular file or a device that others have opened with O_DIRECT takes and gives only what lies
 * at multiples of its blocks, in memory, too. Have it without, for all who share the descriptor,
 * until file_restore_o_direct(). *ret_had_o_direct: it had it. To a pipe it means something else,
 * and nothing happens. Returns 0 or a negative errno.
 */
int file_clear_o_direct(const struct file *file, bool *ret_had_o_direct);
void file_restore_o_direct(const struct file *file);

/*
 * Let a pipe hold as much as the kernel lets everybody have (/proc/sys/fs/pipe-max-size): with the
 * usual 64 KiB both ends wait for each other all the time. A hint, which may be refused; nothing
 * happens to what is no pipe.
 */
void file_enlarge_pipe(const struct file *file);

/*
 * Reserve the range on the disk and extend the file to it. A file system that cannot do it is no
 * error. Returns 0, or -ENOSPC and its like.
 */
int file_preallocate(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Keep space for what will be written there; the file's size stays as it is. Returns 0 or a
 * negative errno; nobody has to know.
 */
int file_preallocate_keep_size(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Give the range's space back; it reads as zeros. Returns 0 or -EOPNOTSUPP and its like. Only whole
 * blocks of the file system, mostly 4096 bytes, become free.
 */
int file_punch_hole(const struct file *file, uint64_t offset, uint64_t nbytes);

/* The range need not stay in the page cache: a hint. */
void file_drop_cache(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Of a file that the page cache cannot hold: start to bring the range, which was just written, to
 * the disk, and forget what was written long before it. Hints: whether it is done is not told.
 */
void file_start_writeback(const struct file *file, uint64_t offset, uint64_t nbytes);

int file_truncate(const struct file *file, uint64_t nbytes);
int file_sync(const struct file *file);

/* Size in bytes of a regular file. */
int file_size(const struct file *file, uint64_t *ret_nbytes);
