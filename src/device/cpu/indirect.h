/*
 * indirect - elements that refer to records which stay where they are, and the way back
 */
#pragma once

#include "src/device/backend.h"

/* As encode_op and decode_op say of references. */
void cpu_encode_indirect(const struct encode_op *op);
void cpu_decode_indirect(const struct decode_op *op);
