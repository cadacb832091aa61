/*
 * reclaim - give ranges of files back to the file system, behind everybody's back
 *
 * Punching a hole is a transaction of the file system that takes a third of a millisecond to some
 * milliseconds, whether it is for one MiB or for 16. A merge that does it for each MiB that it has
 * passed spends more time on that than on reading. So ranges are collected, neighbours become one
 * range, and a thread punches the largest one as soon as more than a little is pending.
 *
 * The lag is how much that is: a bound on space that is no longer needed and still taken. Who adds
 * faster than the thread can punch has to punch as well, or to wait for it, so twice the lag is the
 * most.
 *
 * Nothing here prints. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct reclaim;

/* Give a range back; called by the thread of the reclaim, and by those that add and drain. */
typedef void reclaim_punch(void *context, uint32_t file, uint64_t offset, uint64_t nbytes);

/* Returns 0 or -ENOMEM. */
int reclaim_open(reclaim_punch *punch, void *context, struct reclaim **ret_reclaim);

/* What is still pending is dropped: the files are closed anyway. NULL is fine. */
void reclaim_close(struct reclaim *reclaim);

/* The range is no longer needed; from now on at most lag_nbytes or so may be pending. */
void reclaim_add(struct reclaim *reclaim, uint32_t file, uint64_t offset, uint64_t nbytes,
		 uint64_t lag_nbytes);

/* Give back everything that is pending. Returns whether there was anything. */
bool reclaim_drain(struct reclaim *reclaim);
