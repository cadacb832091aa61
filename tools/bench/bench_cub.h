/*
 * bench_cub - what the kernels are compared with: CUB and Thrust, and device helpers of the
 * benchmark
 *
 * Plain C in front of C++ libraries. Everything runs in the default stream. Functions return 0 or
 * a CUDA error code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/bench/kernel_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill device memory with n elements of `keys`. */
int bench_fill_keys(void *elements, uint32_t element_nbytes, uint64_t n,
		    enum key_distribution distribution);

/* The same as sorted runs of run_n: element i of a run is a random one between its neighbours. */
int bench_fill_runs(void *elements, uint32_t element_nbytes, uint64_t n, uint64_t run_n);

/* Does memory of a and b differ anywhere? Waits. */
int bench_compare_memory(const void *a, const void *b, size_t nbytes, bool *ret_is_different);

/*
 * Sort n elements: radix from `elements` to `out`, merge in place. scratch NULL: set
 * *scratch_nbytes only.
 */
int cub_radix_sort(void *scratch, size_t *scratch_nbytes, const void *elements, void *out,
		   uint32_t element_nbytes, uint64_t n);
int cub_merge_sort(void *scratch, size_t *scratch_nbytes, void *elements, uint32_t element_nbytes,
		   uint64_t n);

/*
 * Sort n pairs of u64 by the first of each: radix from `input`, n keys and then n values, to `out`
 * likewise; merge in place, of pairs of 16 bytes whose upper half is the key, stably.
 */
int cub_radix_sort_pairs(void *scratch, size_t *scratch_nbytes, const void *input, void *out,
			 uint64_t n);
int cub_merge_sort_pairs(void *scratch, size_t *scratch_nbytes, void *pairs, uint64_t n);

/* thrust::merge of two sorted slices of u64. */
int thrust_merge(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b, uint64_t *out);

#ifdef __cplusplus
}
#endif
