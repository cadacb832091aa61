/*
 * pack - pack sorted elements into stored blocks, and unpack them (see pack_op, unpack_op)
 */
#pragma once

#include "src/device/backend.h"

void cpu_pack(const struct pack_op *op);
void cpu_unpack(const struct unpack_op *op);
