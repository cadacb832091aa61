/*
 * hole_punch - give ranges of files back to the file system, behind everybody's back
 *
 * Punching a hole is a transaction of the file system that takes a third of a millisecond to some
 * milliseconds, whether it is for one MiB or for 16. A merge that does it for each MiB that it has
 * passed spends more time on that than on reading. So ranges are collected, neighbours become one
 * range, and a thread punches the largest one as soon as more than a little is pending.
 *
 * The lag is how much that is, and how much may be pending at most: a bound on space that is no
 * longer needed and still taken. Who adds faster than the thread can punch has to punch as well, or
 * to wait for it. A merge in many ranges has a place in each run for each range, so a small lag
 * means small holes: the more may be pending, the larger they become, until the thread keeps up.
 *
 * Nothing here prints. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hole_punch;

/* Give a range back; called by the thread of the reclaim, and by those that add and drain. */
typedef void hole_punch_fn(void *context, uint32_t file, uint64_t offset, uint64_t nbytes);

/* Returns 0 or -ENOMEM. */
int hole_punch_open(hole_punch_fn *punch, void *context, struct hole_punch **ret_puncher);

/* What is still pending is dropped: the files are closed anyway. NULL is fine. */
void hole_punch_close(struct hole_punch *puncher);

struct hole_punch_limits {
	uint64_t soft_nbytes; /* the thread punches as long as more is pending */
	uint64_t hard_nbytes; /* so does who adds; not less */
};

/* The range is no longer needed; from now on so much may be pending. */
void hole_punch_add(struct hole_punch *puncher, uint32_t file, uint64_t offset, uint64_t nbytes,
		    struct hole_punch_limits limits);

/* Give back until no more than that is pending. Returns whether there was more. */
bool hole_punch_drain(struct hole_punch *puncher, uint64_t nbytes);
