/*
 * estimate - what a plan moves over each link, and how long that will take
 */
#pragma once

#include "src/cost/calibrate.h"

/* Bytes that each stage will move in each phase. */
struct stage_volumes {
	uint64_t nbytes[N_PHASES][N_STAGES];
};

/* What the stages will move of what is planned; with -u, if no two records are equal. */
void estimate_volumes(const struct plan *plan, const struct plan_request *request,
		      struct stage_volumes *ret_volumes);

/* Of a record, what a sort and a merge count: the element, where they handle nothing else. */
uint64_t estimate_sorted_nbytes(const struct layout *layout);
uint64_t estimate_merged_nbytes(const struct layout *layout);

/*
 * What a stage can do in a phase, in bytes per second; 0: not known. Of several devices only one
 * does the last merge, if it is not divided.
 */
double estimate_rate(const struct plan *plan, const struct stage_rates *rates, enum phase phase,
		     enum stage stage);

/* Seconds that a stage takes for so many bytes at that rate; 0 if it is not known. */
double estimate_stage_s(uint64_t nbytes, double rate);

/*
 * Seconds that the phase takes by these rates. Stages run at the same time, so it is as long as its
 * longest stage; where they share the processors, and it is at least as long as all
 * of them together, each with the threads that it has.
 * ret_bottleneck: the longest, or N_STAGES if nothing is moved.
 */
double estimate_phase_s(const struct plan *plan, const struct stage_volumes *volumes,
			const struct stage_rates *rates, enum phase phase,
			enum stage *ret_bottleneck);

/* The same of all phases; if the estimate is not complete, it takes longer. */
double estimate_total_s(const struct plan *plan, const struct stage_volumes *volumes,
			const struct stage_rates *rates);

/* Is anything moved in the phase? And is there a rate for everything that is moved? */
bool estimate_has_phase(const struct stage_volumes *volumes, enum phase phase);
bool estimate_is_complete(const struct stage_volumes *volumes, const struct stage_rates *rates);
