/*
 * direct_io - O_DIRECT reads and writes of unaligned ranges
 *
 * Direct reads of a file that is not in the page cache need little processor time, leave the page
 * cache to others, and with several large requests in flight are faster than the kernel's
 * read-ahead. For a cached file they are several times slower, so callers check direct_is_cached()
 * first.
 *
 * The kernel requires aligned offsets, lengths and memory; these functions do not. The unaligned
 * ends are read through a block on the stack. If the memory is aligned differently from the file,
 * the data is moved after it was read. No other memory is used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/file/io_queue.h"

/* Sufficient for every disk and file system. */
#define DIRECT_ALIGN_NBYTES 4096

/* Return whether at least half of the range is in the page cache, or this cannot be determined. */
bool direct_is_cached(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * Like file_read_at(), for a file opened with O_DIRECT. queue: runs several requests at a time;
 * NULL: one. Returns -EINVAL if the file system refuses the request, or if the file ends before.
 */
int direct_read_at(struct io_queue *queue, const struct file *direct, uint64_t offset, void *buffer,
		   size_t nbytes);

/*
 * Return whether `data` has the alignment of its file offset, so that it can be written directly.
 */
static inline bool direct_is_aligned(const void *data, uint64_t offset)
{
	return ((uintptr_t)data - offset) % DIRECT_ALIGN_NBYTES == 0;
}

/*
 * Like file_write_at(), for a file that is open twice: `direct` with O_DIRECT, `cached` without.
 * Unaligned ends are written to `cached`. Everything is, if `data` is aligned differently from the
 * file or the file system refuses direct writes. queue: as for direct_read_at().
 */
int direct_write_at(struct io_queue *queue, const struct file *direct, const struct file *cached,
		    uint64_t offset, const void *data, size_t nbytes);
