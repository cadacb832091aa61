/*
 * preallocate.h - space and page cache of a file, allocated ahead of its writers
 *
 * Writing into allocated space is faster than extending the file, and keeps it in few extents; and
 * only allocated space can be written through a mapping. But allocating everything at once would be
 * too early: while a merge reads its runs, their space is released as fast as the output grows, and
 * the disk need not hold both. So the file is divided into steps, and a step is allocated when its
 * first byte is about to be written, wherever in the file that is. At the beginning the disk is
 * checked for the total, as far as that can be known: an output that is refused could not have
 * succeeded.
 *
 * A later failure to allocate is no error: the writer will notice. On file systems that cannot
 * preallocate, such as those that compress, nothing is allocated or refused.
 *
 * Prefaulting: half the time of writing a new file through mappings (io/file/mapping.h) goes to
 * finding and clearing pages for it. While a GPU starts and sorts, the CPUs are idle. Then threads
 * map allocated space like a writer, segment by segment, and read it. The pages are clean, hold
 * zeros, cost no transfer, and can be dropped by the kernel at any time. 8 writers, each at its own
 * part of 8 GiB, took 0.65 s, and 0.38 s after prefaulting, for which 4 threads took 0.38 s while 8
 * others read as much. With small pages, which a read-only mapping gets, it does not pay.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/file/file.h"

struct preallocation {
	/* Set by preallocate_start(). */
	const struct file *file;
	uint64_t base;         /* the offset in the file of the first step */
	uint64_t total_nbytes; /* the maximum; 0: nothing is allocated */
	uint64_t step_nbytes;
	bool is_supported; /* the file system has allocated what it was asked for */

	pthread_mutex_t lock;
	/* Protected by lock. */
	bool *step_is_allocated;
	uint64_t extended_nbytes; /* the size of the file, from base, after allocations */
};

/*
 * Return the bytes that this user may still write to the file's disk; UINT64_MAX: unknown. If they
 * are fewer than wanted, ask again for a while.
 */
uint64_t preallocate_free_space(const struct file *file, uint64_t wanted_nbytes);

/* Return whether the file system of an empty file can preallocate. */
bool preallocate_is_supported(const struct file *file);

/*
 * Check that a file that ends at `end`, and to which others may write, can grow by nbytes. The file
 * is not changed, except that a block after its end may stay allocated. Returns 0 or -ENOSPC (not
 * reported), and the number of free bytes.
 */
int preallocate_check_growth(const struct file *file, uint64_t end, uint64_t nbytes,
			     uint64_t *ret_free_nbytes);

void preallocate_init(struct preallocation *preallocation);
void preallocate_destroy(struct preallocation *preallocation);

/*
 * Prepare for total_nbytes from `base`, where the file ends; a second call does nothing. Returns 0,
 * -ENOSPC if the free bytes cannot suffice, or -ENOMEM; not reported.
 */
int preallocate_start(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes);

/*
 * Prepare for a file that another process has checked: the disk has the space, and the file system
 * can preallocate. The file may have its full length already.
 */
void preallocate_start_shared(struct preallocation *preallocation, const struct file *file,
			      uint64_t base, uint64_t total_nbytes);

/*
 * Allocate the steps of [begin, end), from the base, which will be written now. Returns whether all
 * of the range is allocated. Thread-safe.
 */
bool preallocate_range(struct preallocation *preallocation, uint64_t begin, uint64_t end);

struct prefault;

struct prefault_file {
	const struct file *file; /* open for reading and writing */
	struct preallocation *preallocation;
};

/*
 * Prefault n > 0 files, which must stay open until prefault_stop() is called for each. n_writers
 * will divide the files' total evenly; the beginning of each writer's part comes first. Others may
 * write meanwhile. Returns 0 or a negative errno (not reported), which can be ignored.
 */
int prefault_start(const struct prefault_file *files, uint32_t n, uint32_t n_writers,
		   unsigned n_threads, struct prefault **ret_prefault);

/*
 * Stop for all files. Call it once for each file, by one thread at a time; the last call frees the
 * prefault. NULL is ignored.
 */
void prefault_stop(struct prefault *prefault);
