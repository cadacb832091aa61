/*
 * cpu_ops.h - operations of the CPU back end on elements and on records, each run by one thread
 */
#pragma once

#include "src/device/backend.h"
#include "src/device/cpu/element_format.h"
#include "src/device/cpu/gather.h"

/*
 * Return the number of elements of the slice before `key`: smaller ones, and equal ones if
 * equal_before. The key must be the value of an element of element_nbytes.
 */
uint64_t cpu_cut_slice(const struct slice *slice, uint32_t element_nbytes, encoded_key_t key,
		       bool equal_before);

/* See cut_op and sample_op. */
void cpu_cut_elements(const struct cut_op *op);
void cpu_cut_items(const struct cut_op *op);
void cpu_sample_elements(const struct sample_op *op);
void cpu_sample_items(const struct sample_op *op);

/* See distribute_op. */
size_t cpu_distribute_scratch_nbytes(const struct layout *layout, uint64_t n);
void cpu_distribute(const struct distribute_op *op);

struct unique_elements_op {
	void *elements; /* compacted in place */
	uint64_t n;
	uint32_t element_nbytes;
	const struct layout *layout; /* to digest dropped elements as records */
	uint64_t *ret_n;             /* elements left */
	struct digest *ret_dropped;  /* assigned */
};

void cpu_unique(const struct unique_elements_op *op);

/* See pack_op and unpack_op. */
void cpu_pack(const struct pack_op *op);
void cpu_unpack(const struct unpack_op *op);

/* See encode_op and decode_op for indirect layouts. */
void cpu_encode_indirect(const struct encode_op *op);
void cpu_decode_indirect(const struct decode_op *op);

/*
 * --- sort a chunk of records and merge slices of items (record_sort.c) ---
 *
 * See the operations in src/device/backend.h. Allocates nothing. Reentrant.
 */

/*
 * Return the size in bytes of the scratch for sorting n records (k == 0), or for merging k slices
 * of n items in all. The scratch must be aligned to 16 bytes.
 */
size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

/*
 * Sort a chunk. Once cancellation is requested (NULL: never), the function returns early and the
 * items are undefined.
 */
void cpu_sort_records(const struct sort_op *op, const struct cancellation *cancellation);
void cpu_merge_records(const struct merge_op *op);
