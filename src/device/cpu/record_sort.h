/*
 * record_sort - sort a chunk of records, merge slices of items, with one thread
 *
 * See the operations in src/device/backend.h. No allocation; any number of calls at the same time.
 */
#pragma once

#include "src/device/backend.h"

/*
 * Bytes that the scratch must have, aligned to 16: to sort n records (k == 0), or to merge k slices
 * of n items in all.
 */
size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

void cpu_sort_records(const struct sort_op *op);
void cpu_merge_records(const struct merge_op *op);
