/*
 * io_queue - asynchronous transfers (see io_queue.h)
 *
 * The requests are in one list, in the order of submission. Up to MAX_THREADS threads process it,
 * which is enough for any disk: 8 transfers in flight reach the throughput of io_uring.
 */
#include "io/file/io_queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/thread.h"
#include "src/base/thread_pool.h"

enum { MAX_THREADS = 16 };

struct io_queue {
	struct workers workers;
	pthread_cond_t done;
	/* Guarded by the lock. */
	struct io_request *first, **end; /* requests that wait for a thread */
	unsigned n_waiting;              /* number of these requests */
	unsigned n_idle;                 /* threads that wait for a request */
};

/* Remove the first request and run it. Requires the lock, and releases it during the transfer. */
static void run_first(struct io_queue *queue)
{
	struct io_request *request = queue->first;
	int r;

	queue->first = request->next;
	queue->n_waiting--;
	if (!queue->first)
		queue->end = &queue->first;
	pthread_mutex_unlock(&queue->workers.lock);
	r = request->is_write ?
		    file_write_at(request->file, request->offset, request->buffer,
				  request->nbytes) :
		    file_read_at(request->file, request->offset, request->buffer, request->nbytes);
	pthread_mutex_lock(&queue->workers.lock);
	request->r = r;
	request->is_done = true;
	pthread_cond_broadcast(&queue->done);
}

static void *thread_main(void *argument)
{
	struct io_queue *queue = argument;

	SCOPED_LOCK(&queue->workers.lock);
	for (;;) {
		while (!queue->first && !queue->workers.closing) {
			queue->n_idle++;
			pthread_cond_wait(&queue->workers.changed, &queue->workers.lock);
			queue->n_idle--;
		}
		if (!queue->first)
			break;
		run_first(queue);
	}
	return NULL;
}

int io_queue_open(struct io_queue **ret_queue)
{
	struct io_queue *queue = calloc(1, sizeof *queue);

	if (!queue)
		return -ENOMEM;
	queue->end = &queue->first;
	workers_open(&queue->workers);
	pthread_cond_init(&queue->done, NULL);
	*ret_queue = queue;
	return 0;
}

void io_queue_close(struct io_queue *queue)
{
	if (!queue)
		return;
	workers_close(&queue->workers);
	pthread_cond_destroy(&queue->done);
	free(queue);
}

/* Start threads for the requests that idle threads do not run. Requires the lock. */
static void start_threads(struct io_queue *queue)
{
	const unsigned n_possible = MAX_THREADS - queue->workers.threads.n_threads;
	const unsigned n_missing =
		queue->n_waiting > queue->n_idle ? queue->n_waiting - queue->n_idle : 0;

	(void)thread_group_start(&queue->workers.threads,
				 n_missing < n_possible ? n_missing : n_possible, thread_main,
				 queue, NULL);
}

void io_queue_submit(struct io_queue *queue, struct io_request *requests, size_t n)
{
	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		assert(requests[i].nbytes > 0);
		requests[i].r = 0;
		requests[i].is_done = false;
		requests[i].next = i + 1 < n ? &requests[i + 1] : NULL;
	}
	SCOPED_LOCK(&queue->workers.lock);
	*queue->end = requests;
	queue->end = &requests[n - 1].next;
	queue->n_waiting += (unsigned)n;
	start_threads(queue);
	if (n == 1)
		pthread_cond_signal(&queue->workers.changed);
	else
		pthread_cond_broadcast(&queue->workers.changed);
	/* Without any thread the caller runs the requests itself. */
	while (queue->workers.threads.n_threads == 0 && queue->first)
		run_first(queue);
}

int io_queue_wait(struct io_queue *queue, struct io_request *request)
{
	SCOPED_LOCK(&queue->workers.lock);
	while (!request->is_done)
		pthread_cond_wait(&queue->done, &queue->workers.lock);
	return request->r;
}
