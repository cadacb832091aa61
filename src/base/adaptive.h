/*
 * adaptive - one of several ways to do the same thing, whichever is found to be faster
 *
 * Which one is, is not known beforehand. Writing a file through the page cache is a copy, at the
 * speed of memory while there are pages at hand, and much slower where they first have to be found
 * and cleared, or to be had from a virtual machine's host; writing directly runs at the speed of
 * the disk, and costs no processor. So all are tried and timed, and then the fastest one is taken.
 * Another is tried again from time to time, the less often the slower it was: what trying costs
 * is a thirtieth at most, of each.
 *
 * Not all at once, in proportion: a direct write into a file waits for those through the cache,
 * and these for it.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

enum way { WAY_USUAL, WAY_OTHER, WAY_THIRD, N_WAYS }; /* what is usual is tried first */

/* Sets of ways. */
enum { WAYS_USUAL = 1 << WAY_USUAL, WAYS_OTHER = 1 << WAY_OTHER, WAYS_THIRD = 1 << WAY_THIRD };

struct ways {
	pthread_mutex_t lock;
	/* Under the lock. */
	struct {
		uint32_t n_begun;
		uint32_t n_since;  /* times that another one was taken, since it was tried */
		double nbytes, ns; /* that were moved, and what it took; older ones count less */
	} of[N_WAYS];
};

void ways_init(struct ways *ways);
void ways_destroy(struct ways *ways);

/* The way to go now, of a set of those that are possible. Thread-safe, as the next. */
enum way ways_choose(struct ways *ways, unsigned possible);

/* nbytes have gone that way, in ns nanoseconds. */
void ways_note(struct ways *ways, enum way way, uint64_t nbytes, uint64_t ns);
