/*
 * io_queue - transfers that happen while the caller does something else (see io_queue.h)
 */
#include "io/file/io_queue.h"

#include <assert.h>
#include <errno.h>

int io_queue_open(const struct syscalls *calls, enum io_queue_kind kind, unsigned depth,
		  struct io_queue **ret_queue)
{
	int r = -ENOSYS;

	assert(depth > 0);
	/* Whatever keeps the ring from being made, threads need nothing of it. */
	if (kind == IO_QUEUE_URING)
		r = io_queue_uring.open(calls, depth, ret_queue);
	if (r < 0)
		r = io_queue_threads.open(calls, depth, ret_queue);
	return r;
}

void io_queue_close(struct io_queue *queue)
{
	if (queue)
		queue->engine->close(queue);
}

const char *io_queue_engine_name(const struct io_queue *queue)
{
	return queue->engine->name;
}

void io_queue_submit(struct io_queue *queue, struct io_request *requests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert(requests[i].nbytes > 0);
		requests[i].r = 0;
		requests[i].is_done = false;
		requests[i].n_done = 0;
		requests[i].next = i + 1 < n ? &requests[i + 1] : NULL;
	}
	if (n > 0)
		queue->engine->submit(queue, requests, n);
}

int io_queue_wait(struct io_queue *queue, struct io_request *request)
{
	return queue->engine->wait(queue, request);
}
