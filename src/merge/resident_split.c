/*
 * resident_split - where a place cuts resident runs (see resident_split.h)
 */
#include "src/merge/resident_split.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

enum {
	/* Blocks of resident runs that are looked at: of all together, and of each at least. */
	SAMPLES = 1 << 14,
	LEAST_SAMPLES = 32,
};

static int sample(struct resident_cuts *cuts)
{
	uint64_t n_samples = SAMPLES / (cuts->n_runs ? cuts->n_runs : 1);
	int r = 0;

	if (n_samples < LEAST_SAMPLES)
		n_samples = LEAST_SAMPLES;
	for (uint32_t i = 0; i < cuts->n_runs && r == 0; i++) {
		struct run *run = cuts->runs[i];

		if (!run_is_resident(run))
			continue;
		cuts->slices[(size_t)run_worker(run) * cuts->n_runs + i] =
			(struct slice){ .elements = run_memory(run), .n = run_n_items(run) };
		r = homes_sample(&cuts->homes, run, run_n_items(run) / n_samples + 1);
	}
	return r < 0 ? r : homes_wait(&cuts->homes);
}

int resident_cuts_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		       struct resident_cuts *ret_cuts)
{
	const size_t n = (size_t)job->n_workers * n_runs + 1;
	int r;

	*ret_cuts = (struct resident_cuts){ .job = job, .runs = runs, .n_runs = n_runs };
	ret_cuts->slices = calloc(n, sizeof *ret_cuts->slices);
	ret_cuts->cuts = calloc(n, sizeof *ret_cuts->cuts);
	if (!ret_cuts->slices || !ret_cuts->cuts)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	r = homes_open(job, runs, n_runs, &ret_cuts->homes);
	return r < 0 ? r : sample(ret_cuts);
}

void resident_cuts_close(struct resident_cuts *cuts)
{
	homes_close(&cuts->homes);
	free(cuts->slices);
	free(cuts->cuts);
}

/* Every device cuts the runs that are in its memory. */
int resident_cuts_find(struct resident_cuts *cuts, const void *key, uint32_t run,
		       uint64_t *ret_cuts)
{
	const struct homes *homes = &cuts->homes;
	const uint32_t n_runs = cuts->n_runs;
	int r = 0;

	for (uint32_t i = 0; i < homes->n && r == 0; i++)
		if (homes->of[i].lane)
			r = lane_cut(homes->of[i].lane,
				     &(struct cut_op){ .layout = cuts->job->layout,
						       .slices = cuts->slices + (size_t)i * n_runs,
						       .k = n_runs,
						       .key = key,
						       .slice = run,
						       .ret_cuts =
							       cuts->cuts + (size_t)i * n_runs });
	if (r == 0)
		r = homes_wait(homes);
	for (uint32_t i = 0; i < n_runs && r == 0; i++) {
		const struct run *resident = cuts->runs[i];

		if (run_is_resident(resident))
			ret_cuts[i] = cuts->cuts[(size_t)run_worker(resident) * n_runs + i];
	}
	return r;
}
