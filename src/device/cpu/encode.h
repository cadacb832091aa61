/*
 * encode - records to elements and back, and what is learnt on the way
 */
#pragma once

#include "src/device/backend.h"

/*
 * Records to elements; their digest is added to op->ret_digest if that is not NULL. Records may
 * have any alignment, elements are aligned to their size. See encode_op for what may overlap.
 */
void cpu_encode(const struct encode_op *op);

/* Elements to records, in place if asked; assigns *op->ret. Alignment as above. */
void cpu_decode(const struct decode_op *op);
