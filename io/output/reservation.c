/*
 * reservation - space of a file, taken a step ahead of those who write it (see reservation.h)
 */
#include "io/output/reservation.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { STEPS = 128 };
static const uint64_t least_step_nbytes = UINT64_C(4) << 20, most_step_nbytes = UINT64_C(64) << 20;

void reservation_init(struct reservation *reservation)
{
	*reservation = (struct reservation){ 0 };
	pthread_mutex_init(&reservation->lock, NULL);
}

void reservation_destroy(struct reservation *reservation)
{
	pthread_mutex_destroy(&reservation->lock);
}

static uint64_t step_nbytes(const struct reservation *reservation)
{
	const uint64_t step = reservation->total_nbytes / STEPS;

	if (step < least_step_nbytes)
		return least_step_nbytes;
	return step < most_step_nbytes ? step : most_step_nbytes;
}

/* Under the lock: extend the reservation to `end`, or to the end of the next step. */
static int extend(struct reservation *reservation, uint64_t end)
{
	uint64_t to = reservation->reserved_nbytes + step_nbytes(reservation);
	int r;

	to = to < end ? end : to;
	to = to < reservation->total_nbytes ? to : reservation->total_nbytes;
	r = file_preallocate(reservation->file, reservation->base + reservation->reserved_nbytes,
			     to - reservation->reserved_nbytes);
	if (r == 0)
		reservation->reserved_nbytes = to;
	return r;
}

/* Bytes that we may still write to the file's disk; UINT64_MAX if it does not say. */
static uint64_t find_free_nbytes(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0 || space.f_blocks == 0)
		return UINT64_MAX;
	return (uint64_t)(geteuid() == 0 ? space.f_bfree : space.f_bavail) * space.f_frsize;
}

int reservation_start(struct reservation *reservation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes)
{
	const uint64_t free_nbytes = find_free_nbytes(file);
	uint64_t nbytes;
	int r;

	reservation->file = file;
	reservation->base = base;
	reservation->total_nbytes = total_nbytes;
	r = extend(reservation, 0);
	/* Only a file system that reserved something has to keep what it is given as it is. */
	if (r == 0 && file_size(file, &nbytes) == 0 &&
	    nbytes >= base + reservation->reserved_nbytes && free_nbytes < total_nbytes)
		r = -ENOSPC;
	if (r < 0)
		*ret_free_nbytes = free_nbytes;
	return r;
}

void reservation_reach(struct reservation *reservation, uint64_t end)
{
	pthread_mutex_lock(&reservation->lock);
	if (end > reservation->reserved_nbytes &&
	    reservation->reserved_nbytes < reservation->total_nbytes)
		extend(reservation, end);
	pthread_mutex_unlock(&reservation->lock);
}
