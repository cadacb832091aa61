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

enum adaptive_method {
	METHOD_DEFAULT,
	METHOD_SECOND,
	METHOD_THIRD,
	N_METHODS
}; /* what is usual is tried first */

/* Sets of ways. */
enum {
	METHOD_MASK_DEFAULT = 1 << METHOD_DEFAULT,
	METHOD_MASK_SECOND = 1 << METHOD_SECOND,
	METHOD_MASK_THIRD = 1 << METHOD_THIRD
};

struct adaptive {
	pthread_mutex_t lock;
	/* Under the lock. */
	struct {
		uint32_t n_started;
		uint32_t n_since_trial; /* times that another one was taken, since it was tried */
		double nbytes, ns; /* that were moved, and what it took; older ones count less */
	} methods[N_METHODS];
};

void adaptive_init(struct adaptive *adaptive);
void adaptive_destroy(struct adaptive *adaptive);

/* The way to go now, of a set of those that are possible. Thread-safe, as the next. */
enum adaptive_method adaptive_choose(struct adaptive *adaptive, unsigned available);

/* nbytes have gone that way, in ns nanoseconds. */
void adaptive_record(struct adaptive *adaptive, enum adaptive_method method, uint64_t nbytes,
		     uint64_t ns);
