/*
 * io_queue_uring - requests carried out by the kernel, through a ring (see io_queue.h)
 *
 * One ring for all threads. Entries are submitted and completions accounted for under a lock, but
 * waited for outside of it, by one thread at a time: whoever needs a request that is not done, and
 * finds nobody waiting at the ring, waits there for everybody; the others wait for that thread.
 *
 * A request that was carried out in part is continued, with a new entry for the rest of it. What
 * the ring does not carry out, because it was interrupted or cancelled, or because the kernel takes
 * no entries, is transferred right here by a plain call: so nothing is tried again and again, and
 * every wait has an end.
 */
#include "io/file/io_queue.h"

#include <errno.h>

#include "config.h"

#if HAVE_URING

#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>

enum { MOST_ENTRY_NBYTES = 1 << 30 };

struct uring_queue {
	/* Set at creation. */
	struct io_queue base;
	const struct syscalls *calls;
	unsigned depth;

	struct io_uring ring;

	pthread_mutex_t lock;
	pthread_cond_t completed;
	/* Under the lock. */
	struct io_request *first, **end; /* waiting for room */
	unsigned n_under_way;
	bool is_waited_at; /* some thread waits at the ring */
	bool is_refused;   /* the kernel takes no more entries */
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

/* Under the lock: the rest of a request, without the ring. */
static void carry_out(struct uring_queue *queue, struct io_request *request)
{
	const size_t left = request->nbytes - request->n_done;
	unsigned char *bytes = (unsigned char *)request->buffer + request->n_done;
	const uint64_t offset = request->offset + request->n_done;

	finish(queue, request,
	       request->is_write ? file_write_at(request->file, offset, bytes, left) :
				   file_read_at(request->file, offset, bytes, left));
}

/* Under the lock: the kernel will not see the entries that it has not taken. */
static void carry_out_entries(struct uring_queue *queue)
{
	const struct io_uring_sq *entries = &queue->ring.sq;
	const unsigned n = io_uring_sq_ready(&queue->ring);

	for (unsigned i = entries->sqe_tail - n; i != entries->sqe_tail; i++)
		carry_out(queue,
			  (void *)(uintptr_t)entries->sqes[i & entries->ring_mask].user_data);
	queue->n_under_way -= n;
}

/*
 * Under the lock: hand the entries over. EAGAIN and EBUSY: the kernel has no memory for more at the
 * moment. As long as it works at others, these can wait for the next completion.
 */
static void submit_entries(struct uring_queue *queue)
{
	while (io_uring_sq_ready(&queue->ring) > 0) {
		const int r = queue->calls->ring_submit(&queue->ring);

		if (r >= 0 || r == -EINTR)
			continue;
		if ((r == -EAGAIN || r == -EBUSY) &&
		    queue->n_under_way > io_uring_sq_ready(&queue->ring))
			return;
		carry_out_entries(queue);
		queue->is_refused = true;
		return;
	}
}

/*
 * Under the lock: hand over as many requests as there is room for. Behind this, if any request is
 * not done the kernel works at one, whose completion will come.
 */
static void start(struct uring_queue *queue)
{
	while (queue->first && queue->n_under_way < queue->depth && !queue->is_refused) {
		prepare(io_uring_get_sqe(&queue->ring), take_first(queue));
		queue->n_under_way++;
	}
	if (!queue->is_refused)
		submit_entries(queue);
	while (queue->first && queue->is_refused)
		carry_out(queue, take_first(queue));
}

/*
 * Has the ring not carried it out, for a reason that need not be the file's? Before Linux 5.6 a
 * ring knows no reads and writes (EINVAL), a restricted one refuses them (EACCES, EPERM), and some
 * file systems take them only from a call that may wait (EOPNOTSUPP). If it is the file's, the
 * plain call says so.
 */
static bool is_put_off(int moved)
{
	static const int errors[] = { EINTR, EAGAIN, ECANCELED, EINVAL, EACCES, EPERM, EOPNOTSUPP };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (moved == -errors[i])
			return true;
	return false;
}

/* Under the lock: the kernel says `moved` of a request's entry. */
static void account(struct uring_queue *queue, struct io_request *request, int moved)
{
	queue->n_under_way--;
	if (moved > 0)
		request->n_done += (size_t)moved;
	if (moved == 0)
		finish(queue, request, request->is_write ? -ENOSPC : -ENODATA);
	else if (is_put_off(moved))
		carry_out(queue, request);
	else if (moved < 0)
		finish(queue, request, moved);
	else if (request->n_done == request->nbytes)
		finish(queue, request, 0);
	else
		append(queue, request, request);
}

/* Under the lock, which is let go meanwhile: wait at the ring for at least one completion. */
static void reap(struct uring_queue *queue)
{
	void *owner;
	int moved;

	queue->is_waited_at = true;
	pthread_mutex_unlock(&queue->lock);
	while (queue->calls->ring_take(&queue->ring, true, &owner, &moved) < 0)
		;
	pthread_mutex_lock(&queue->lock);
	queue->is_waited_at = false;
	do
		account(queue, owner, moved);
	while (queue->calls->ring_take(&queue->ring, false, &owner, &moved) == 0);
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

static int queue_open(const struct syscalls *calls, unsigned depth, struct io_queue **ret_queue)
{
	struct uring_queue *queue;
	int r;

	if (!calls->ring_init)
		return -ENOSYS;
	queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	queue->base.engine = &io_queue_uring;
	queue->calls = calls;
	queue->depth = depth;
	queue->end = &queue->first;
	r = calls->ring_init(depth, &queue->ring);
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

static void queue_close(struct io_queue *base)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	io_uring_queue_exit(&queue->ring);
	pthread_cond_destroy(&queue->completed);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static void queue_submit(struct io_queue *base, struct io_request *requests, size_t n)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	pthread_mutex_lock(&queue->lock);
	append(queue, requests, &requests[n - 1]);
	start(queue);
	pthread_mutex_unlock(&queue->lock);
}

static int queue_wait(struct io_queue *base, struct io_request *request)
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
	.open = queue_open,
	.close = queue_close,
	.submit = queue_submit,
	.wait = queue_wait,
};

#else

static int queue_open(const struct syscalls *calls, unsigned depth, struct io_queue **ret_queue)
{
	(void)calls, (void)depth, (void)ret_queue;
	return -ENOSYS;
}

const struct io_queue_engine io_queue_uring = { .name = "io_uring", .open = queue_open };

#endif
