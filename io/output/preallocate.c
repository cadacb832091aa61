/*
 * preallocate - space of a file, taken a step ahead of those who write it (see preallocate.h)
 */
#include "io/output/preallocate.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/file/free_space_retry.h"

enum {
	PREALLOCATE_STEPS = 512,
	PREALLOCATE_MAX_STEPS = 64 << 10, /* of the largest files: each is remembered */
};
static const uint64_t min_step_nbytes = UINT64_C(4) << 20, max_step_nbytes = UINT64_C(64) << 20;

void preallocate_init(struct preallocation *preallocation)
{
	*preallocation = (struct preallocation){ 0 };
	pthread_mutex_init(&preallocation->lock, NULL);
}

void preallocate_destroy(struct preallocation *preallocation)
{
	free(preallocation->step_is_allocated);
	pthread_mutex_destroy(&preallocation->lock);
}

static uint64_t choose_step_nbytes(uint64_t total_nbytes)
{
	const uint64_t step = total_nbytes / PREALLOCATE_STEPS;

	if (step < min_step_nbytes)
		return min_step_nbytes;
	if (total_nbytes / max_step_nbytes >= PREALLOCATE_MAX_STEPS)
		return (total_nbytes / PREALLOCATE_MAX_STEPS / min_step_nbytes + 1) *
		       min_step_nbytes;
	return step < max_step_nbytes ? step : max_step_nbytes;
}

/* Under the lock, or before others know of it. */
static int preallocate_step(struct preallocation *preallocation, uint64_t step)
{
	const uint64_t begin = step * preallocation->step_nbytes;
	const uint64_t remaining = preallocation->total_nbytes - begin;
	const uint64_t nbytes = remaining < preallocation->step_nbytes ? remaining :
									 preallocation->step_nbytes;
	int r = 0;

	if (preallocation->step_is_allocated[step])
		return 0;
	r = file_preallocate(preallocation->file, preallocation->base + begin, nbytes);
	if (r < 0)
		return r;
	preallocation->step_is_allocated[step] = true;
	if (begin + nbytes > preallocation->extended_nbytes)
		preallocation->extended_nbytes = begin + nbytes;
	return 0;
}

static uint64_t query_free_space(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0 || space.f_blocks == 0)
		return UINT64_MAX;
	return (uint64_t)(geteuid() == 0 ? space.f_bfree : space.f_bavail) * space.f_frsize;
}

uint64_t preallocate_free_space(const struct file *file, uint64_t wanted_nbytes)
{
	struct free_space_poll poll = { 0 };
	uint64_t nbytes;

	do
		nbytes = query_free_space(file);
	while (free_space_should_retry(&poll, nbytes, wanted_nbytes));
	return nbytes;
}

/* Of a file that is empty. */
bool preallocate_is_supported(const struct file *file)
{
	uint64_t nbytes;
	const bool is_supported = file_preallocate(file, 0, 1) == 0 &&
				  file_size(file, &nbytes) == 0 && nbytes > 0;

	file_truncate(file, 0);
	return is_supported;
}

/* What is asked for is a block that the file cannot have yet: so its blocks become more. */
static bool is_supported_past_end(const struct file *file, uint64_t end)
{
	struct stat before, after;
	int r;

	if (fstat(file->fd, &before) < 0)
		return false;
	r = file_preallocate_keep_size(file, end + (uint64_t)before.st_blksize, 1);
	return r == -ENOSPC ||
	       (r == 0 && fstat(file->fd, &after) == 0 && after.st_blocks > before.st_blocks);
}

int preallocate_check_growth(const struct file *file, uint64_t end, uint64_t nbytes,
			     uint64_t *ret_free_nbytes)
{
	*ret_free_nbytes = preallocate_free_space(file, nbytes);
	return *ret_free_nbytes < nbytes && is_supported_past_end(file, end) ? -ENOSPC : 0;
}

/* 0, or -ENOMEM: then nothing is reserved. */
static int init_steps(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes)
{
	preallocation->step_nbytes = choose_step_nbytes(total_nbytes);
	preallocation->step_is_allocated =
		calloc((total_nbytes - 1) / preallocation->step_nbytes + 1,
		       sizeof *preallocation->step_is_allocated);
	if (!preallocation->step_is_allocated)
		return -ENOMEM;
	preallocation->file = file;
	preallocation->base = base;
	preallocation->total_nbytes = total_nbytes;
	return 0;
}

/* What the file has from the base on: a sort that was killed has left it. */
static uint64_t allocated_past_base(const struct file *file, uint64_t base)
{
	struct stat status;
	uint64_t nbytes;

	if (fstat(file->fd, &status) < 0)
		return 0;
	nbytes = (uint64_t)status.st_blocks * 512;
	return nbytes > base ? nbytes - base : 0;
}

/* What is free for it, what will be, and what it has. */
static uint64_t available_space(const struct preallocation *preallocation, const struct file *file,
				uint64_t base, uint64_t total_nbytes)
{
	const uint64_t allocated_nbytes =
		allocated_past_base(file, base) + preallocation->released_later_nbytes;
	const uint64_t wanted_nbytes =
		total_nbytes > allocated_nbytes ? total_nbytes - allocated_nbytes : 0;
	const uint64_t free_nbytes = preallocate_free_space(file, wanted_nbytes);

	return free_nbytes < UINT64_MAX - allocated_nbytes ? free_nbytes + allocated_nbytes :
							     UINT64_MAX;
}

int preallocate_start(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes)
{
	const uint64_t free_nbytes = available_space(preallocation, file, base, total_nbytes);
	const bool lacks_space = free_nbytes < total_nbytes;
	uint64_t nbytes;
	int r;

	*ret_free_nbytes = free_nbytes;
	if (total_nbytes == 0 || preallocation->step_is_allocated)
		return 0;
	r = init_steps(preallocation, file, base, total_nbytes);
	if (r < 0)
		return r;
	/* What will not fit must not take a step from others meanwhile: it may be all there is. */
	r = lacks_space ? file_preallocate(file, base, 1) : preallocate_step(preallocation, 0);
	/* Only a file system that reserved something has to keep what it is given as it is. */
	preallocation->is_supported =
		r == 0 && file_size(file, &nbytes) == 0 &&
		nbytes >= base + (lacks_space ? 1 : preallocation->extended_nbytes);
	return lacks_space && (preallocation->is_supported || r < 0) ? -ENOSPC : r;
}

void preallocate_start_shared(struct preallocation *preallocation, const struct file *file,
			      uint64_t base, uint64_t total_nbytes)
{
	if (total_nbytes == 0)
		return;
	if (!preallocation->step_is_allocated &&
	    init_steps(preallocation, file, base, total_nbytes) < 0)
		return;
	preallocation->is_supported = true;
	preallocation->extended_nbytes = preallocation->total_nbytes;
}

bool preallocate_range(struct preallocation *preallocation, uint64_t begin, uint64_t end)
{
	bool is_allocated = preallocation->is_supported && end <= preallocation->total_nbytes;

	if (end > preallocation->total_nbytes)
		end = preallocation->total_nbytes;
	if (begin >= end)
		return is_allocated;
	pthread_mutex_lock(&preallocation->lock);
	for (uint64_t step = begin / preallocation->step_nbytes;
	     step <= (end - 1) / preallocation->step_nbytes; step++)
		if (preallocate_step(preallocation, step) < 0)
			is_allocated = false;
	pthread_mutex_unlock(&preallocation->lock);
	return is_allocated;
}
