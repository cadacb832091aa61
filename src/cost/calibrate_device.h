/*
 * calibrate_device - how fast a device sorts, merges and copies
 *
 * Part of calibrate.c. The operations of the back end work on random records.
 */
#pragma once

#include "src/cost/calibrate.h"

/*
 * Measure one queue, in at most nbytes; where queues share the processors, and where there are
 * several devices, all together do so many times as much; one that is there twice is one. What
 * cannot be measured stays as it is in *rates. Returns whether there was memory for it. Messages
 * are to be muted.
 */
bool calibrate_device(const struct job *job, uint64_t nbytes, struct stage_rates *rates);
