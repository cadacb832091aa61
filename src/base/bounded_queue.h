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

struct bounded_queue;

/* A ring of `capacity` places. 0, or -ENOMEM without a message. */
int bounded_queue_open(size_t capacity, struct bounded_queue **ret_queue);
/* Nobody may be in it. What it still holds is not freed. NULL is fine. */
void bounded_queue_close(struct bounded_queue *queue);

/* Waits for a place. 0; the ring's error when it failed; -EPIPE when it was finished. */
int bounded_queue_push(struct bounded_queue *queue, void *item);
/* Waits for an item. 0; -ENODATA when finished and empty; the ring's error when it failed. */
int bounded_queue_pop(struct bounded_queue *queue, void **ret_item);

/* Nothing more will be pushed. */
void bounded_queue_finish(struct bounded_queue *queue);
/* r: a negative errno. */
void bounded_queue_fail(struct bounded_queue *queue, int r);
