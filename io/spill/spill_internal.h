/*
 * spill_internal - a spill, as the files of its implementation share it
 *
 *	spill.c		the face: what is opened, stored, read, given back, and noted
 *	spill_placement.c	which file has room for an extent, and what if none has
 *	hole_punch_policy.c	how much of what was given back may still be taken
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "io/file/io_queue.h"
#include "io/spill/memory_tier.h"
#include "io/spill/hole_punch.h"
#include "io/spill/spill.h"
#include "io/spill/spill_file.h"

struct spill {
	/* Set at creation. */
	const struct syscalls *calls;
	uint64_t limit_nbytes;
	size_t n_directories;
	bool is_persistent;
	struct spill_remote remote;              /* read NULL: what is stored is stored here */
	const char *advice;                      /* about what is damaged; NULL: the usual */
	_Atomic uint64_t
		damage_offset_plus_one; /* an offset, and one more; 0: nothing is damaged */
	_Atomic uint64_t written_nbytes, read_nbytes; /* of files */

	/* Constant once anything is stored. */
	size_t n_files;             /* one in each directory, or two: see spill_use_adaptive_io() */
	struct memory_tier *memory; /* has a lock of its own, as the next */
	struct hole_punch *hole_punch;
	struct io_queue *queue; /* constant once anything is stored; NULL if there is none */

	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t used_nbytes; /* in whole pages, as all that is counted */
	uint64_t peak_nbytes;
	struct spill_file files[]; /* n_files: directory by directory, and all once more */
};

static inline uint64_t spill_round_up_to_page(uint64_t nbytes)
{
	return (nbytes + SPILL_ALIGN_NBYTES - 1) / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
}

/* With nbytes of the file that are given back now: how much of all that may still be taken. */
struct hole_punch_limits spill_hole_punch_limits(struct spill *spill, struct spill_file *f,
						 uint64_t nbytes);

/*
 * Under the lock, which is let go while there is something to wait for: what may wait to be given
 * back only because there is room does not make the peak higher when nbytes are taken.
 */
void spill_wait_below_peak(struct spill *spill, uint64_t nbytes);

/* Of the limit, which a spill that is taken up may have passed already. */
static inline uint64_t spill_limit_remaining(const struct spill *spill, uint64_t used_nbytes)
{
	return spill->limit_nbytes > used_nbytes ? spill->limit_nbytes - used_nbytes : 0;
}

/* As spill_write(), in a file. */
int spill_write_to_file(struct spill *spill, const void *data, size_t nbytes,
			struct spill_extent *ret_extent);
