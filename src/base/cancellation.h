/*
 * cancellation - somebody else wants a job to end
 *
 * Who cancels may be any thread, at any time. Who works asks now and then; and says how those are
 * woken who wait for what may never come.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

struct cancellation {
	atomic_bool is_requested;
	pthread_mutex_t lock;
	/* Under the lock. */
	void (*wake)(void *context); /* NULL: nobody need be woken */
	void *context;
};

void cancellation_init(struct cancellation *cancellation);
void cancellation_destroy(struct cancellation *cancellation);

/* From now on it is due; who waits is woken. Any thread, once more is fine. */
void cancellation_request(struct cancellation *cancellation);

/*
 * When it becomes due, and at once if it is, wake(context) is called, by any thread; after
 * cancellation_clear_wakeup() not any more. cancellation: NULL: nobody cancels; so below.
 */
void cancellation_set_wakeup(struct cancellation *cancellation, void (*wake)(void *context),
			     void *context);
void cancellation_clear_wakeup(struct cancellation *cancellation);

/* Is it due? -ECANCELED after a message, or 0. */
int cancellation_check(const struct cancellation *cancellation);
