/*
 * trial - how fast a device sorts, merges and copies
 *
 * Part of links.c. The operations of the back end work on random records.
 */
#pragma once

#include "src/measure/links.h"

/*
 * Measure one lane, in at most nbytes; on a unified device all lanes together do so many times as
 * much. What cannot be measured stays as it is in *rates. Returns whether there was memory for it.
 * Messages are to be muted.
 */
bool trial_measure(const struct engine *engine, uint64_t nbytes, struct link_rates *rates);
