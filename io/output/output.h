/*
 * output.h - a file that appears complete or not at all, or a stream that is written in order
 *
 *	open -> write_at* -> [read_at*] -> commit      the file is there
 *	                               \-> abort       nothing has happened
 *
 * A regular file is written beside its target and takes the target's name in output_commit(); until
 * then an older file of that name, which may be an input, is untouched (atomic_file.h). A symbolic
 * link as target stays a link: the file that it points to is replaced. A new file gets the
 * permissions of the umask; a replacement gets the attributes of the old file.
 *
 * Other targets are written in place: pipes, devices, a rendezvous, and inherited descriptors, such
 * as standard output. Where the target has offsets, they are used. Otherwise the output is ordered:
 * a writer waits until everything before its offset is written. Compressed outputs are ordered,
 * too. So the writer of the lowest offset must not wait for one of a higher offset.
 *
 * All functions report their errors. output_write_at(), output_read_at() and output_cancel() are
 * thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst.h"
#include "io/file/file.h"
#include "io/output/file_writer.h"
#include "io/output/orphans.h"

struct output;

#define OUTPUT_SIZE_UNKNOWN UINT64_MAX

enum output_durability {
	OUTPUT_UNSYNCED, /* the kernel writes the data back some time */
	/* Sync the data before the rename: if the file replaces an input, it is the only copy. */
	OUTPUT_SYNC_DATA,
	OUTPUT_SYNC_ALL, /* sync the data, and the name before output_commit() returns */
};

/*
 * Open a path. NULL: standard output. /dev/fd/3 and the like: an inherited descriptor, which is
 * written from its current position. expected_nbytes: the maximum size, which is
 * preallocated step by step (preallocate.h), or OUTPUT_SIZE_UNKNOWN. Refuses directories, and
 * sizes that the disk has no space for.
 */
int output_open(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		struct output **ret_output);

/* Open a path, a descriptor or a rendezvous, which messages call `name`. */
int output_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 uint64_t expected_nbytes, struct output **ret_output);

/* Refuse an output of binary records that is a terminal. Returns 0, or -ENOTTY after a message. */
int output_refuse_terminal(const struct output *output);

/* Refuse a target that is an input, unless output_is_atomic(). Returns 0, or -EINVAL (reported). */
int output_refuse_input(const struct output *output);

/*
 * Open a path for a text of unknown size, such as a report. An inherited descriptor is written
 * sequentially, and may be a terminal.
 */
int output_open_text(const struct syscalls *calls, const char *path, struct output **ret_output);

/*
 * Set the maximum size of an output that was opened without one, before the first write. Ignored if
 * it was set before. Errors as output_open().
 */
int output_set_expected_size(struct output *output, uint64_t nbytes);

/*
 * Like output_set_expected_size(), but if the space is not free yet, because temporary files will
 * release some, or cannot be preallocated, do nothing.
 */
void output_update_expected_size(struct output *output, uint64_t nbytes);

/* Check that the disk has space for nbytes. Returns 0 or -ENOSPC. */
int output_check_space(const struct output *output, uint64_t nbytes);

/* Check that the process's limit on the size of files permits nbytes. Returns 0 or -EFBIG. */
int output_check_limit(const struct output *output, uint64_t nbytes);

/*
 * Return the unit in which several hosts should divide the file: 1 MiB, or the preferred size of
 * the file system if that is larger, at most 16 MiB.
 */
uint64_t output_stripe_nbytes(const struct output *output);

/* Return the memory of an output, without that of compression. */
size_t output_memory_nbytes(void);

/*
 * Open a regular file that other processes, on this host or others, write to as well. It has a
 * temporary name from the start, output_shared_name(), by which they join. The process that has
 * opened it commits it, after output_record_remote_writes(): how much the others have written, and
 * where the last of that ends. Before that, each joined process calls output_close_shared(), which
 * frees the output in any case. If a process fails to close, aborts, or is killed, the file is lost
 * for all. owner: NULL: none (see orphans_remove()). On failure *ret_output may be set; then the
 * caller aborts it.
 */
int output_open_shared(const struct syscalls *calls, const char *path, uint64_t expected_nbytes,
		       const struct orphan_owner *owner, struct output **ret_output);
int output_open_shared_existing(const struct syscalls *calls, const char *path, const char *name,
				struct output **ret_output);
int output_close_shared(struct output *output);

/*
 * Open a new file in a directory that has no name yet (part_files.h). The directory must stay open.
 * The last component of `path` is the file's name; the path is for messages. is_shared: other
 * processes join the file, as in output_open_shared(). They give its output_shared_name(), which is
 * NULL for a new file. Orphans are not reported.
 */
int output_open_part(const struct file *directory, const char *path, bool is_shared,
		     const char *name, struct output **ret_output);

/*
 * Return whether the file system can preallocate. For a shared output, call this before the first
 * write; the process that has opened the output sends the result to the others. If all run on one
 * host, each may call output_enable_shared_mmap() with the size of the file. It preallocates and
 * maps its own part, because write() calls of several processes would wait for each other.
 */
bool output_can_preallocate(const struct output *output);
void output_enable_shared_mmap(struct output *output, uint64_t nbytes);

const char *output_shared_name(const struct output *output);
void output_record_remote_writes(struct output *output, uint64_t nbytes, uint64_t end);

/*
 * Compress all data that is written from now on, with n_threads, to a .zst file with an index of
 * its frames. Before the first write; no expected size may be set. Offsets and sizes are those of
 * the content, the output is ordered, and reading back waits until everything is written. On
 * failure the output stays open.
 */
int output_compress(struct output *output, int level, unsigned n_threads);

/*
 * Compress a segment of the content of a file that several processes write. The segment begins at
 * `begin`, a multiple of the frame size (zst.h). Its frames go to the sink, because their
 * offset in the file is not known yet. output_end_segment() waits until the segment is written and
 * hands the index of its frames to the caller; from then on stored bytes are written at any offset.
 * allow_empty: an empty segment has no frame.
 */
int output_begin_segment(struct output *output, int level, unsigned n_threads, uint64_t begin,
			 const struct zst_sink *sink);
int output_end_segment(struct output *output, bool allow_empty, struct zst_index *ret_index);

/*
 * After all segments: let output_read_at() read the content of the whole file. The output takes the
 * index, also on failure. Returns 0 or -ENOMEM.
 */
int output_set_zst_index(struct output *output, struct zst_index index);

/*
 * Before the first write: choose how bytes are transferred.
 *
 *	bypass_cache	the page cache cannot hold the output: direct I/O, or write-back at once
 *	use_writeback	write-back at once, without another descriptor for direct I/O
 *	use_adaptive_io	a large output: through the cache or direct, whichever is faster
 */
void output_bypass_cache(struct output *output);
void output_use_writeback(struct output *output);
void output_use_adaptive_io(struct output *output);

/*
 * Before the first write: n writers write at the same time. If there are several, preallocated
 * space may also be written through mappings (io/file/mapping.h), if that is faster.
 * Ignored for ordered outputs.
 */
void output_set_n_writers(struct output *output, uint32_t n_writers);

/*
 * Before the first write: prefault n > 0 outputs of known sizes (preallocate.h), which n_writers
 * write as if they were one. Threads do that from now on, also while others write, until one of the
 * outputs is stopped, complete, or bypasses the cache. Until then the outputs are written through
 * mappings by preference. If it is not possible for all of them, nothing happens. Stop before the
 * first write or after the last; NULL is ignored.
 */
void output_start_prefault(struct output *const *outputs, uint32_t n, uint32_t n_writers,
			   unsigned n_threads);
void output_stop_prefault(struct output *output);

/*
 * Return how many threads should prefault outputs of nbytes in all, if n_cpus threads sort. Returns
 * 0 for small outputs, and if the memory or the disk space may be needed for other files.
 */
unsigned output_n_prefault_threads(const struct output *output, uint64_t nbytes, unsigned n_cpus);

/* Add the bytes that were written by each method to *total. */
void output_add_io_stats(const struct output *output, struct file_writer_stats *total);

/*
 * Return the alignment for direct writes, or 0 if there are none. Long data is written directly if
 * its address and *ret_base + offset are congruent modulo the alignment.
 */
uint32_t output_direct_alignment(const struct output *output, uint64_t *ret_base);

/* Return the path, or "standard output". */
const char *output_name(const struct output *output);

/* Identify the existing file that is replaced or written in place; false if there is none. */
bool output_target_file_id(const struct output *output, struct file_id *ret_file_id);

/* Return whether the target is unchanged until output_commit(). If not, it must not be an input. */
bool output_is_atomic(const struct output *output);

/* Return whether the writers must proceed in order. */
bool output_is_ordered(const struct output *output);

/*
 * Write at `offset`, from the beginning of the output. Ranges must not overlap, and must leave no
 * gap in the end. After a failed write, all others return its errno.
 */
int output_write_at(struct output *output, uint64_t offset, const void *data, size_t nbytes);

/* Read back, after everything is written. -ESPIPE (not reported): the target cannot be read. */
int output_read_at(struct output *output, uint64_t offset, void *buffer, size_t nbytes);

/*
 * Copy up to nbytes from the beginning of the file, after everything is written. Returns how many:
 * 0 if they are not known, because the output is compressed or does not begin the file.
 */
size_t output_first_bytes(const struct output *output, void *buffer, size_t nbytes);

/* Let waiting writers and all later writes return -ECANCELED. */
void output_cancel(struct output *output);

/*
 * After everything is written: wait for it, and truncate what was preallocated in excess.
 * *ret_status: the file, whose contents and time of modification no longer change. Others may be
 * able to write to the new file; if they do, this function, output_complete() and output_commit()
 * fail with -EBUSY.
 */
int output_finalize(struct output *output, struct stat *ret_status);

/*
 * After everything is written: finalize, and sync the data if requested. output_commit() is quick
 * then, and leaves others little time to interfere.
 */
int output_complete(struct output *output, enum output_durability durability);

/*
 * After everything is written: complete the output, close it, and give it its name. A gap between
 * writes is an internal error. -EBUSY: the target has changed since it was opened. Frees the output
 * in any case; on failure the target is unchanged.
 */
int output_commit(struct output *output, enum output_durability durability);

/* Bring the data to stable storage, if the target has any. */
int output_sync(struct output *output);

/* Leave the target unchanged, and free all space. NULL is ignored. No writer may be active. */
void output_abort(struct output *output);

/* --- Plans: about an output that is not written (output_probe.c) --- */

/* Return whether it is a pipe or a device. */
bool output_is_special_file(const char *path);

/*
 * Check that the output can be opened, and remove it again. A pipe or a device is not opened,
 * because its reader or writer would notice. Returns 0 or a negative errno (reported).
 */
int output_try(const struct syscalls *calls, const char *path);

/* Find the free space in the directory of a file; false if it is unknown. */
bool output_find_free_space(const char *path, uint64_t *ret_nbytes);
