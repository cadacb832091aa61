/*
 * io_queue_uring - requests carried out by the kernel, through a ring (see io_queue.h)
 *
 * One ring for all threads. Entries are submitted and completions accounted for under a lock, but
 * waited for outside of it, by one thread at a time: whoever needs a request that is not done, and
 * finds nobody waiting at the ring, waits there for everybody; the others wait for that thread.
 *
 * A request that was carried out in part is continued, with a new entry for the rest of it.
 */
#include "io/io_queue.h"

#include <errno.h>

#include "config.h"

#if HAVE_URING

#include <assert.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>

enum { MOST_ENTRY_NBYTES = 1 << 30 };

struct uring_queue {
	struct io_queue base;
	unsigned depth; /* set at creation */
	struct io_uring ring;

	pthread_mutex_t lock;
	pthread_cond_t completed;
	/* Under the lock. */
	struct io_request *first, **end; /* waiting for room */
	unsigned n_under_way;
	bool is_waited_at; /* some thread waits at the ring */
};

static void append(struct uring_queue *queue, struct io_request *first, struct io_request *last)
{
	last->next = NULL;
	*queue->end = first;
	queue->end = &last->next;
}

static struct io_request *take_first(struct uring_queue *queue)
{
	struct io_request *request = queue->first;

	queue->first = request->next;
	if (!queue->first)
		queue->end = &queue->first;
	return request;
}

static void finish(struct uring_queue *queue, struct io_request *request, int r)
{
	request->r = r;
	request->is_done = true;
	pthread_cond_broadcast(&queue->completed);
}

static void prepare(struct io_uring_sqe *sqe, struct io_request *request)
{
	const size_t left = request->nbytes - request->n_done;
	const unsigned nbytes = left < MOST_ENTRY_NBYTES ? (unsigned)left : MOST_ENTRY_NBYTES;
	unsigned char *bytes = (unsigned char *)request->buffer + request->n_done;
	const uint64_t offset = request->offset + request->n_done;

	if (request->is_write)
		io_uring_prep_write(sqe, request->file->fd, bytes, nbytes, offset);
	else
		io_uring_prep_read(sqe, request->file->fd, bytes, nbytes, offset);
	io_uring_sqe_set_data(sqe, request);
}

/*
 * Until the kernel has taken all entries. EAGAIN and EBUSY: it has no memory for one at the moment.
 * Nothing else can go wrong with a ring that has worked once.
 */
static void submit_entries(struct io_uring *ring)
{
	while (io_uring_sq_ready(ring) > 0) {
		const int r = io_uring_submit(ring);

		assert(r >= 0 || r == -EINTR || r == -EAGAIN || r == -EBUSY);
		(void)r;
	}
}

/* Under the lock: hand over as many requests as there is room for. */
static void start(struct uring_queue *queue)
{
	while (queue->first && queue->n_under_way < queue->depth) {
		prepare(io_uring_get_sqe(&queue->ring), take_first(queue));
		queue->n_under_way++;
	}
	submit_entries(&queue->ring);
}

/* Under the lock: the kernel says `moved` of a request's entry. */
static void account(struct uring_queue *queue, struct io_request *request, int moved)
{
	queue->n_under_way--;
	if (moved > 0)
		request->n_done += (size_t)moved;
	if (moved == 0)
		finish(queue, request, request->is_write ? -ENOSPC : -ENODATA);
	else if (moved < 0 && moved != -EINTR && moved != -EAGAIN)
		finish(queue, request, moved);
	else if (request->n_done == request->nbytes)
		finish(queue, request, 0);
	else
		append(queue, request, request);
}

/* Under the lock, which is let go meanwhile: wait at the ring for at least one completion. */
static void reap(struct uring_queue *queue)
{
	struct io_uring_cqe *cqe;

	queue->is_waited_at = true;
	pthread_mutex_unlock(&queue->lock);
	while (io_uring_wait_cqe(&queue->ring, &cqe) < 0)
		;
	pthread_mutex_lock(&queue->lock);
	queue->is_waited_at = false;
	while (io_uring_peek_cqe(&queue->ring, &cqe) == 0) {
		account(queue, io_uring_cqe_get_data(cqe), cqe->res);
		io_uring_cqe_seen(&queue->ring, cqe);
	}
	start(queue);
	/* The request of a thread that waits for this one may not be among them. */
	pthread_cond_broadcast(&queue->completed);
}

/* A filter of system calls may allow to make a ring, and not to use it. */
static int try_ring(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int r;

	io_uring_prep_nop(io_uring_get_sqe(ring));
	r = io_uring_submit_and_wait(ring, 1);
	if (r < 0)
		return r;
	r = io_uring_peek_cqe(ring, &cqe);
	if (r == 0)
		io_uring_cqe_seen(ring, cqe);
	return r;
}

static int uring_open(const struct io_engine *engine, unsigned depth, struct io_queue **ret_queue)
{
	struct uring_queue *queue;
	int r;

	if (!engine->ring_init)
		return -ENOSYS;
	queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	queue->base.engine = &io_queue_uring;
	queue->depth = depth;
	queue->end = &queue->first;
	r = engine->ring_init(depth, &queue->ring);
	if (r == 0) {
		r = try_ring(&queue->ring);
		if (r < 0)
			io_uring_queue_exit(&queue->ring);
	}
	if (r < 0) {
		free(queue);
		return r;
	}
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->completed, NULL);
	*ret_queue = &queue->base;
	return 0;
}

static void uring_close(struct io_queue *base)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	io_uring_queue_exit(&queue->ring);
	pthread_cond_destroy(&queue->completed);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static void uring_submit(struct io_queue *base, struct io_request *requests, size_t n)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	pthread_mutex_lock(&queue->lock);
	append(queue, requests, &requests[n - 1]);
	start(queue);
	pthread_mutex_unlock(&queue->lock);
}

static int uring_wait(struct io_queue *base, struct io_request *request)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	pthread_mutex_lock(&queue->lock);
	while (!request->is_done) {
		if (queue->is_waited_at)
			pthread_cond_wait(&queue->completed, &queue->lock);
		else
			reap(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return request->r;
}

const struct io_queue_engine io_queue_uring = {
	.name = "io_uring",
	.open = uring_open,
	.close = uring_close,
	.submit = uring_submit,
	.wait = uring_wait,
};

#else

static int uring_open(const struct io_engine *engine, unsigned depth, struct io_queue **ret_queue)
{
	(void)engine, (void)depth, (void)ret_queue;
	return -ENOSYS;
}

const struct io_queue_engine io_queue_uring = { .name = "io_uring", .open = uring_open };

#endif
