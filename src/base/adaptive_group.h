/*
 * adaptive_group - one of several ways for many threads at once, whichever is found to be faster
 *
 * For ways that hinder each other: as long as some write() into a file that others have mapped,
 * both are slow, and a rate that is seen then says nothing of either way alone. So all threads go
 * the same way for a while, and what all of them have moved then is its rate. At first each
 * way is tried, the last one first; then the fastest is taken, and the others are tried again the
 * less often the slower they were.
 */
#pragma once

#include <stdbool.h>

#include "src/base/adaptive.h"

struct adaptive_group {
	pthread_mutex_t lock;
	/* Under the lock. */
	enum adaptive_method method; /* of all, now */
	unsigned available;          /* what was possible at last */
	unsigned default_methods;    /* to be the fastest, before any is known; 0: none is */
	uint64_t turn_start_ns;      /* 0: nobody has begun */
	uint64_t nbytes;             /* moved since */
	bool is_timed;               /* nobody is on another way any more */
	double rates[N_METHODS];     /* bytes per nanosecond, when it was last tried; 0: never */
	double n_since_trial[N_METHODS];
};

void adaptive_group_init(struct adaptive_group *group);
void adaptive_group_destroy(struct adaptive_group *group);

/*
 * These are known to be the fastest, as far as can be known before: the others are not tried at the
 * beginning, but when their time has come as if they were as fast. 0: none is, after all.
 */
void adaptive_group_set_default(struct adaptive_group *group, unsigned default_methods);

/* The way to go now, of a set of those that are possible (adaptive.h). Thread-safe, as the next. */
enum adaptive_method adaptive_group_choose(struct adaptive_group *group, unsigned available,
					   uint64_t now_ns);

/* nbytes have gone that way, and it is now_ns. */
void adaptive_group_record(struct adaptive_group *group, enum adaptive_method method,
			   uint64_t nbytes, uint64_t now_ns);
