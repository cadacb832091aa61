/*
 * io_queue - transfers that happen while the caller does something else
 *
 * A request is a whole transfer at an offset, to or from memory of the caller: short ones are
 * continued and EINTR is retried, as in file.h. Requests are submitted in any number and from any
 * thread; at most `depth` of them are under way at a time, the others wait for their turn. A queue
 * has no buffers of its own, so it takes no memory that a plan would have to know of.
 *
 *	submit(requests, n)  ->  (something else)  ->  wait(request) for each
 *
 * Behind a queue is one of two engines. io_uring lets the kernel carry transfers out past the page
 * cache with no thread at all. Threads do the same with pread and pwrite wherever io_uring is
 * absent or forbidden (a container's seccomp filter, sysctl kernel.io_uring_disabled), and are
 * better for what is in the page cache: there a transfer is a copy, which io_uring does on the
 * submitter's processor.
 *
 * Nothing here prints.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

struct io_queue;

struct io_request {
	/* Set by the caller, who leaves all of it alone until it has been waited for. */
	const struct file *file;
	bool is_write;
	uint64_t offset;
	void *buffer;  /* only read by a write */
	size_t nbytes; /* at least 1 */

	/* The queue's. */
	int r;
	bool is_done;
	size_t n_done;
	struct io_request *next;
};

enum io_queue_kind {
	IO_QUEUE_THREADS,
	IO_QUEUE_URING, /* or threads, where it cannot be had */
};

/*
 * A queue with at most `depth` (1 to 256) requests under way. Returns 0 and a queue to
 * io_queue_close(), -ENOMEM, or -EAGAIN when no thread can be started.
 */
int io_queue_open(const struct syscalls *calls, enum io_queue_kind kind, unsigned depth,
		  struct io_queue **ret_queue);

/* NULL is fine. All requests must have been waited for. */
void io_queue_close(struct io_queue *queue);

/* "io_uring" or "threads": what it came to. */
const char *io_queue_engine_name(const struct io_queue *queue);

/* Does not wait for room. Every request must be waited for. Thread-safe. */
void io_queue_submit(struct io_queue *queue, struct io_request *requests, size_t n);

/*
 * Wait for one request; by one thread, in any order of requests. Returns what file_read_at() or
 * file_write_at() would.
 */
int io_queue_wait(struct io_queue *queue, struct io_request *request);

/*
 * What an engine is: io_queue.c knows which one a queue has, and no more.
 */
struct io_queue_engine {
	const char *name;
	int (*open)(const struct syscalls *calls, unsigned depth, struct io_queue **ret_queue);
	void (*close)(struct io_queue *queue);
	void (*submit)(struct io_queue *queue, struct io_request *requests, size_t n);
	int (*wait)(struct io_queue *queue, struct io_request *request);
};

/* What every engine's queue begins with. */
struct io_queue {
	const struct io_queue_engine *engine;
};

extern const struct io_queue_engine io_queue_threads;
extern const struct io_queue_engine io_queue_uring; /* its open returns -ENOSYS if left out */
