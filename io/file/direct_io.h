/*
 * direct_io - past the page cache
 *
 * For a file that is not in the page cache, reading directly costs the processor nothing (a read
 * through the cache is a copy, and pages to be found, filled and forgotten), is faster with several
 * large requests than the kernel's read-ahead, and leaves what others have in the cache alone. For
 * one that is, it is several times slower. So one looks first.
 *
 * The kernel wants offset, length and memory aligned. Here they need not be: what is between the
 * alignments is read through a block on the stack, and the rest, if the memory does not lie as the
 * file does, moved into place after it was read. No other memory is taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "io/file/io_queue.h"

/* Enough for every disk and file system. */
#define DIRECT_ALIGN_NBYTES 4096

/* Requests under way in a queue that all transfers share: no disk is faster with more. */
enum { DIRECT_QUEUE_DEPTH = 32 };

/*
 * Is at least half of the range in the page cache? Also true where that cannot be found out.
 */
bool direct_is_cached(const struct file *file, uint64_t offset, uint64_t nbytes);

/*
 * file_read_at() for a file opened with O_DIRECT, in several pieces at once if there is a queue.
 * -EINVAL: the file system does not want it after all, or the file ends before.
 */
int direct_read_at(struct io_queue *queue, const struct file *direct, uint64_t offset, void *buffer,
		   size_t nbytes);

/* Does memory lie as its place in the file, at `offset`, so that it can go there directly? */
static inline bool direct_is_aligned(const void *data, uint64_t offset)
{
	return ((uintptr_t)data - offset) % DIRECT_ALIGN_NBYTES == 0;
}

/*
 * file_write_at() for a file that is open twice, as `direct` with O_DIRECT, as `cached` without.
 * What is not aligned goes through the cache: all of it, if the memory does not lie as the file
 * does.
 */
int direct_write_at(struct io_queue *queue, const struct file *direct, const struct file *cached,
		    uint64_t offset, const void *data, size_t nbytes);
