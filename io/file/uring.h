/*
 * uring - what a table of calls has for rings, of liburing (see file.h)
 *
 * Only where there is one: HAVE_URING.
 */
#pragma once

#include <stdbool.h>

struct io_uring;

/* Members of struct syscalls: ring_init, ring_submit and ring_take. */
int uring_init(unsigned n_entries, struct io_uring *ring);
int uring_submit(struct io_uring *ring);
int uring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved);
