/*
 * io_queue_threads - requests carried out by threads (see io_queue.h)
 *
 * One list, in the order of submission; as many threads as may be under way at a time, up to what
 * any disk or memory needs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/file/io_queue.h"
#include "src/base/thread.h"

enum { MOST_THREADS = 16 };

struct thread_queue {
	struct io_queue base;

	pthread_mutex_t lock;
	pthread_cond_t submitted, done;
	/* Under the lock. */
	struct io_request *first, **end; /* waiting for a thread */
	bool closing;

	unsigned n_threads;
	pthread_t threads[];
};

static int carry_out(const struct io_request *request)
{
	return request->is_write ? file_write_at(request->file, request->offset, request->buffer,
						 request->nbytes) :
				   file_read_at(request->file, request->offset, request->buffer,
						request->nbytes);
}

/* Under the lock: the request that is next, NULL once there will be none. */
static struct io_request *take(struct thread_queue *queue)
{
	struct io_request *request;

	while (!queue->first && !queue->closing)
		pthread_cond_wait(&queue->submitted, &queue->lock);
	request = queue->first;
	if (request)
		queue->first = request->next;
	if (!queue->first)
		queue->end = &queue->first;
	return request;
}

static void *thread_main(void *argument)
{
	struct thread_queue *queue = argument;
	struct io_request *request;

	pthread_mutex_lock(&queue->lock);
	while ((request = take(queue))) {
		int r;

		pthread_mutex_unlock(&queue->lock);
		r = carry_out(request);
		pthread_mutex_lock(&queue->lock);
		request->r = r;
		request->is_done = true;
		pthread_cond_broadcast(&queue->done);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

static void threads_close(struct io_queue *base)
{
	struct thread_queue *queue = (struct thread_queue *)base;

	pthread_mutex_lock(&queue->lock);
	queue->closing = true;
	pthread_cond_broadcast(&queue->submitted);
	pthread_mutex_unlock(&queue->lock);
	for (unsigned i = 0; i < queue->n_threads; i++)
		pthread_join(queue->threads[i], NULL);
	pthread_cond_destroy(&queue->done);
	pthread_cond_destroy(&queue->submitted);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static int threads_open(const struct syscalls *calls, unsigned depth, struct io_queue **ret_queue)
{
	const unsigned n = depth < MOST_THREADS ? depth : MOST_THREADS;
	struct thread_queue *queue = calloc(1, sizeof *queue + n * sizeof queue->threads[0]);
	int r = 0;

	(void)calls; /* every request's file has it */
	if (!queue)
		return -ENOMEM;
	queue->base.engine = &io_queue_threads;
	queue->end = &queue->first;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->submitted, NULL);
	pthread_cond_init(&queue->done, NULL);
	for (; queue->n_threads < n && r == 0; queue->n_threads += r == 0)
		r = thread_start(thread_main, queue, 0, &queue->threads[queue->n_threads]);
	/* Fewer than wished are enough. */
	if (queue->n_threads == 0) {
		threads_close(&queue->base);
		return r;
	}
	*ret_queue = &queue->base;
	return 0;
}

static void threads_submit(struct io_queue *base, struct io_request *requests, size_t n)
{
	struct thread_queue *queue = (struct thread_queue *)base;

	pthread_mutex_lock(&queue->lock);
	*queue->end = requests;
	queue->end = &requests[n - 1].next;
	if (n == 1)
		pthread_cond_signal(&queue->submitted);
	else
		pthread_cond_broadcast(&queue->submitted);
	pthread_mutex_unlock(&queue->lock);
}

static int threads_wait(struct io_queue *base, struct io_request *request)
{
	struct thread_queue *queue = (struct thread_queue *)base;

	pthread_mutex_lock(&queue->lock);
	while (!request->is_done)
		pthread_cond_wait(&queue->done, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
	return request->r;
}

const struct io_queue_engine io_queue_threads = {
	.name = "threads",
	.open = threads_open,
	.close = threads_close,
	.submit = threads_submit,
	.wait = threads_wait,
};
