/*
 * bounded_queue - a bounded queue of pointers between the stages of a pipeline (see bounded_queue.h)
 */
#include "src/base/bounded_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t capacity, first, n;
	bool finished;
	int error; /* 0 or the first failure */
	void *items[];
};

int ring_open(size_t capacity, struct ring **ret_ring)
{
	struct ring *ring = calloc(1, sizeof *ring + capacity * sizeof ring->items[0]);

	if (!ring)
		return -ENOMEM;
	pthread_mutex_init(&ring->lock, NULL);
	pthread_cond_init(&ring->changed, NULL);
	ring->capacity = capacity;
	*ret_ring = ring;
	return 0;
}

void ring_close(struct ring *ring)
{
	if (!ring)
		return;
	pthread_cond_destroy(&ring->changed);
	pthread_mutex_destroy(&ring->lock);
	free(ring);
}

int ring_push(struct ring *ring, void *item)
{
	int r;

	pthread_mutex_lock(&ring->lock);
	while (ring->n == ring->capacity && !ring->error && !ring->finished)
		pthread_cond_wait(&ring->changed, &ring->lock);
	r = ring->error ? ring->error : ring->finished ? -EPIPE : 0;
	if (r == 0) {
		ring->items[(ring->first + ring->n++) % ring->capacity] = item;
		pthread_cond_broadcast(&ring->changed);
	}
	pthread_mutex_unlock(&ring->lock);
	return r;
}

int ring_pop(struct ring *ring, void **ret_item)
{
	int r;

	pthread_mutex_lock(&ring->lock);
	while (ring->n == 0 && !ring->error && !ring->finished)
		pthread_cond_wait(&ring->changed, &ring->lock);
	r = ring->error ? ring->error : ring->n == 0 ? -ENODATA : 0;
	if (r == 0) {
		*ret_item = ring->items[ring->first];
		ring->first = (ring->first + 1) % ring->capacity;
		ring->n--;
		pthread_cond_broadcast(&ring->changed);
	}
	pthread_mutex_unlock(&ring->lock);
	return r;
}

void ring_finish(struct ring *ring)
{
	pthread_mutex_lock(&ring->lock);
	ring->finished = true;
	pthread_cond_broadcast(&ring->changed);
	pthread_mutex_unlock(&ring->lock);
}

void ring_fail(struct ring *ring, int r)
{
	pthread_mutex_lock(&ring->lock);
	if (!ring->error)
		ring->error = r;
	pthread_cond_broadcast(&ring->changed);
	pthread_mutex_unlock(&ring->lock);
}
