/*
 * cache_policy - what becomes of files that a sort writes (see cache_policy.h)
 */
#include "src/plan/cache_policy.h"

#include "src/base/system_limits.h"

/* So much that it pays to find out which way is faster. */
static const uint64_t min_adaptive_nbytes = UINT64_C(256) << 20;

enum cache_policy cache_policy_choose(const struct job *job, uint64_t nbytes)
{
	const unsigned n_jobs = job->n_jobs_on_host ? job->n_jobs_on_host : 1;
	const uint64_t available_nbytes = memory_available_nbytes("") / n_jobs;
	uint64_t planned_nbytes = job->plan.memory_nbytes;

	/*
	 * A small input does not fill a large memory. One of unknown size is asked about when it
	 * has been read, and what it takes is not available any more.
	 */
	if (job->plan.input_nbytes == PLAN_SIZE_UNKNOWN)
		planned_nbytes = 0;
	else if (job->plan.input_nbytes < planned_nbytes / 2)
		planned_nbytes = 2 * job->plan.input_nbytes;
	if (nbytes > 0 &&
	    (available_nbytes < planned_nbytes || nbytes > available_nbytes - planned_nbytes))
		return CACHE_BYPASS;
	/* Processors beside a GPU have nothing else to do than to copy into the cache. */
	return job->device_info.unified && nbytes >= min_adaptive_nbytes ? CACHE_ADAPTIVE :
									   CACHE_USE;
}

void cache_policy_apply_to_spill(enum cache_policy policy, struct spill *spill)
{
	switch (policy) {
	case CACHE_BYPASS:
		spill_bypass_cache(spill);
		break;
	case CACHE_ADAPTIVE:
		spill_use_adaptive_io(spill);
		break;
	case CACHE_USE:
		break;
	}
}
