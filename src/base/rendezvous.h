/*
 * rendezvous - bytes that go from one thread to another, without a buffer in between
 *
 * One side waits with memory: the inner one, with a buffer that is to be filled, or data that is to
 * be fetched. The outer one comes with memory of its own, of any size, and copies.
 *
 *	outer, who drives			inner, who waits
 *	rendezvous_put(data)	-- copies -->	rendezvous_receive(buffer), until that is full
 *	rendezvous_get(buffer)	<-- copies --	rendezvous_send(data), until all of it is fetched
 *
 * So every byte is copied once, nothing is kept, and a thread is woken for each piece of the inner
 * side's, which are long. A rendezvous goes one way, and ends in one of two ways: ended (what was
 * given has been all) or failed (everybody gets the error at once; the first stays). One thread at
 * a time on the outer side, and one on the inner; ending and failing any.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct rendezvous {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	unsigned char *pending; /* what the inner side waits with; NULL: nobody waits */
	size_t pending_nbytes;
	bool ended;
	int error; /* why it has failed, or 0 */
};

void rendezvous_init(struct rendezvous *rendezvous);
void rendezvous_destroy(struct rendezvous *rendezvous);

/*
 * All nbytes have gone over when these return 0; the error, if it has failed. put: -EPIPE after the
 * end.
 */
int rendezvous_put(struct rendezvous *rendezvous, const void *data, size_t nbytes);
int rendezvous_send(struct rendezvous *rendezvous, const void *data, size_t nbytes);

/* The same; *ret_nbytes is less only at the end. */
int rendezvous_get(struct rendezvous *rendezvous, void *buffer, size_t nbytes, size_t *ret_nbytes);
int rendezvous_receive(struct rendezvous *rendezvous, void *buffer, size_t nbytes,
		       size_t *ret_nbytes);

/* Nothing more will be given. */
void rendezvous_end(struct rendezvous *rendezvous);
/* r: a negative errno. */
void rendezvous_fail(struct rendezvous *rendezvous, int r);
