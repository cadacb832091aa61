/*
 * bounded_queue - a bounded queue of pointers between the stages of a pipeline (see
 * bounded_queue.h)
 */
#include "src/base/bounded_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct bounded_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t capacity, head, n_items;
	bool finished;
	int error; /* 0 or the first failure */
	void *items[];
};

int bounded_queue_open(size_t capacity, struct bounded_queue **ret_queue)
{
	struct bounded_queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->items[0]);

	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	queue->capacity = capacity;
	*ret_queue = queue;
	return 0;
}

void bounded_queue_close(struct bounded_queue *queue)
{
	if (!queue)
		return;
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

int bounded_queue_push(struct bounded_queue *queue, void *item)
{
	int r;

	pthread_mutex_lock(&queue->lock);
	while (queue->n_items == queue->capacity && !queue->error && !queue->finished)
		pthread_cond_wait(&queue->changed, &queue->lock);
	r = queue->error ? queue->error : queue->finished ? -EPIPE : 0;
	if (r == 0) {
		queue->items[(queue->head + queue->n_items++) % queue->capacity] = item;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->lock);
	return r;
}

int bounded_queue_pop(struct bounded_queue *queue, void **ret_item)
{
	int r;

	pthread_mutex_lock(&queue->lock);
	while (queue->n_items == 0 && !queue->error && !queue->finished)
		pthread_cond_wait(&queue->changed, &queue->lock);
	r = queue->error ? queue->error : queue->n_items == 0 ? -ENODATA : 0;
	if (r == 0) {
		*ret_item = queue->items[queue->head];
		queue->head = (queue->head + 1) % queue->capacity;
		queue->n_items--;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->lock);
	return r;
}

void bounded_queue_finish(struct bounded_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->finished = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

void bounded_queue_fail(struct bounded_queue *queue, int r)
{
	pthread_mutex_lock(&queue->lock);
	if (!queue->error)
		queue->error = r;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}
