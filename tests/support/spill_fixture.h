/*
 * spill_fixture - extents of known bytes, stored and looked for
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "io/store/spill.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = 100000, N_IN_PAGES = 25 * SPILL_ALIGN_NBYTES };

static unsigned char data[N];

static inline struct spill_extent store(struct spill *spill, size_t nbytes)
{
	struct spill_extent extent;

	assert_int_equal(spill_write(spill, data, nbytes, &extent), 0);
	assert_int_equal(extent.nbytes, nbytes);
	return extent;
}

static inline void assert_stored(struct spill *spill, struct spill_extent extent)
{
	unsigned char *back = guarded_alloc(extent.nbytes);

	assert_int_equal(spill_read(spill, extent, back), 0);
	assert_memory_equal(back, data, extent.nbytes);
	guarded_free(back, extent.nbytes);
}
