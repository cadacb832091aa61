/*
 * bench_splitters - the cuts of a merge's first pass, exact ones and plain ones, for the benchmark
 *
 * Runs are of u64, equally long and side by side; 4 runs or more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row is the cuts of all runs of a group at one boundary of tiles. */
struct split_pass {
	const uint64_t *elements; /* device memory, as is what `cuts` and `keys` point to */
	uint64_t n, run_n;
	uint32_t fan_in, tile_n; /* runs of a group, elements of a tile */
	uint64_t n_groups, tiles_per_group;
	uint64_t n_rows;
	const uint64_t **cuts;    /* by split_exactly() */
	const uint64_t **by_keys; /* by split_by_keys() */
	uint64_t *keys;           /* of each row: the first after its cuts; made with `cuts` */
};

/* All functions return 0 or a CUDA error code. Close after a failed open too. */
int split_pass_open(struct split_pass *split, const uint64_t *elements, uint64_t n, uint32_t k);
void split_pass_close(struct split_pass *split);

/* What the product does: every row's cuts sum to the boundary's rank. */
int split_exactly(const struct split_pass *split);

/*
 * What cutting by keys that somebody else has chosen costs: a thread for each run of a row searches
 * the whole run for the row's key, and tiles are as long as they happen to be. (These keys are the
 * exact ones, so that the result is known.)
 */
int split_by_keys(const struct split_pass *split);

/* Do both agree, with each other and with launch_cut(), and are they right? Cuts; waits. */
int split_check(const struct split_pass *split, bool *ret_is_correct);

#ifdef __cplusplus
}
#endif
