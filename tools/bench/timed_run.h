/*
 * timed_run - run a program to its end and say what it cost
 */
#pragma once

#include <stdint.h>

struct run_cost {
	uint64_t elapsed_ns;
	uint64_t cpu_ns;          /* of all its threads, in the program and in the system for it */
	uint64_t peak_rss_nbytes; /* of the largest of its processes */
};

/*
 * Run argv[0], looked up in $PATH, with argv (which ends with NULL) and empty standard input, and
 * wait for it. Returns 0; or a negative errno after a message: it could not be started, or its exit
 * status was not 0.
 */
int timed_run(const char *const *argv, struct run_cost *ret_cost);
