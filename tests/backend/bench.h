/*
 * bench - the operations of a back end against the clock
 */
#pragma once

#include "tests/backend/subject.h"

/* Print a table of medians: each operation alone, in one lane. */
void bench_operations(struct subject *subject);
