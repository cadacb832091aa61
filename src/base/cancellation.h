/*
 * cancellation.h - a request by another thread to end a job
 *
 * Any thread may request cancellation at any time. The job checks for it regularly, and registers a
 * function that wakes threads which wait for something that may never come.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cancellation {
	atomic_bool is_requested;
	pthread_mutex_t lock;
	/* Protected by the lock. */
	void (*wake)(void *context); /* may be NULL */
	void *context;
};

void cancellation_init(struct cancellation *cancellation);
void cancellation_destroy(struct cancellation *cancellation);

/* Request cancellation and wake waiting threads. Thread-safe; may be called repeatedly. */
void cancellation_request(struct cancellation *cancellation);

/*
 * Set a function that is called when cancellation is requested, by any thread, and at once if it
 * was requested before. Not called after cancellation_clear_wakeup() returns. cancellation may be
 * NULL: nothing is ever cancelled. The same holds below.
 */
void cancellation_set_wakeup(struct cancellation *cancellation, void (*wake)(void *context),
			     void *context);
void cancellation_clear_wakeup(struct cancellation *cancellation);

/* Return whether cancellation was requested, without a message. */
static inline bool cancellation_is_requested(const struct cancellation *cancellation)
{
	return cancellation && atomic_load(&cancellation->is_requested);
}

/* Returns -ECANCELED after a message if cancellation was requested, else 0. */
int cancellation_check(const struct cancellation *cancellation);
