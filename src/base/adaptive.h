/*
 * adaptive.h - choose the fastest of several equivalent methods by measuring them
 *
 * Which method is fastest is not known beforehand. Writing a file through the page cache costs a
 * copy at memory speed while clean pages are at hand, and much more when pages have to be
 * reclaimed, cleared, or requested from the host of a virtual machine. Direct I/O runs at the speed
 * of the disk and needs no CPU. So each method is tried and timed, and the fastest is used. The
 * others are tried again from time to time, less often the slower they were: retrials cost at most
 * 1/30 for each method.
 *
 * Methods are not mixed in proportion: a direct write into a file waits for cached writes into the
 * same file, and the reverse.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum adaptive_method {
	METHOD_DEFAULT,
	METHOD_SECOND,
	METHOD_THIRD,
	N_METHODS
}; /* the default is tried first */

/* Sets of methods. */
enum {
	METHOD_MASK_DEFAULT = 1 << METHOD_DEFAULT,
	METHOD_MASK_SECOND = 1 << METHOD_SECOND,
	METHOD_MASK_THIRD = 1 << METHOD_THIRD
};

struct adaptive {
	pthread_mutex_t lock;
	/* Protected by the lock. */
	struct {
		uint32_t n_started;
		uint32_t n_since_trial; /* how often another method was chosen since */
		double nbytes, ns;      /* moved, and the time it took; decaying */
	} methods[N_METHODS];
};

void adaptive_init(struct adaptive *adaptive);
void adaptive_destroy(struct adaptive *adaptive);

/* Return the method to use now, one of the set of `available` methods. Thread-safe. */
enum adaptive_method adaptive_choose(struct adaptive *adaptive, unsigned available);

/* Record that a method moved nbytes in ns nanoseconds. Thread-safe. */
void adaptive_record(struct adaptive *adaptive, enum adaptive_method method, uint64_t nbytes,
		     uint64_t ns);

/*
 * A choice for many threads at once, for methods that slow each other down. Example: while some
 * threads write() into a file that others have mapped, both are slow, so a rate measured then says
 * nothing about either method alone. All threads use the same method during a turn, and its rate is
 * what they moved together. At first each method gets a turn, the last one first; later the fastest
 * is used, and the others are tried again, less often the slower they were.
 */
struct adaptive_group {
	pthread_mutex_t lock;
	/* Protected by the lock. */
	enum adaptive_method method; /* the current one of all threads */
	unsigned available;          /* in the last call */
	unsigned default_methods; /* presumed to be the fastest before any is measured; 0: none */
	uint64_t turn_start_ns;   /* 0: not started */
	uint64_t nbytes;          /* moved in this turn */
	bool is_timed;            /* no thread uses another method any more */
	double rates[N_METHODS];  /* bytes per nanosecond, measured in the last turn; 0: never */
	double n_since_trial[N_METHODS];
};

void adaptive_group_init(struct adaptive_group *group);
void adaptive_group_destroy(struct adaptive_group *group);

/*
 * Presume that these methods are the fastest: the others are not tried at the start, only later, as
 * if they were equally fast. 0: no presumption.
 */
void adaptive_group_set_default(struct adaptive_group *group, unsigned default_methods);

/*
 * Return the method that all threads use now, one of the set of `available` methods. Thread-safe.
 */
enum adaptive_method adaptive_group_choose(struct adaptive_group *group, unsigned available,
					   uint64_t now_ns);

/* Record that the calling thread moved nbytes with a method, at time now_ns. Thread-safe. */
void adaptive_group_record(struct adaptive_group *group, enum adaptive_method method,
			   uint64_t nbytes, uint64_t now_ns);
