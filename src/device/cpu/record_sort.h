/*
 * record_sort - sort a chunk of records and merge slices of items, with one thread
 *
 * See the operations in src/device/backend.h. Allocates nothing. Reentrant.
 */
#pragma once

#include "src/device/backend.h"

/*
 * Return the scratch, aligned to 16 bytes, to sort n records (k == 0) or to merge k slices of n
 * items in all.
 */
size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

void cpu_sort_records(const struct sort_op *op);
void cpu_merge_records(const struct merge_op *op);
