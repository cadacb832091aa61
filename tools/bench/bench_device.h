/*
 * bench_device.h - device code of the kernel benchmarks: CUB, Thrust, merge variants and splitters
 *
 * A C interface to C++ and CUDA. Everything runs in the default stream. Functions return 0 or a
 * CUDA error code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/bench/kernel_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill device memory with n keys of a distribution. */
int bench_fill_keys(void *elements, uint32_t element_nbytes, uint64_t n,
		    enum key_distribution distribution);

/*
 * Fill device memory with sorted runs of run_n elements: element i of a run is random between its
 * neighbours.
 */
int bench_fill_runs(void *elements, uint32_t element_nbytes, uint64_t n, uint64_t run_n);

/* Compare memory; waits for the result. */
int bench_compare_memory(const void *a, const void *b, size_t nbytes, bool *ret_is_different);

/*
 * Sort n elements: radix sort from `elements` to `out`, merge sort in place. scratch NULL: only set
 * *scratch_nbytes.
 */
int cub_radix_sort(void *scratch, size_t *scratch_nbytes, const void *elements, void *out,
		   uint32_t element_nbytes, uint64_t n);
int cub_merge_sort(void *scratch, size_t *scratch_nbytes, void *elements, uint32_t element_nbytes,
		   uint64_t n);

/* Merge two sorted slices of u64 with thrust::merge. */
int thrust_merge(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b, uint64_t *out);

/*
 * --- merge variants (bench_merge_variants.cu) ---
 *
 * Merges of two sorted slices of u64: the steps by which a merge kernel becomes fast, each in the
 * simplest form that shows it. The product uses kernels/sort/merge_pass.cu.
 */

typedef int merge_variant_fn(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
			     uint64_t *out);

/* Each thread merges a piece of 16 outputs, found by co-rank, straight from device memory. */
merge_variant_fn merge_variant_direct;

/* Each block stages the slices of a tile in shared memory, where its threads merge pieces. */
merge_variant_fn merge_variant_tiles;

/*
 * Each block merges many tiles in sequence from two circular buffers in shared memory. What a tile
 * leaves stays for the next, so each element is loaded once, and only the first tile is searched
 * for in device memory (Kirk and Hwu, "Programming massively parallel processors", ch. 12).
 */
merge_variant_fn merge_variant_circular;

/*
 * --- splitters (bench_splitters.cu) ---
 *
 * The cuts of a merge's first pass. Runs are of u64, of equal length, side by side, at least 4.
 */

/* A row has the cuts of all runs of a group at one boundary of tiles. */
struct split_pass {
	const uint64_t *elements; /* device memory, as are `cuts` and `keys` */
	uint64_t n, run_n;
	uint32_t fan_in, tile_n; /* runs of a group; elements of a tile */
	uint64_t n_groups, tiles_per_group;
	uint64_t n_rows;
	const uint64_t **cuts;    /* by split_exactly() */
	const uint64_t **by_keys; /* by split_by_keys() */
	uint64_t *keys; /* of each row the first key after its cuts; computed with `cuts` */
};

/* Close after a failed open, too. */
int split_pass_open(struct split_pass *split, const uint64_t *elements, uint64_t n, uint32_t k);
void split_pass_close(struct split_pass *split);

/* Cut as the product does: the cuts of each row sum to the rank of the boundary. */
int split_exactly(const struct split_pass *split);

/*
 * Cut at given keys, for comparison: one thread for each run of a row searches the whole run for
 * the key of the row, and tiles have any length. The keys are the exact ones, so that the result is
 * known.
 */
int split_by_keys(const struct split_pass *split);

/* Check that both agree with each other and with launch_cut(). Cuts, and waits for the result. */
int split_check(const struct split_pass *split, bool *ret_is_correct);

#ifdef __cplusplus
}
#endif
