/*
 * spill_fixture.c - extents of known bytes (see spill_fixture.h)
 */
#include "tests/support/spill_fixture.h"

unsigned char spill_bytes[N];

int fill_spill_bytes(void **state)
{
	(void)state;
	fill_pattern(spill_bytes, sizeof spill_bytes, 1);
	return 0;
}

struct spill_extent store_bytes(struct spill *spill, size_t nbytes)
{
	struct spill_extent extent;

	assert_int_equal(spill_write(spill, spill_bytes, nbytes, &extent), 0);
	assert_int_equal(extent.nbytes, nbytes);
	return extent;
}

void assert_stored(struct spill *spill, struct spill_extent extent)
{
	unsigned char *buffer = guarded_alloc(extent.nbytes);

	assert_int_equal(spill_read(spill, extent, buffer), 0);
	assert_memory_equal(buffer, spill_bytes, extent.nbytes);
	guarded_free(buffer, extent.nbytes);
}
