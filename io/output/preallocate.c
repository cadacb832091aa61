/*
 * preallocate - space of a file, taken a step ahead of those who write it (see preallocate.h)
 */
#include "io/output/preallocate.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/file/free_space.h"

enum {
	STEPS = 512,
	MOST_STEPS = 64 << 10, /* of the largest files: each is remembered */
};
static const uint64_t least_step_nbytes = UINT64_C(4) << 20, most_step_nbytes = UINT64_C(64) << 20;

void reservation_init(struct reservation *reservation)
{
	*reservation = (struct reservation){ 0 };
	pthread_mutex_init(&reservation->lock, NULL);
}

void reservation_destroy(struct reservation *reservation)
{
	free(reservation->steps);
	pthread_mutex_destroy(&reservation->lock);
}

static uint64_t step_nbytes(uint64_t total_nbytes)
{
	const uint64_t step = total_nbytes / STEPS;

	if (step < least_step_nbytes)
		return least_step_nbytes;
	if (total_nbytes / most_step_nbytes >= MOST_STEPS)
		return (total_nbytes / MOST_STEPS / least_step_nbytes + 1) * least_step_nbytes;
	return step < most_step_nbytes ? step : most_step_nbytes;
}

/* Under the lock, or before others know of it. */
static int reserve_step(struct reservation *reservation, uint64_t step)
{
	const uint64_t begin = step * reservation->step_nbytes;
	const uint64_t left = reservation->total_nbytes - begin;
	const uint64_t nbytes = left < reservation->step_nbytes ? left : reservation->step_nbytes;
	int r = 0;

	if (reservation->steps[step])
		return 0;
	r = file_preallocate(reservation->file, reservation->base + begin, nbytes);
	if (r < 0)
		return r;
	reservation->steps[step] = true;
	if (begin + nbytes > reservation->extended_nbytes)
		reservation->extended_nbytes = begin + nbytes;
	return 0;
}

static uint64_t free_nbytes_now(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0 || space.f_blocks == 0)
		return UINT64_MAX;
	return (uint64_t)(geteuid() == 0 ? space.f_bfree : space.f_bavail) * space.f_frsize;
}

uint64_t reservation_free_nbytes(const struct file *file, uint64_t wanted_nbytes)
{
	struct free_space_looks looks = { 0 };
	uint64_t nbytes;

	do
		nbytes = free_nbytes_now(file);
	while (free_space_may_grow(&looks, nbytes, wanted_nbytes));
	return nbytes;
}

/* Of a file that is empty. */
bool reservation_is_real(const struct file *file)
{
	uint64_t nbytes;
	const bool is_real = file_preallocate(file, 0, 1) == 0 && file_size(file, &nbytes) == 0 &&
			     nbytes > 0;

	file_truncate(file, 0);
	return is_real;
}

/* What is asked for is a block that the file cannot have yet: so its blocks become more. */
static bool is_real_behind(const struct file *file, uint64_t end)
{
	struct stat before, after;
	int r;

	if (fstat(file->fd, &before) < 0)
		return false;
	r = file_reserve_behind(file, end + (uint64_t)before.st_blksize, 1);
	return r == -ENOSPC ||
	       (r == 0 && fstat(file->fd, &after) == 0 && after.st_blocks > before.st_blocks);
}

int reservation_try_behind(const struct file *file, uint64_t end, uint64_t nbytes,
			   uint64_t *ret_free_nbytes)
{
	*ret_free_nbytes = reservation_free_nbytes(file, nbytes);
	return *ret_free_nbytes < nbytes && is_real_behind(file, end) ? -ENOSPC : 0;
}

/* 0, or -ENOMEM: then nothing is reserved. */
static int begin(struct reservation *reservation, const struct file *file, uint64_t base,
		 uint64_t total_nbytes)
{
	reservation->step_nbytes = step_nbytes(total_nbytes);
	reservation->steps = calloc((total_nbytes - 1) / reservation->step_nbytes + 1,
				    sizeof *reservation->steps);
	if (!reservation->steps)
		return -ENOMEM;
	reservation->file = file;
	reservation->base = base;
	reservation->total_nbytes = total_nbytes;
	return 0;
}

/* What the file has from the base on: a sort that was killed has left it. */
static uint64_t own_nbytes(const struct file *file, uint64_t base)
{
	struct stat status;
	uint64_t nbytes;

	if (fstat(file->fd, &status) < 0)
		return 0;
	nbytes = (uint64_t)status.st_blocks * 512;
	return nbytes > base ? nbytes - base : 0;
}

/* What is free for it, what will be, and what it has. */
static uint64_t find_room(const struct reservation *reservation, const struct file *file,
			  uint64_t base, uint64_t total_nbytes)
{
	const uint64_t own = own_nbytes(file, base) + reservation->to_come_nbytes;
	const uint64_t wanted = total_nbytes > own ? total_nbytes - own : 0;
	const uint64_t free_nbytes = reservation_free_nbytes(file, wanted);

	return free_nbytes < UINT64_MAX - own ? free_nbytes + own : UINT64_MAX;
}

int reservation_start(struct reservation *reservation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes)
{
	const uint64_t free_nbytes = find_room(reservation, file, base, total_nbytes);
	const bool is_short = free_nbytes < total_nbytes;
	uint64_t nbytes;
	int r;

	*ret_free_nbytes = free_nbytes;
	if (total_nbytes == 0 || reservation->steps)
		return 0;
	r = begin(reservation, file, base, total_nbytes);
	if (r < 0)
		return r;
	/* What will not fit must not take a step from others meanwhile: it may be all there is. */
	r = is_short ? file_preallocate(file, base, 1) : reserve_step(reservation, 0);
	/* Only a file system that reserved something has to keep what it is given as it is. */
	reservation->is_real = r == 0 && file_size(file, &nbytes) == 0 &&
			       nbytes >= base + (is_short ? 1 : reservation->extended_nbytes);
	return is_short && (reservation->is_real || r < 0) ? -ENOSPC : r;
}

void reservation_join(struct reservation *reservation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes)
{
	if (total_nbytes == 0)
		return;
	if (!reservation->steps && begin(reservation, file, base, total_nbytes) < 0)
		return;
	reservation->is_real = true;
	reservation->extended_nbytes = reservation->total_nbytes;
}

bool reservation_reach(struct reservation *reservation, uint64_t begin, uint64_t end)
{
	bool reserved = reservation->is_real && end <= reservation->total_nbytes;

	if (end > reservation->total_nbytes)
		end = reservation->total_nbytes;
	if (begin >= end)
		return reserved;
	pthread_mutex_lock(&reservation->lock);
	for (uint64_t step = begin / reservation->step_nbytes;
	     step <= (end - 1) / reservation->step_nbytes; step++)
		if (reserve_step(reservation, step) < 0)
			reserved = false;
	pthread_mutex_unlock(&reservation->lock);
	return reserved;
}
