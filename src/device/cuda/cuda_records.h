/*
 * cuda_records - the operations on records, on a GPU
 *
 * For the CUDA back end only (src/device/cuda/backend_cuda.c): its row for records.
 */
#pragma once

#include "src/device/cuda/cuda_queue.h"

size_t cuda_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);
int cuda_sort_records(struct device_queue *queue, const struct sort_op *op);
int cuda_merge_records(struct device_queue *queue, const struct merge_op *op);
int cuda_cut_items(struct device_queue *queue, const struct cut_op *op);
int cuda_sample_items(struct device_queue *queue, const struct sample_op *op);
