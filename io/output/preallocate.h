/*
 * preallocate - space of a file, taken a step ahead of those who write it
 *
 * Writing into space that is reserved is faster than growing the file, and keeps it in few pieces;
 * and only such space can be written through a mapping. But all of it at once would be too early:
 * while a merge reads its runs, their space comes back as fast as the output grows, and the disk
 * need not hold both. So the file is divided into steps, small parts of what it will be, and a step
 * is reserved when the first of its bytes is about to be written, wherever in the file it is.
 *
 * That the disk is large enough for all of it is checked at the beginning, as far as can be known:
 * what is refused could not have succeeded.
 *
 * A reservation that fails later is no error: whoever writes will see. Where the file system cannot
 * reserve, nothing happens, nor is anything refused: it may compress what it is given.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/file/file.h"

struct preallocation {
	/* Set at creation. */
	const struct file *file;
	uint64_t released_later_nbytes; /* what others give back of the disk while it is written */
	uint64_t base;                  /* where in the file the first byte goes */
	uint64_t total_nbytes;          /* the most that will be reserved; 0: nothing is */
	uint64_t step_nbytes;
	bool is_supported; /* the file system has reserved what it was asked for */

	pthread_mutex_t lock;
	/* Under the lock. */
	bool *step_is_allocated;  /* is it reserved? */
	uint64_t extended_nbytes; /* what the file has been extended to, from the base */
};

/*
 * Bytes that we may still write to the file's disk; UINT64_MAX if it does not say. If that is less
 * than is wanted, it is looked at again for a while (free_space_retry.h).
 */
uint64_t preallocate_free_space(const struct file *file, uint64_t wanted_nbytes);

/* Can the file system of an empty file reserve? Then it keeps what it is given as it is. */
bool preallocate_is_supported(const struct file *file);

/*
 * Could a file that ends at `end`, and that others may write to, grow by nbytes? Nothing of it
 * changes, but that a block may stay reserved behind it if it could not. 0, or -ENOSPC without a
 * message, and the number of free bytes.
 */
int preallocate_check_growth(const struct file *file, uint64_t end, uint64_t nbytes,
			     uint64_t *ret_free_nbytes);

/* For a file that nothing is reserved of. */
void preallocate_init(struct preallocation *preallocation);
void preallocate_destroy(struct preallocation *preallocation);

/*
 * Prepare for total_nbytes from `base` on, where the file ends; if that has been done before, it
 * stays as it is. What the file has from there on, and released_later_nbytes, which may be set
 * before, count as free. Returns 0, or -ENOSPC, without a message, and the number of free bytes:
 * they cannot suffice; or -ENOMEM.
 */
int preallocate_start(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes);

/*
 * The same where another process has: it has found that there is room, and that the file system
 * reserves. Nothing is, before somebody reaches it; the file may be as long already as all of it.
 */
void preallocate_start_shared(struct preallocation *preallocation, const struct file *file,
			      uint64_t base, uint64_t total_nbytes);

/*
 * [begin, end), from the base, will be written now. Returns whether all of it is reserved.
 * Thread-safe.
 */
bool preallocate_range(struct preallocation *preallocation, uint64_t begin, uint64_t end);
