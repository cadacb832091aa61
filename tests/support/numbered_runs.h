/*
 * numbered_runs - runs of numbers, on any tier, to be merged
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
	if (job.n_workers)
		job_stop();
	return fixture_finish(state);
}

/* Code i of n of run number `run`. */
typedef code_t number_fn(uint64_t i, uint64_t n, uint64_t run);

static inline code_t random_number(uint64_t i, uint64_t n, uint64_t run)
{
	(void)n;
	return scramble(i, run) >> 32;
}

static inline void add_numbers(enum tier tier, number_fn *number, uint64_t n, uint64_t run)
{
	code_t *codes = malloc((n + 1) * sizeof *codes);

	assert_non_null(codes);
	for (uint64_t i = 0; i < n; i++)
		codes[i] = number(i, n, run);
	add_run(tier, codes, n);
	free(codes);
}

enum tiers { ALL_RESIDENT, ALL_SPILLED, MIXED, N_TIERS };

static inline enum tier tier_of(enum tiers tiers, uint64_t run)
{
	return tiers == ALL_RESIDENT ? RESIDENT : tiers == ALL_SPILLED ? SPILLED : run % 2;
}
