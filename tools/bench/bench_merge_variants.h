/*
 * bench_merge_variants - the steps by which a merge kernel becomes fast, for the benchmark only
 *
 * Merges of two sorted slices of u64, each step in the simplest form that shows it. What the
 * product uses is kernels/sort/merge_pass.cu.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int merge_variant_fn(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
			     uint64_t *out);

/* One thread merges a piece of 16 outputs, found by co-rank, straight from device memory. */
merge_variant_fn merge_variant_direct;

/* A block stages a tile's slices in shared memory, and its threads merge pieces of them there. */
merge_variant_fn merge_variant_tiles;

/*
 * A block merges many tiles one after the other out of two circular buffers in shared memory: what
 * a tile has not used stays for the next, so every element is loaded once and only the first tile
 * is searched for in device memory (Kirk and Hwu, "Programming massively parallel processors", ch.
 * 12).
 */
merge_variant_fn merge_variant_circular;

#ifdef __cplusplus
}
#endif
