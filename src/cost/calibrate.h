/*
 * calibrate.h - measure the rate of each stage when it runs alone
 *
 * A short measurement with what the sort itself would use: its input, its back end, its directories
 * and as many threads. The rates predict the time of a plan (estimate.h); after a sort they show
 * how near a stage came to its peak rate.
 *
 * Each measurement starts with few bytes and repeats with four times as many, as long as that can
 * be expected to end in time.
 */
#pragma once

#include "src/cost/estimate.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"

/* What to measure, and what that may cost. */
struct calibration_request {
	uint64_t nbytes;    /* of host memory and of device memory */
	uint64_t budget_ns; /* of all measurements */
	bool stages[N_STAGES];
};

/* The time that --explain may take. */
#define CALIBRATE_EXPLAIN_NS UINT64_C(2000000000)

/* Return the memory that measuring may take: a quarter of the plan's. */
uint64_t calibrate_max_nbytes(const struct plan *plan);

/*
 * Make a request after a sort: the stages of phases that took at least a second, in a tenth of the
 * sort's time. Returns false if there are none.
 */
bool calibrate_request_from_stats(const struct stats_totals *totals, uint64_t nbytes,
				  struct calibration_request *ret_request);

/*
 * Measure with an open job that is not used otherwise. Rates that cannot be measured are 0; errors
 * are not reported.
 */
void calibrate_stages(const struct job *job, const struct sort_spec *spec,
		      const struct calibration_request *request, struct stage_rates *ret_rates);
