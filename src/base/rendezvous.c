/*
 * rendezvous.c - a byte channel between two threads without a buffer (see rendezvous.h)
 *
 * Bytes are copied with the lock held: the waiting side has nothing else to do. So after
 * rendezvous_fail() returns, no thread touches the other side's memory.
 */
#include "src/base/rendezvous.h"

#include <errno.h>
#include <string.h>

#include "src/base/int_math.h"
#include "src/base/thread.h"

void rendezvous_init(struct rendezvous *rendezvous)
{
	*rendezvous = (struct rendezvous){ .pending = NULL };
	pthread_mutex_init(&rendezvous->lock, NULL);
	pthread_cond_init(&rendezvous->changed, NULL);
}

void rendezvous_destroy(struct rendezvous *rendezvous)
{
	pthread_cond_destroy(&rendezvous->changed);
	pthread_mutex_destroy(&rendezvous->lock);
}

/* --- the outer side --- */

/*
 * Wait until the inner side waits. Returns false if the rendezvous ended or failed. Call with the
 * lock held.
 */
static bool wait_for_pending(struct rendezvous *rendezvous)
{
	while (!rendezvous->pending && !rendezvous->ended && rendezvous->error == 0)
		pthread_cond_wait(&rendezvous->changed, &rendezvous->lock);
	return rendezvous->error == 0 && rendezvous->pending;
}

/* Advance the inner side's memory by the number of bytes copied. Call with the lock held. */
static void consume_pending(struct rendezvous *rendezvous, size_t nbytes)
{
	rendezvous->pending += nbytes;
	rendezvous->pending_nbytes -= nbytes;
	if (rendezvous->pending_nbytes == 0) {
		rendezvous->pending = NULL;
		pthread_cond_broadcast(&rendezvous->changed);
	}
}

int rendezvous_put(struct rendezvous *rendezvous, const void *data, size_t nbytes)
{
	const unsigned char *from = data;

	SCOPED_LOCK(&rendezvous->lock);
	while (nbytes > 0 && !rendezvous->ended && wait_for_pending(rendezvous)) {
		const size_t n = u64_min(nbytes, rendezvous->pending_nbytes);

		memcpy(rendezvous->pending, from, n);
		consume_pending(rendezvous, n);
		from += n;
		nbytes -= n;
	}
	return rendezvous->error < 0 ? rendezvous->error : nbytes ? -EPIPE : 0;
}

int rendezvous_get(struct rendezvous *rendezvous, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	unsigned char *to = buffer;
	size_t n_copied = 0;
	int r;

	pthread_mutex_lock(&rendezvous->lock);
	while (n_copied < nbytes && wait_for_pending(rendezvous)) {
		const size_t n = u64_min(nbytes - n_copied, rendezvous->pending_nbytes);

		memcpy(to + n_copied, rendezvous->pending, n);
		consume_pending(rendezvous, n);
		n_copied += n;
	}
	r = rendezvous->error;
	pthread_mutex_unlock(&rendezvous->lock);
	if (r == 0)
		*ret_nbytes = n_copied;
	return r;
}

/* --- the inner side --- */

/*
 * Offer nbytes of memory and wait until they are transferred. *ret_remaining: what was not, because
 * the rendezvous ended. Data given before the end is always received.
 */
static int wait_until_consumed(struct rendezvous *rendezvous, void *memory, size_t nbytes,
			       size_t *ret_remaining)
{
	*ret_remaining = 0;
	if (nbytes == 0)
		return 0;
	SCOPED_LOCK(&rendezvous->lock);
	rendezvous->pending = memory;
	rendezvous->pending_nbytes = nbytes;
	pthread_cond_broadcast(&rendezvous->changed);
	while (rendezvous->pending && !rendezvous->ended && rendezvous->error == 0)
		pthread_cond_wait(&rendezvous->changed, &rendezvous->lock);
	*ret_remaining = rendezvous->pending ? rendezvous->pending_nbytes : 0;
	rendezvous->pending = NULL;
	return rendezvous->error;
}

int rendezvous_receive(struct rendezvous *rendezvous, void *buffer, size_t nbytes,
		       size_t *ret_nbytes)
{
	size_t remaining;
	const int r = wait_until_consumed(rendezvous, buffer, nbytes, &remaining);

	if (r == 0)
		*ret_nbytes = nbytes - remaining;
	return r;
}

int rendezvous_send(struct rendezvous *rendezvous, const void *data, size_t nbytes)
{
	size_t remaining;
	const int r = wait_until_consumed(rendezvous, (void *)data, nbytes,
					  &remaining); /* rendezvous_get() only reads it */

	return r == 0 && remaining ? -EPIPE : r;
}

/* --- both sides --- */

void rendezvous_end(struct rendezvous *rendezvous)
{
	SCOPED_LOCK(&rendezvous->lock);
	rendezvous->ended = true;
	pthread_cond_broadcast(&rendezvous->changed);
}

void rendezvous_fail(struct rendezvous *rendezvous, int r)
{
	SCOPED_LOCK(&rendezvous->lock);
	if (rendezvous->error == 0)
		rendezvous->error = r;
	pthread_cond_broadcast(&rendezvous->changed);
}
