/*
 * bounded_queue - a bounded queue of pointers between the stages of a pipeline
 *
 * Stages pass work through rings and block only on a full or an empty one. A ring ends in one of
 * two ways: finished (the producer has no more; consumers get what is left, then -ENODATA) or
 * failed (everybody gets the error at once; the first error stays). A stage that fails fails its
 * rings, so that no other stage waits for it, and every wait has an end.
 *
 * Thread-safe; any number of producers and consumers; first in, first out.
 */
#pragma once

#include <stddef.h>

struct ring;

/* A ring of `capacity` places. 0, or -ENOMEM without a message. */
int ring_open(size_t capacity, struct ring **ret_ring);
/* Nobody may be in it. What it still holds is not freed. NULL is fine. */
void ring_close(struct ring *ring);

/* Waits for a place. 0; the ring's error when it failed; -EPIPE when it was finished. */
int ring_push(struct ring *ring, void *item);
/* Waits for an item. 0; -ENODATA when finished and empty; the ring's error when it failed. */
int ring_pop(struct ring *ring, void **ret_item);

/* Nothing more will be pushed. */
void ring_finish(struct ring *ring);
/* r: a negative errno. */
void ring_fail(struct ring *ring, int r);
