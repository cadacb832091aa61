/*
 * run_devices - where the resident runs of a merge live, and a lane of each device there (see run_devices.h)
 */
#include "src/merge/run_devices.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

static int open_home(const struct job *job, uint32_t worker, struct homes *homes)
{
	struct home *home = &homes->of[worker];
	int r;

	if (home->lane)
		return 0;
	r = lane_open(job->workers[worker].device, LANE_URGENT, &home->lane);
	if (r == 0)
		r = mark_open(job->workers[worker].device, &home->mark);
	return r < 0 ? job_fail_device(job, worker, r, "cannot start a merge") : 0;
}

int homes_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       struct homes *ret_homes)
{
	int r;

	ret_homes->of = calloc(job->n_workers, sizeof *ret_homes->of);
	if (!ret_homes->of)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	ret_homes->n = job->n_workers;
	r = open_home(job, job->worker, ret_homes);
	for (uint32_t i = 0; i < n_runs && r == 0; i++)
		if (run_is_resident(runs[i]))
			r = open_home(job, run_worker(runs[i]), ret_homes);
	return r;
}

void homes_close(struct homes *homes)
{
	for (uint32_t i = 0; i < homes->n; i++) {
		lane_close(homes->of[i].lane);
		mark_close(homes->of[i].mark);
	}
	free(homes->of);
	*homes = (struct homes){ 0 };
}

struct lane *homes_lane(const struct homes *homes, const struct run *run)
{
	return homes->of[run_worker(run)].lane;
}

int homes_sample(const struct homes *homes, struct run *run, uint64_t stride)
{
	return run_is_resident(run) ? run_sample(run, homes_lane(homes, run), stride) : 0;
}

int homes_wait(const struct homes *homes)
{
	int r = 0;

	for (uint32_t i = 0; i < homes->n; i++) {
		const struct home *home = &homes->of[i];
		const int waited = home->lane ? lane_wait(home->lane, home->mark) : 0;

		if (r == 0)
			r = waited;
	}
	return r;
}
