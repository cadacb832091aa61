/*
 * indirect - encode records as elements that refer to them, and decode these
 */
#pragma once

#include "src/device/backend.h"

/* See encode_op and decode_op for indirect layouts. */
void cpu_encode_indirect(const struct encode_op *op);
void cpu_decode_indirect(const struct decode_op *op);
