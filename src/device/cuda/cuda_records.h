/*
 * cuda_records.h - operations on records on a GPU
 *
 * Internal to the CUDA back end (backend_cuda.c): its operations on records.
 */
#pragma once

#include "src/device/cuda/cuda_queue.h"

size_t cuda_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);
int cuda_sort_records(struct device_queue *queue, const struct sort_op *op);
int cuda_merge_records(struct device_queue *queue, const struct merge_op *op);
int cuda_cut_items(struct device_queue *queue, const struct cut_op *op);
int cuda_sample_items(struct device_queue *queue, const struct sample_op *op);
