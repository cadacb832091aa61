/*
 * reclaim - give ranges of files back to the file system (see reclaim.h)
 *
 * Runs are discarded from their beginning to their end, so there is about one range for each run of
 * the merge at a time: a short list, searched from one end to the other.
 */
#include "io/store/reclaim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/thread.h"

enum { MOST_RANGES = 256 };

struct range {
	uint32_t file;
	uint64_t offset, nbytes;
};

struct reclaim {
	/* Set at creation. */
	reclaim_punch *punch;
	void *context;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct range ranges[MOST_RANGES];
	size_t n_ranges;
	size_t n_punching; /* ranges that were taken off the list, and are not given back yet */
	uint64_t pending_nbytes, lag_nbytes;
	bool has_thread, closing;
	pthread_t thread;
};

int reclaim_open(reclaim_punch *punch, void *context, struct reclaim **ret_reclaim)
{
	struct reclaim *reclaim = calloc(1, sizeof *reclaim);

	if (!reclaim)
		return -ENOMEM;
	reclaim->punch = punch;
	reclaim->context = context;
	pthread_mutex_init(&reclaim->lock, NULL);
	pthread_cond_init(&reclaim->changed, NULL);
	*ret_reclaim = reclaim;
	return 0;
}

void reclaim_close(struct reclaim *reclaim)
{
	if (!reclaim)
		return;
	if (reclaim->has_thread) {
		pthread_mutex_lock(&reclaim->lock);
		reclaim->closing = true;
		pthread_cond_broadcast(&reclaim->changed);
		pthread_mutex_unlock(&reclaim->lock);
		pthread_join(reclaim->thread, NULL);
	}
	pthread_cond_destroy(&reclaim->changed);
	pthread_mutex_destroy(&reclaim->lock);
	free(reclaim);
}

/* Under the lock, which is let go meanwhile: give the largest range back. */
static void punch_largest(struct reclaim *reclaim)
{
	struct range *largest = &reclaim->ranges[0];
	struct range range;

	for (size_t i = 1; i < reclaim->n_ranges; i++)
		if (reclaim->ranges[i].nbytes > largest->nbytes)
			largest = &reclaim->ranges[i];
	range = *largest;
	*largest = reclaim->ranges[--reclaim->n_ranges];
	reclaim->n_punching++;

	pthread_mutex_unlock(&reclaim->lock);
	reclaim->punch(reclaim->context, range.file, range.offset, range.nbytes);
	pthread_mutex_lock(&reclaim->lock);

	reclaim->n_punching--;
	reclaim->pending_nbytes -= range.nbytes;
	pthread_cond_broadcast(&reclaim->changed);
}

static void *reclaim_main(void *argument)
{
	struct reclaim *reclaim = argument;

	pthread_mutex_lock(&reclaim->lock);
	while (!reclaim->closing) {
		if (reclaim->n_ranges > 0 && reclaim->pending_nbytes > reclaim->lag_nbytes)
			punch_largest(reclaim);
		else
			pthread_cond_wait(&reclaim->changed, &reclaim->lock);
	}
	pthread_mutex_unlock(&reclaim->lock);
	return NULL;
}

/* Under the lock: enter the range, as one with those that it touches. */
static void enter_range(struct reclaim *reclaim, struct range range)
{
	size_t i = 0;

	while (i < reclaim->n_ranges) {
		const struct range *other = &reclaim->ranges[i];
		const bool before = other->offset + other->nbytes == range.offset;
		const bool behind = range.offset + range.nbytes == other->offset;

		if (other->file != range.file || !(before || behind)) {
			i++;
			continue;
		}
		range.offset = before ? other->offset : range.offset;
		range.nbytes += other->nbytes;
		reclaim->ranges[i] = reclaim->ranges[--reclaim->n_ranges];
	}
	reclaim->ranges[reclaim->n_ranges++] = range;
}

void reclaim_add(struct reclaim *reclaim, uint32_t file, uint64_t offset, uint64_t nbytes,
		 uint64_t lag_nbytes)
{
	pthread_mutex_lock(&reclaim->lock);
	while (reclaim->n_ranges == MOST_RANGES)
		punch_largest(reclaim);
	enter_range(reclaim, (struct range){ .file = file, .offset = offset, .nbytes = nbytes });
	reclaim->pending_nbytes += nbytes;
	reclaim->lag_nbytes = lag_nbytes;
	if (!reclaim->has_thread)
		reclaim->has_thread = thread_start(reclaim_main, reclaim, 0, &reclaim->thread) == 0;
	if (reclaim->pending_nbytes > lag_nbytes)
		pthread_cond_broadcast(&reclaim->changed);
	while (reclaim->pending_nbytes > (reclaim->has_thread ? 2 : 1) * lag_nbytes) {
		if (reclaim->n_ranges > 0)
			punch_largest(reclaim);
		else
			pthread_cond_wait(&reclaim->changed, &reclaim->lock);
	}
	pthread_mutex_unlock(&reclaim->lock);
}

bool reclaim_drain(struct reclaim *reclaim)
{
	bool any;

	pthread_mutex_lock(&reclaim->lock);
	any = reclaim->pending_nbytes > 0;
	while (reclaim->n_ranges > 0)
		punch_largest(reclaim);
	while (reclaim->n_punching > 0)
		pthread_cond_wait(&reclaim->changed, &reclaim->lock);
	pthread_mutex_unlock(&reclaim->lock);
	return any;
}
