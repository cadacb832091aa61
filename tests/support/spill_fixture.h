/*
 * spill_fixture.h - write and check extents of known bytes
 */
#pragma once

#include "io/spill/spill.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N = 100000, N_IN_PAGES = 25 * SPILL_ALIGN_NBYTES };

extern unsigned char spill_bytes[N];

/* Fill spill_bytes with a pattern: the setup of a group of tests. */
int fill_spill_bytes(void **state);

struct spill_extent store_bytes(struct spill *spill, size_t nbytes);

void assert_stored(struct spill *spill, struct spill_extent extent);
