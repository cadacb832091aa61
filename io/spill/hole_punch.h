/*
 * hole_punch.h - release ranges of files in the background
 *
 * Punching a hole is a transaction of the file system, which takes a third of a millisecond to some
 * milliseconds, for 1 MiB as for 16. A merge that punched one for each MiB that it has passed would
 * spend more time on that than on reading. So ranges are collected, adjacent ranges are joined, and
 * a thread punches the largest one as soon as more than a little is pending.
 *
 * The limits are a bound on space that is no longer needed and still in use. A caller that adds
 * faster than the thread can punch has to punch as well, or to wait. A merge in many partitions has
 * a position in each run for each partition, so low limits mean small holes. The more may be
 * pending, the larger the holes become, until the thread keeps up.
 *
 * Nothing is reported. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hole_punch;

/* Release a range; called by the thread, and by callers that add or drain. */
typedef void hole_punch_fn(void *context, uint32_t file, uint64_t offset, uint64_t nbytes);

/* Returns 0 or -ENOMEM. */
int hole_punch_open(hole_punch_fn *punch, void *context, struct hole_punch **ret_puncher);

/* Drop pending ranges, because the files are closed anyway. NULL is ignored. */
void hole_punch_close(struct hole_punch *puncher);

struct hole_punch_limits {
	uint64_t soft_nbytes; /* the thread punches while more is pending */
	uint64_t hard_nbytes; /* hole_punch_add() punches, too, above this; >= soft_nbytes */
};

/* Add a range that is no longer needed. The limits apply from now on. */
void hole_punch_add(struct hole_punch *puncher, uint32_t file, uint64_t offset, uint64_t nbytes,
		    struct hole_punch_limits limits);

/* Punch until at most nbytes are pending. Returns whether there were more. */
bool hole_punch_drain(struct hole_punch *puncher, uint64_t nbytes);
