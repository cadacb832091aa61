/*
 * comm_exercise.h - use each operation of a communicator once
 *
 * Collective. Compares received data with the data that must have been sent.
 */
#pragma once

#include <stddef.h>

struct comm;

/*
 * Messages have up to long_nbytes. Returns 0, the first error of comm.h, or -EILSEQ (reported) if
 * the received data is wrong.
 */
int comm_exercise(struct comm *comm, size_t max_nbytes);
