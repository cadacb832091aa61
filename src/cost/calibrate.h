/*
 * calibrate - how fast the machine can do what each stage does
 *
 * A short measurement with what the sort itself would use: the input where it lies, the back end,
 * the directories for temporary files and the output, and as many threads. It says what a plan will
 * take (estimate.h), and afterwards how near a stage came to what it could do.
 *
 * How much can be moved in a given time is what is to be found out, so each thing is measured with
 * a little first, and then with four times as much, as long as that will be done in time.
 */
#pragma once

#include "src/plan/job.h"
#include "src/plan/sort_spec.h"

/* Bytes per second of each stage when it runs alone, on all its threads; 0: not measured. */
struct stage_rates {
	double bytes_per_s[N_STAGES];
	uint32_t n_devices; /* that those of a device are of, all together; 0: it is one */
};

/* What is to be measured, and how much that may take. */
struct calibration_request {
	uint64_t nbytes;    /* at most, of host memory and of device memory */
	uint64_t budget_ns; /* in all */
	bool stages[N_STAGES];
};

/* For --explain, which is all that is done then. */
#define CALIBRATE_EXPLAIN_NS UINT64_C(2000000000)

/* Of the memory of a plan, what measuring may take: a quarter. */
uint64_t calibrate_max_nbytes(const struct plan *plan);

/*
 * After a sort: the stages of phases that took so long that it is worth it, in a tenth of the
 * sort's time. False if there are none.
 */
bool calibrate_request_from_stats(const struct stats_totals *totals, uint64_t nbytes,
				  struct calibration_request *ret_request);

/*
 * Measure with an open job that nothing else uses. What cannot be measured stays 0; a
 * measurement is no reason to fail.
 */
void calibrate_stages(const struct job *job, const struct sort_spec *spec,
		      const struct calibration_request *request, struct stage_rates *ret_rates);
