/*
 * rendezvous.h - a byte channel between two threads without a buffer
 *
 * The inner side waits with memory: a buffer to be filled, or data to be fetched. The outer side
 * comes with memory of any size and copies.
 *
 *	outer (drives)				inner (waits)
 *	rendezvous_put(data)	-- copies -->	rendezvous_receive(buffer), until it is full
 *	rendezvous_get(buffer)	<-- copies --	rendezvous_send(data), until all is fetched
 *
 * Every byte is copied once, nothing is buffered, and a thread is woken once for each piece of the
 * inner side, which is long. A rendezvous goes one way. It is ended (no more data follows) or
 * failed (both sides get the error at once; the first error stays). Each side is used by one thread
 * at a time; any thread may end or fail it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct rendezvous {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by the lock. */
	unsigned char *pending; /* of the waiting inner side; NULL: it does not wait */
	size_t pending_nbytes;
	bool ended;
	int error; /* 0 or the error it failed with */
};

void rendezvous_init(struct rendezvous *rendezvous);
void rendezvous_destroy(struct rendezvous *rendezvous);

/*
 * Transfer all nbytes. Return 0, or the error if the rendezvous failed, or -EPIPE if it has ended.
 */
int rendezvous_put(struct rendezvous *rendezvous, const void *data, size_t nbytes);
int rendezvous_send(struct rendezvous *rendezvous, const void *data, size_t nbytes);

/* Transfer nbytes, or less only if the rendezvous ends. Return 0, or the error if it failed. */
int rendezvous_get(struct rendezvous *rendezvous, void *buffer, size_t nbytes, size_t *ret_nbytes);
int rendezvous_receive(struct rendezvous *rendezvous, void *buffer, size_t nbytes,
		       size_t *ret_nbytes);

/* End the rendezvous: no more data follows. */
void rendezvous_end(struct rendezvous *rendezvous);
/* Fail the rendezvous with r, a negative errno, unless it has failed before. */
void rendezvous_fail(struct rendezvous *rendezvous, int r);
