/*
 * links - how fast the machine can do what each stage does
 *
 * A short measurement (some tens of milliseconds for each stage) with what the sort itself would
 * use: the input where it lies, the back end, the directories for temporary files and the output,
 * and as many threads. It says what a plan will take (estimate.h), and afterwards how near a stage
 * came to what it could do.
 */
#pragma once

#include "src/plan/engine.h"

/* Bytes per second of each stage when it runs alone, on all its threads; 0: not measured. */
struct link_rates {
	double rates[N_STAGES];
};

/*
 * Measure with an open engine, that nothing else uses, in at most nbytes of host memory and of
 * device memory. What cannot be measured stays 0; a measurement is no reason to fail.
 */
void links_measure(const struct engine *engine, const struct options *options, uint64_t nbytes,
		   struct link_rates *ret_rates);
