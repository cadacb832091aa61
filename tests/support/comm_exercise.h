/*
 * comm_exercise - everything that ranks can do with each other, once
 *
 * Every rank calls it. What arrives is compared with what must have been sent.
 */
#pragma once

#include <stddef.h>

struct comm;

/*
 * long_nbytes: how long messages are at most. Returns 0, or a negative errno: the first of
 * comm.h, or -EILSEQ after fail() if something else arrived than was sent.
 */
int comm_exercise(struct comm *comm, size_t max_nbytes);
