/*
 * two_ways - one of two ways to do the same thing, whichever is found to be faster
 *
 * Which one is, is not known beforehand. Writing a file through the page cache is a copy, at the
 * speed of memory while there are pages at hand, and much slower where they first have to be found
 * and cleared, or to be had from a virtual machine's host; writing directly runs at the speed of
 * the disk, and costs no processor. So both are tried and timed, and then the faster one is taken.
 * The other is tried again from time to time, the less often the slower it was: what trying costs
 * is a thirtieth at most.
 *
 * Not both at once, in proportion: a direct write into a file waits for those through the cache,
 * and these for it.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

enum way { WAY_USUAL, WAY_OTHER, N_WAYS }; /* what is usual is tried first */

struct two_ways {
	pthread_mutex_t lock;
	/* Under the lock. */
	struct {
		uint32_t n_begun;
		double nbytes, ns; /* that were moved, and what it took; older ones count less */
	} of[N_WAYS];
	uint32_t n_since_trial; /* times that the faster way was taken */
};

void two_ways_init(struct two_ways *ways);
void two_ways_destroy(struct two_ways *ways);

/* The way to go now. Thread-safe, as the next. */
enum way two_ways_choose(struct two_ways *ways);

/* nbytes have gone that way, in ns nanoseconds. */
void two_ways_note(struct two_ways *ways, enum way way, uint64_t nbytes, uint64_t ns);
