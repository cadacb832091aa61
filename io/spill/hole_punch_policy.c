/*
 * hole_punch_policy - how much of what was given back may still be taken (see spill_internal.h)
 *
 * Little, as long as space may be short: an output grows on the same disk as fast as this spill
 * shrinks. But who waits for holes to be punched does not merge, and a merge in many ranges would
 * do little else. So where there is far more room than all of this takes, much more may wait, and
 * only the thread that punches is busy with it.
 */
#include <sys/statvfs.h>

#include "io/spill/spill_internal.h"

/*
 * Of the most that was stored: what may wait, and twice that at worst; and what may at worst where
 * so many times as much is free. Some MiB are nothing to any disk, and more than some hundred save
 * no time any more.
 */
enum { BACKLOG_DIVISOR = 128, AMPLE_BACKLOG_DIVISOR = 16, AMPLE_FREE_FACTOR = 2 };
static const uint64_t min_backlog_nbytes = UINT64_C(4) << 20, max_backlog_nbytes = UINT64_C(256)
										   << 20;

/* So often is a disk asked, which may be far away. */
static const uint64_t free_space_recheck_nbytes = UINT64_C(16) << 20;

uint64_t spill_backlog_nbytes(uint64_t peak_nbytes)
{
	const uint64_t backlog_nbytes = peak_nbytes / BACKLOG_DIVISOR;

	if (backlog_nbytes < min_backlog_nbytes)
		return min_backlog_nbytes;
	return backlog_nbytes < max_backlog_nbytes ? backlog_nbytes : max_backlog_nbytes;
}

static uint64_t query_file_free_space(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0)
		return 0;
	return (uint64_t)space.f_bavail * space.f_frsize;
}

/* Of the file's disk, and of the limit. */
static void update_free_space(struct spill *spill, struct spill_file *f)
{
	const uint64_t disk_nbytes = query_file_free_space(&f->file);

	pthread_mutex_lock(&spill->lock);
	f->known_free_nbytes = spill_limit_remaining(spill, spill->peak_nbytes);
	if (f->known_free_nbytes > disk_nbytes)
		f->known_free_nbytes = disk_nbytes;
	f->recheck_nbytes = free_space_recheck_nbytes;
	pthread_mutex_unlock(&spill->lock);
}

/* Under the lock. What is kept is given back soon: after a kill nobody knows of what waits. */
static bool has_ample_free_space(const struct spill *spill, const struct spill_file *f)
{
	return !spill->is_persistent &&
	       f->known_free_nbytes >= AMPLE_FREE_FACTOR * spill->peak_nbytes;
}

struct hole_punch_limits spill_hole_punch_limits(struct spill *spill, struct spill_file *f,
						 uint64_t nbytes)
{
	struct hole_punch_limits limits;
	bool is_recent;

	pthread_mutex_lock(&spill->lock);
	is_recent = f->recheck_nbytes > nbytes;
	f->recheck_nbytes -= is_recent ? nbytes : f->recheck_nbytes;
	pthread_mutex_unlock(&spill->lock);
	if (!is_recent)
		update_free_space(spill, f);

	pthread_mutex_lock(&spill->lock);
	limits.soft_nbytes = spill_backlog_nbytes(spill->peak_nbytes);
	if (has_ample_free_space(spill, f) &&
	    spill->peak_nbytes / AMPLE_BACKLOG_DIVISOR > limits.soft_nbytes)
		limits.soft_nbytes = spill->peak_nbytes / AMPLE_BACKLOG_DIVISOR;
	limits.hard_nbytes = 2 * limits.soft_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return limits;
}

void spill_wait_below_peak(struct spill *spill, uint64_t nbytes)
{
	bool waited = true;

	while (waited && spill->used_nbytes + nbytes > spill->peak_nbytes) {
		const uint64_t max_pending_nbytes = 2 * spill_backlog_nbytes(spill->peak_nbytes);

		pthread_mutex_unlock(&spill->lock);
		waited = hole_punch_drain(spill->hole_punch, max_pending_nbytes);
		pthread_mutex_lock(&spill->lock);
	}
}
