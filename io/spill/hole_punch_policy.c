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
enum { LAG_PART = 128, PLENTY_PART = 16, PLENTY_TIMES = 2 };
static const uint64_t least_lag_nbytes = UINT64_C(4) << 20, most_lag_nbytes = UINT64_C(256) << 20;

/* So often is a disk asked, which may be far away. */
static const uint64_t trusted_nbytes = UINT64_C(16) << 20;

uint64_t spill_lag_nbytes(uint64_t peak_nbytes)
{
	const uint64_t lag = peak_nbytes / LAG_PART;

	if (lag < least_lag_nbytes)
		return least_lag_nbytes;
	return lag < most_lag_nbytes ? lag : most_lag_nbytes;
}

static uint64_t free_nbytes(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0)
		return 0;
	return (uint64_t)space.f_bavail * space.f_frsize;
}

/* Of the file's disk, and of the limit. */
static void find_room(struct spill *spill, struct spill_file *f)
{
	const uint64_t there = free_nbytes(&f->file);

	pthread_mutex_lock(&spill->lock);
	f->room_nbytes = spill_left_nbytes(spill, spill->peak_nbytes);
	if (f->room_nbytes > there)
		f->room_nbytes = there;
	f->trusted_nbytes = trusted_nbytes;
	pthread_mutex_unlock(&spill->lock);
}

/* Under the lock. What is kept is given back soon: after a kill nobody knows of what waits. */
static bool has_plenty(const struct spill *spill, const struct spill_file *f)
{
	return !spill->is_kept && f->room_nbytes >= PLENTY_TIMES * spill->peak_nbytes;
}

struct reclaim_lag spill_lag(struct spill *spill, struct spill_file *f, uint64_t nbytes)
{
	struct reclaim_lag lag;
	bool trusts;

	pthread_mutex_lock(&spill->lock);
	trusts = f->trusted_nbytes > nbytes;
	f->trusted_nbytes -= trusts ? nbytes : f->trusted_nbytes;
	pthread_mutex_unlock(&spill->lock);
	if (!trusts)
		find_room(spill, f);

	pthread_mutex_lock(&spill->lock);
	lag.usual_nbytes = spill_lag_nbytes(spill->peak_nbytes);
	if (has_plenty(spill, f) && spill->peak_nbytes / PLENTY_PART > lag.usual_nbytes)
		lag.usual_nbytes = spill->peak_nbytes / PLENTY_PART;
	lag.most_nbytes = 2 * lag.usual_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return lag;
}

void spill_spare_peak(struct spill *spill, uint64_t nbytes)
{
	bool waited = true;

	while (waited && spill->used_nbytes + nbytes > spill->peak_nbytes) {
		const uint64_t most = 2 * spill_lag_nbytes(spill->peak_nbytes);

		pthread_mutex_unlock(&spill->lock);
		waited = reclaim_until(spill->reclaim, most);
		pthread_mutex_lock(&spill->lock);
	}
}
