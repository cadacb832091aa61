/*
 * open_devices - the devices that a sort is done on
 *
 * All are of one back end. Those that were asked for are wanted, each of them; else there are as
 * many as pay for their start, and one that cannot be had is done without, as long as nothing has
 * been read. Of several ranks each has its own of them.
 */
#pragma once

#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/sort/device_assignment.h"

/* What is known of the sort, beside its spec. */
struct open_devices_params {
	unsigned n_threads;    /* of the CPU */
	uint64_t input_nbytes; /* that this process sorts; INPUT_SIZE_UNKNOWN: nobody knows */
	struct device_assignment assignment;
};

/*
 * Open the devices, and fill in job.workers and job.info. Returns 0; -ENOMEM without a message:
 * none has memory left; or another negative errno after a message: none can be had, or not one that
 * is wanted. close_devices() is due in both cases.
 */
int open_devices(struct job *job, const struct backend *backend, const struct sort_spec *spec,
		 const struct open_devices_params *params);

/* None may be open. */
void close_devices(struct job *job);
