/*
 * rendezvous - bytes that go from one thread to another, without a buffer in between (see rendezvous.h)
 *
 * The copy is made under the lock. The side that waits has nothing else to do, and whoever makes
 * the handover fail waits for a copy at most, after which nobody touches that memory any more.
 */
#include "src/base/rendezvous.h"

#include <errno.h>
#include <string.h>

void handover_init(struct handover *handover)
{
	*handover = (struct handover){ .at = NULL };
	pthread_mutex_init(&handover->lock, NULL);
	pthread_cond_init(&handover->changed, NULL);
}

void handover_destroy(struct handover *handover)
{
	pthread_cond_destroy(&handover->changed);
	pthread_mutex_destroy(&handover->lock);
}

/* --- the outer side --- */

/* Under the lock: wait until the inner side waits, too. False: it has ended, or failed. */
static bool meet(struct handover *handover)
{
	while (!handover->at && !handover->has_ended && handover->r == 0)
		pthread_cond_wait(&handover->changed, &handover->lock);
	return handover->r == 0 && handover->at;
}

/* Under the lock: so much of what the inner side waits with has been copied. */
static void pass(struct handover *handover, size_t nbytes)
{
	handover->at += nbytes;
	handover->left -= nbytes;
	if (handover->left == 0) {
		handover->at = NULL;
		pthread_cond_broadcast(&handover->changed);
	}
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

int handover_put(struct handover *handover, const void *data, size_t nbytes)
{
	const unsigned char *from = data;
	int r;

	pthread_mutex_lock(&handover->lock);
	while (nbytes > 0 && !handover->has_ended && meet(handover)) {
		const size_t n = least(nbytes, handover->left);

		memcpy(handover->at, from, n);
		pass(handover, n);
		from += n;
		nbytes -= n;
	}
	r = handover->r < 0 ? handover->r : nbytes ? -EPIPE : 0;
	pthread_mutex_unlock(&handover->lock);
	return r;
}

int handover_get(struct handover *handover, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	unsigned char *to = buffer;
	size_t got = 0;
	int r;

	pthread_mutex_lock(&handover->lock);
	while (got < nbytes && meet(handover)) {
		const size_t n = least(nbytes - got, handover->left);

		memcpy(to + got, handover->at, n);
		pass(handover, n);
		got += n;
	}
	r = handover->r;
	pthread_mutex_unlock(&handover->lock);
	if (r == 0)
		*ret_nbytes = got;
	return r;
}

/* --- the inner side --- */

/*
 * Wait with nbytes until they have gone over. *ret_left: of them not, as it has ended. What was
 * given before the end is received, whoever comes first.
 */
static int wait_with(struct handover *handover, void *memory, size_t nbytes, size_t *ret_left)
{
	int r;

	*ret_left = 0;
	if (nbytes == 0)
		return 0;
	pthread_mutex_lock(&handover->lock);
	handover->at = memory;
	handover->left = nbytes;
	pthread_cond_broadcast(&handover->changed);
	while (handover->at && !handover->has_ended && handover->r == 0)
		pthread_cond_wait(&handover->changed, &handover->lock);
	*ret_left = handover->at ? handover->left : 0;
	handover->at = NULL;
	r = handover->r;
	pthread_mutex_unlock(&handover->lock);
	return r;
}

int handover_receive(struct handover *handover, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	size_t left;
	const int r = wait_with(handover, buffer, nbytes, &left);

	if (r == 0)
		*ret_nbytes = nbytes - left;
	return r;
}

int handover_send(struct handover *handover, const void *data, size_t nbytes)
{
	size_t left;
	const int r = wait_with(handover, (void *)data, nbytes, &left); /* only read by get */

	return r == 0 && left ? -EPIPE : r;
}

/* --- either --- */

void handover_end(struct handover *handover)
{
	pthread_mutex_lock(&handover->lock);
	handover->has_ended = true;
	pthread_cond_broadcast(&handover->changed);
	pthread_mutex_unlock(&handover->lock);
}

void handover_fail(struct handover *handover, int r)
{
	pthread_mutex_lock(&handover->lock);
	if (handover->r == 0)
		handover->r = r;
	pthread_cond_broadcast(&handover->changed);
	pthread_mutex_unlock(&handover->lock);
}
