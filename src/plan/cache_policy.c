/*
 * cache_policy - what becomes of files that a sort writes (see cache_policy.h)
 */
#include "src/plan/cache_policy.h"

#include "src/base/system_limits.h"

/* So much that it pays to find out which way is faster. */
static const uint64_t least_either_way_nbytes = UINT64_C(256) << 20;

enum page_cache_use page_cache_use(const struct job *job, uint64_t nbytes)
{
	const unsigned n_jobs = job->n_neighbours ? job->n_neighbours : 1;
	const uint64_t available = memory_available_nbytes("") / n_jobs;
	uint64_t taken = job->plan.memory_nbytes;

	/*
	 * A small input does not fill a large memory. One of unknown size is asked about when it
	 * has been read, and what it takes is not available any more.
	 */
	if (job->plan.input_nbytes == PLAN_SIZE_UNKNOWN)
		taken = 0;
	else if (job->plan.input_nbytes < taken / 2)
		taken = 2 * job->plan.input_nbytes;
	if (nbytes > 0 && (available < taken || nbytes > available - taken))
		return PAGE_CACHE_IS_TOO_SMALL;
	/* Processors beside a GPU have nothing else to do than to copy into the cache. */
	return job->info.unified && nbytes >= least_either_way_nbytes ? PAGE_CACHE_MAY_HOLD :
									PAGE_CACHE_HOLDS;
}

void page_cache_tell_spill(enum page_cache_use use, struct spill *spill)
{
	switch (use) {
	case PAGE_CACHE_IS_TOO_SMALL:
		spill_pass_by_cache(spill);
		break;
	case PAGE_CACHE_MAY_HOLD:
		spill_try_both_ways(spill);
		break;
	case PAGE_CACHE_HOLDS:
		break;
	}
}
