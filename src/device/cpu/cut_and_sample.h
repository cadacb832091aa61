/*
 * cut_and_sample - find where a splitter cuts sorted slices, and sample slices (see backend.h)
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
