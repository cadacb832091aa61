/*
 * cpu_ops.h - the operations of the CPU back end that take one pass, each by one thread
 */
#pragma once

#include "src/device/backend.h"

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
