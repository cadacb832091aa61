/*
 * cancellation.c - a request by another thread to end a job (see cancellation.h)
 */
#include "src/base/cancellation.h"

#include <errno.h>
#include <stddef.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

void cancellation_init(struct cancellation *cancellation)
{
	atomic_init(&cancellation->is_requested, false);
	pthread_mutex_init(&cancellation->lock, NULL);
	cancellation->wake = NULL;
	cancellation->context = NULL;
}

void cancellation_destroy(struct cancellation *cancellation)
{
	pthread_mutex_destroy(&cancellation->lock);
}

void cancellation_request(struct cancellation *cancellation)
{
	SCOPED_LOCK(&cancellation->lock);
	atomic_store(&cancellation->is_requested, true);
	if (cancellation->wake)
		cancellation->wake(cancellation->context);
}

void cancellation_set_wakeup(struct cancellation *cancellation, void (*wake)(void *context),
			     void *context)
{
	if (!cancellation)
		return;
	SCOPED_LOCK(&cancellation->lock);
	cancellation->wake = wake;
	cancellation->context = context;
	if (atomic_load(&cancellation->is_requested))
		wake(context);
}

void cancellation_clear_wakeup(struct cancellation *cancellation)
{
	if (!cancellation)
		return;
	SCOPED_LOCK(&cancellation->lock);
	cancellation->wake = NULL;
}

int cancellation_check(const struct cancellation *cancellation)
{
	return cancellation_is_requested(cancellation) ? fail(-ECANCELED, "cancelled") : 0;
}
