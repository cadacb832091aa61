/*
 * resident_split - where a place cuts resident runs (see resident_split.h)
 */
#include "src/merge/resident_split.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

enum {
	/* Blocks of resident runs that are looked at: of all together, and of each at least. */
	TOTAL_RUN_SAMPLES = 1 << 14,
	MIN_RUN_SAMPLES = 32,
};

static int sample_resident_runs(struct resident_split *split)
{
	uint64_t n_samples = TOTAL_RUN_SAMPLES / (split->n_runs ? split->n_runs : 1);
	int r = 0;

	if (n_samples < MIN_RUN_SAMPLES)
		n_samples = MIN_RUN_SAMPLES;
	for (uint32_t i = 0; i < split->n_runs && r == 0; i++) {
		struct run *run = split->runs[i];

		if (!run_is_resident(run))
			continue;
		split->slices[(size_t)run_device_index(run) * split->n_runs + i] =
			(struct slice){ .elements = run_memory(run), .n = run_n_items(run) };
		r = run_devices_sample(&split->run_devices, run, run_n_items(run) / n_samples + 1);
	}
	return r < 0 ? r : run_devices_wait(&split->run_devices);
}

int resident_split_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
			struct resident_split *ret_split)
{
	const size_t n = (size_t)job->n_devices * n_runs + 1;
	int r;

	*ret_split = (struct resident_split){ .job = job, .runs = runs, .n_runs = n_runs };
	ret_split->slices = calloc(n, sizeof *ret_split->slices);
	ret_split->cuts = calloc(n, sizeof *ret_split->cuts);
	if (!ret_split->slices || !ret_split->cuts)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	r = run_devices_open(job, runs, n_runs, &ret_split->run_devices);
	return r < 0 ? r : sample_resident_runs(ret_split);
}

void resident_split_close(struct resident_split *split)
{
	run_devices_close(&split->run_devices);
	free(split->slices);
	free(split->cuts);
}

/* Every device cuts the runs that are in its memory. */
int resident_split_find(struct resident_split *split, const void *key, uint32_t run,
			uint64_t *ret_cuts)
{
	const struct run_devices *devices = &split->run_devices;
	const uint32_t n_runs = split->n_runs;
	int r = 0;

	for (uint32_t i = 0; i < devices->n && r == 0; i++)
		if (devices->devices[i].queue)
			r = device_queue_cut(
				devices->devices[i].queue,
				&(struct cut_op){ .layout = split->job->layout,
						  .slices = split->slices + (size_t)i * n_runs,
						  .k = n_runs,
						  .key = key,
						  .slice = run,
						  .ret_cuts = split->cuts + (size_t)i * n_runs });
	if (r == 0)
		r = run_devices_wait(devices);
	for (uint32_t i = 0; i < n_runs && r == 0; i++) {
		const struct run *resident = split->runs[i];

		if (run_is_resident(resident))
			ret_cuts[i] = split->cuts[(size_t)run_device_index(resident) * n_runs + i];
	}
	return r;
}
