/*
 * spill_fixture - extents of known bytes, stored and looked for
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "io/spill/spill.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = 100000, N_IN_PAGES = 25 * SPILL_ALIGN_NBYTES };

extern unsigned char spill_bytes[N];

struct spill_extent store_bytes(struct spill *spill, size_t nbytes);

void assert_stored(struct spill *spill, struct spill_extent extent);
