/*
 * hole_punch - give ranges of files back to the file system (see hole_punch.h)
 *
 * Runs are discarded from their beginning to their end, so at a time there is about one range for
 * each run that is merged, and for each range of the merge: a list that is searched from one end to
 * the other.
 */
#include "io/spill/hole_punch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/thread.h"

/* If there are more, holes become smaller than they could be. */
enum { MOST_RANGES = 1024 };

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
	uint64_t pending_nbytes; /* those being punched, too */
	struct reclaim_lag lag;
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

	pthread_mutex_unlock(&reclaim->lock);
	reclaim->punch(reclaim->context, range.file, range.offset, range.nbytes);
	pthread_mutex_lock(&reclaim->lock);

	reclaim->pending_nbytes -= range.nbytes;
	pthread_cond_broadcast(&reclaim->changed);
}

static void *reclaim_main(void *argument)
{
	struct reclaim *reclaim = argument;

	pthread_mutex_lock(&reclaim->lock);
	while (!reclaim->closing) {
		if (reclaim->n_ranges > 0 && reclaim->pending_nbytes > reclaim->lag.usual_nbytes)
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

/* Under the lock. */
static void punch_until(struct reclaim *reclaim, uint64_t nbytes)
{
	while (reclaim->pending_nbytes > nbytes) {
		if (reclaim->n_ranges > 0)
			punch_largest(reclaim);
		else
			pthread_cond_wait(&reclaim->changed, &reclaim->lock);
	}
}

void reclaim_add(struct reclaim *reclaim, uint32_t file, uint64_t offset, uint64_t nbytes,
		 struct reclaim_lag lag)
{
	pthread_mutex_lock(&reclaim->lock);
	while (reclaim->n_ranges == MOST_RANGES)
		punch_largest(reclaim);
	enter_range(reclaim, (struct range){ .file = file, .offset = offset, .nbytes = nbytes });
	reclaim->pending_nbytes += nbytes;
	reclaim->lag = lag;
	if (!reclaim->has_thread)
		reclaim->has_thread = thread_start(reclaim_main, reclaim, 0, &reclaim->thread) == 0;
	if (reclaim->pending_nbytes > lag.usual_nbytes)
		pthread_cond_broadcast(&reclaim->changed);
	punch_until(reclaim, reclaim->has_thread ? lag.most_nbytes : lag.usual_nbytes);
	pthread_mutex_unlock(&reclaim->lock);
}

bool reclaim_until(struct reclaim *reclaim, uint64_t nbytes)
{
	bool is_more;

	pthread_mutex_lock(&reclaim->lock);
	is_more = reclaim->pending_nbytes > nbytes;
	punch_until(reclaim, nbytes);
	pthread_mutex_unlock(&reclaim->lock);
	return is_more;
}
