/*
 * reservation - space of a file, taken a step ahead of those who write it
 *
 * Writing into space that is reserved is faster than growing the file, and keeps it in few pieces.
 * But all of it at once would be too early: while a merge reads its runs, their space comes back
 * as fast as the output grows, and the disk need not hold both. So space is reserved in steps of
 * a small part of what the file will be.
 *
 * That the disk is large enough for all of it is checked at the beginning, as far as can be known:
 * what is refused could not have succeeded.
 *
 * A reservation that fails later is no error: whoever writes will see. Where the file system cannot
 * reserve, nothing happens, nor is anything refused: it may compress what it is given.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "io/file/file.h"

struct reservation {
	/* Set at creation. */
	const struct file *file;
	uint64_t base;         /* where in the file the first byte goes */
	uint64_t total_nbytes; /* the most that will be reserved; 0: nothing is */

	pthread_mutex_t lock;
	uint64_t reserved_nbytes; /* under the lock: the file has been extended by them */
};

/* For a file that nothing is reserved of. */
void reservation_init(struct reservation *reservation);
void reservation_destroy(struct reservation *reservation);

/*
 * Prepare for total_nbytes from `base` on, where the file ends. Returns 0, or -ENOSPC, without a
 * message, and the number of free bytes: they cannot suffice.
 */
int reservation_start(struct reservation *reservation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes);

/* Everything up to `end`, from the base, will be written now. Thread-safe. */
void reservation_reach(struct reservation *reservation, uint64_t end);
