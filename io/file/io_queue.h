/*
 * io_queue - asynchronous transfers
 *
 * A request is a complete transfer at an offset, to or from memory of the caller. Short transfers
 * are continued and EINTR is retried, as in file.h. Any thread may submit any number of requests.
 * At most 16 of them run at a time; the others wait in the order of submission. A queue has no
 * buffers, so a memory plan need not count it.
 *
 *	submit(requests, n)  ->  (something else)  ->  wait(request) for each
 *
 * Threads run the requests with pread() and pwrite(). They are started when they are needed. If
 * none can be started, io_queue_submit() runs the requests itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

struct io_queue;

struct io_request {
	/* Set by the caller, who must not touch the request until io_queue_wait() returns. */
	const struct file *file;
	bool is_write;
	uint64_t offset;
	void *buffer;  /* only read by a write */
	size_t nbytes; /* at least 1 */

	/* Set by the queue. */
	int r; /* result of the transfer */
	bool is_done;
	struct io_request *next;
};

/* Open a queue. Returns 0, or -ENOMEM, which is not reported. */
int io_queue_open(struct io_queue **ret_queue);

/* Close a queue whose requests have all been waited for. NULL is ignored. */
void io_queue_close(struct io_queue *queue);

/* Submit n requests. Each must be waited for. Thread-safe. */
void io_queue_submit(struct io_queue *queue, struct io_request *requests, size_t n);

/*
 * Wait for a request. Only one thread may wait for each; requests may be waited for in any order.
 * Returns the result of file_read_at() or file_write_at().
 */
int io_queue_wait(struct io_queue *queue, struct io_request *request);
