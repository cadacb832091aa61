/*
 * hole_punch.c - release ranges of files in the background (see hole_punch.h)
 *
 * Runs are discarded from their beginning to their end, so there is about one pending range for
 * each run that is merged, times the partitions of the merge. A linear search is fast enough.
 */
#include "io/spill/hole_punch.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/thread.h"
#include "src/base/thread_pool.h"

/* If more are pending, holes become smaller than they could be. */
enum { MAX_PENDING_HOLES = 1024 };

struct file_hole {
	uint32_t file;
	uint64_t offset, nbytes;
};

struct hole_punch {
	/* Constant. */
	hole_punch_fn *punch;
	void *context;

	struct workers worker; /* one thread, started by the first range */
	/* Protected by the lock. */
	struct file_hole holes[MAX_PENDING_HOLES];
	size_t n_holes;
	uint64_t pending_nbytes; /* including those being punched */
	struct hole_punch_limits limits;
};

int hole_punch_open(hole_punch_fn *punch, void *context, struct hole_punch **ret_puncher)
{
	struct hole_punch *puncher = calloc(1, sizeof *puncher);

	if (!puncher)
		return -ENOMEM;
	puncher->punch = punch;
	puncher->context = context;
	workers_open(&puncher->worker);
	*ret_puncher = puncher;
	return 0;
}

void hole_punch_close(struct hole_punch *puncher)
{
	if (!puncher)
		return;
	workers_close(&puncher->worker);
	free(puncher);
}

/* Requires the lock, and releases it meanwhile. */
static void punch_largest(struct hole_punch *puncher)
{
	struct file_hole *largest = &puncher->holes[0];
	struct file_hole hole;

	for (size_t i = 1; i < puncher->n_holes; i++)
		if (puncher->holes[i].nbytes > largest->nbytes)
			largest = &puncher->holes[i];
	hole = *largest;
	*largest = puncher->holes[--puncher->n_holes];

	pthread_mutex_unlock(&puncher->worker.lock);
	puncher->punch(puncher->context, hole.file, hole.offset, hole.nbytes);
	pthread_mutex_lock(&puncher->worker.lock);

	puncher->pending_nbytes -= hole.nbytes;
	pthread_cond_broadcast(&puncher->worker.changed);
}

static void *hole_punch_main(void *argument)
{
	struct hole_punch *puncher = argument;

	SCOPED_LOCK(&puncher->worker.lock);
	while (!puncher->worker.closing) {
		if (puncher->n_holes > 0 && puncher->pending_nbytes > puncher->limits.soft_nbytes)
			punch_largest(puncher);
		else
			pthread_cond_wait(&puncher->worker.changed, &puncher->worker.lock);
	}
	return NULL;
}

/* Add the range, joined with adjacent ranges. Requires the lock. */
static void merge_hole(struct hole_punch *puncher, struct file_hole hole)
{
	size_t i = 0;

	while (i < puncher->n_holes) {
		const struct file_hole *neighbour = &puncher->holes[i];
		const bool precedes = neighbour->offset + neighbour->nbytes == hole.offset;
		const bool follows = hole.offset + hole.nbytes == neighbour->offset;

		if (neighbour->file != hole.file || !(precedes || follows)) {
			i++;
			continue;
		}
		hole.offset = precedes ? neighbour->offset : hole.offset;
		hole.nbytes += neighbour->nbytes;
		puncher->holes[i] = puncher->holes[--puncher->n_holes];
	}
	puncher->holes[puncher->n_holes++] = hole;
}

/* Requires the lock. */
static void punch_down_to(struct hole_punch *puncher, uint64_t nbytes)
{
	while (puncher->pending_nbytes > nbytes) {
		if (puncher->n_holes > 0)
			punch_largest(puncher);
		else
			pthread_cond_wait(&puncher->worker.changed, &puncher->worker.lock);
	}
}

void hole_punch_add(struct hole_punch *puncher, uint32_t file, uint64_t offset, uint64_t nbytes,
		    struct hole_punch_limits limits)
{
	SCOPED_LOCK(&puncher->worker.lock);
	while (puncher->n_holes == MAX_PENDING_HOLES)
		punch_largest(puncher);
	merge_hole(puncher, (struct file_hole){ .file = file, .offset = offset, .nbytes = nbytes });
	puncher->pending_nbytes += nbytes;
	puncher->limits = limits;
	if (puncher->worker.threads.n_threads == 0)
		(void)thread_group_start(&puncher->worker.threads, 1, hole_punch_main, puncher,
					 NULL);
	if (puncher->pending_nbytes > limits.soft_nbytes)
		pthread_cond_broadcast(&puncher->worker.changed);
	punch_down_to(puncher,
		      puncher->worker.threads.n_threads ? limits.hard_nbytes : limits.soft_nbytes);
}

bool hole_punch_drain(struct hole_punch *puncher, uint64_t nbytes)
{
	bool was_above;

	SCOPED_LOCK(&puncher->worker.lock);
	was_above = puncher->pending_nbytes > nbytes;
	punch_down_to(puncher, nbytes);
	return was_above;
}
