/*
 * reference - what every operation of a back end must come to
 *
 * A table of functions that take the arguments of the operations (backend.h; of elements those of
 * the CPU back end's functions), in host memory, and do them at once. The plain one is made of the
 * definitions in layout.h and digest.h, qsort and linear searches: slow, and simple enough to be
 * right. The CPU back end is held against it, and is in turn the reference for other back ends.
 */
#pragma once

#include "src/device/backend.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/device/cpu/cpu_ops.h"

struct reference {
	const char *name;
	void (*encode)(const struct encode_op *op);
	void (*decode)(const struct decode_op *op);
	void (*sort)(const struct sort_elements_op *op);
	void (*cut)(const struct cut_op *op);
	void (*merge)(const struct merge_elements_op *op);
	void (*unique)(const struct unique_elements_op *op);
	void (*sample)(const struct sample_op *op);
	void (*pack)(const struct pack_op *op);
	size_t (*sort_scratch_nbytes)(uint64_t n, uint32_t element_nbytes);
	size_t (*merge_scratch_nbytes)(uint32_t k, uint64_t n, uint32_t element_nbytes);
	void (*sort_records)(const struct sort_op *op);
	void (*merge_records)(const struct merge_op *op);
	size_t (*records_scratch_nbytes)(const struct layout *layout, uint32_t k, uint64_t n);
};

extern const struct reference reference_plain;
extern const struct reference reference_cpu;

/* Of the plain one; reference_records.c */
void plain_sort_records(const struct sort_op *op);
void plain_merge_records(const struct merge_op *op);
void plain_cut_items(const struct cut_op *op);
void plain_sample_items(const struct sample_op *op);

/* Of the plain one; reference_packed.c */
void plain_pack(const struct pack_op *op);
