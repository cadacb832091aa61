/*
 * rendezvous - bytes that go from one thread to another, without a buffer in between
 *
 * One side waits with memory: the inner one, with a buffer that is to be filled, or data that is to
 * be fetched. The outer one comes with memory of its own, of any size, and copies.
 *
 *	outer, who drives			inner, who waits
 *	handover_put(data)	-- copies -->	handover_receive(buffer), until that is full
 *	handover_get(buffer)	<-- copies --	handover_send(data), until all of it is fetched
 *
 * So every byte is copied once, nothing is kept, and a thread is woken for each piece of the inner
 * side's, which are long. A handover goes one way, and ends in one of two ways: ended (what was
 * given has been all) or failed (everybody gets the error at once; the first stays). One thread at
 * a time on the outer side, and one on the inner; ending and failing any.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct handover {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	unsigned char *at; /* what the inner side waits with; NULL: nobody waits */
	size_t left;
	bool has_ended;
	int r; /* why it has failed, or 0 */
};

void handover_init(struct handover *handover);
void handover_destroy(struct handover *handover);

/*
 * All nbytes have gone over when these return 0; the error, if it has failed. put: -EPIPE after the
 * end.
 */
int handover_put(struct handover *handover, const void *data, size_t nbytes);
int handover_send(struct handover *handover, const void *data, size_t nbytes);

/* The same; *ret_nbytes is less only at the end. */
int handover_get(struct handover *handover, void *buffer, size_t nbytes, size_t *ret_nbytes);
int handover_receive(struct handover *handover, void *buffer, size_t nbytes, size_t *ret_nbytes);

/* Nothing more will be given. */
void handover_end(struct handover *handover);
/* r: a negative errno. */
void handover_fail(struct handover *handover, int r);
