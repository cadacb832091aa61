/*
 * unique - keep the first of equal elements (see unique_op)
 */
#pragma once

#include "src/device/backend.h"

void cpu_unique(const struct unique_op *op);
