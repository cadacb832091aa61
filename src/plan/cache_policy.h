/*
 * cache_policy - what becomes of files that a sort writes
 */
#pragma once

#include "io/spill/spill.h"
#include "src/plan/job.h"

enum cache_policy {
	CACHE_USE,      /* it takes them */
	CACHE_ADAPTIVE, /* so do they fit, but to write past it may be faster (adaptive.h) */
	CACHE_BYPASS    /* for them, beside what the plan takes: they are to pass it by */
};

/* For nbytes of files, of a job that is planned; its neighbours write as much. */
enum cache_policy cache_policy_choose(const struct job *job, uint64_t nbytes);

/* Before anything is stored there. */
void cache_policy_apply_to_spill(enum cache_policy policy, struct spill *spill);
