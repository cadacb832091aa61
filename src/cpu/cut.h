/*
 * cut - where a splitter cuts sorted slices, and samples of a slice (see cut_op and sample_op)
 */
#pragma once

#include "src/backend.h"

/* k binary searches. */
void cpu_cut(const struct cut_op *op);

void cpu_sample(const struct sample_op *op);
