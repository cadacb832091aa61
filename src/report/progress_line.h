/*
 * progress_line - how far a sort is, as a line for a person
 */
#pragma once

#include "src/base/stats.h"

/*
 * The line, without its end: "forming runs: 43 %, 1.2 GiB/s, 0:12 left; in all 20 %, 0:40 left".
 * The whole is left out where there is only one phase, or one is of unknown size. Empty if no phase
 * has begun.
 */
enum { PROGRESS_LINE_NBYTES = 128 };
void progress_line(const struct stats_progress *at, char line[static PROGRESS_LINE_NBYTES]);
