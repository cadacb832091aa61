/*
 * numbered_runs.h - runs of numbers on any tier
 */
#pragma once

#include "tests/support/job_fixture.h"

enum { LONG_RUN = 12000 };

static inline int start(void **state)
{
	return fixture_start(state);
}

static inline int finish(void **state)
{
	if (job.n_devices)
		job_stop();
	return fixture_finish(state);
}

/* Return the i-th of the n encoded keys of run `run`. */
typedef encoded_key_t number_fn(uint64_t i, uint64_t n, uint64_t run);

static inline encoded_key_t random_number(uint64_t i, uint64_t n, uint64_t run)
{
	(void)n;
	return scramble(i, run) >> 32;
}

static inline encoded_key_t one_number(uint64_t i, uint64_t n, uint64_t run)
{
	(void)i, (void)n, (void)run;
	return 77;
}

/* Run 0 has the largest numbers, the last run the smallest. */
static inline encoded_key_t descending_runs(uint64_t i, uint64_t n, uint64_t run)
{
	return (1000 - run) * n + i;
}

static inline void add_numbered_run(enum tier tier, number_fn *number, uint64_t n, uint64_t run)
{
	encoded_key_t *keys = malloc((n + 1) * sizeof *keys);

	assert_non_null(keys);
	for (uint64_t i = 0; i < n; i++)
		keys[i] = number(i, n, run);
	add_run(tier, keys, n);
	free(keys);
}

enum tier_mix { TIERS_ALL_RESIDENT, TIERS_ALL_SPILLED, TIERS_MIXED, N_TIER_MIXES };

static inline enum tier tier_of(enum tier_mix mix, uint64_t run)
{
	return mix == TIERS_ALL_RESIDENT ? TIER_RESIDENT :
	       mix == TIERS_ALL_SPILLED  ? TIER_SPILLED :
					   run % 2;
}
