/*
 * cache_policy - what becomes of files that a sort writes
 */
#pragma once

#include "io/spill/spill.h"
#include "src/plan/job.h"

enum page_cache_use {
	PAGE_CACHE_HOLDS,       /* it takes them */
	PAGE_CACHE_MAY_HOLD,    /* so do they fit, but to write past it may be faster (adaptive.h) */
	PAGE_CACHE_IS_TOO_SMALL /* for them, beside what the plan takes: they are to pass it by */
};

/* For nbytes of files, of a job that is planned; its neighbours write as much. */
enum page_cache_use page_cache_use(const struct job *job, uint64_t nbytes);

/* Before anything is stored there. */
void page_cache_tell_spill(enum page_cache_use use, struct spill *spill);
