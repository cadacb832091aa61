/*
 * cut_and_sample - where a splitter cuts sorted slices, and samples of a slice (see backend.h)
 */
#pragma once

#include "src/device/backend.h"

/*
 * The number of elements of the slice that come before `key`: the smaller ones, and if
 * equal_before the equal ones. key must be the value of an element of element_nbytes.
 */
uint64_t cpu_cut_slice(const struct slice *slice, uint32_t element_nbytes, encoded_key_t key,
		       bool equal_before);

/* As cut_op and sample_op say. */
void cpu_cut_elements(const struct cut_op *op);
void cpu_cut_items(const struct cut_op *op);
void cpu_sample_elements(const struct sample_op *op);
void cpu_sample_items(const struct sample_op *op);
