/*
 * test_gensort - the sort benchmark's records are its own, from any number on
 *
 * The checksums (the sum of zlib's crc32 of each record) and the records quoted here were printed
 * by the benchmark's own gensort 1.5: gensort -c [-a | -s] [-bFIRST] COUNT /dev/null.
 */
#include "tools/gen/gen.h"

#include <stdlib.h>

#include "tests/support/unit_test.h"
#include <zlib.h>

enum { N_KINDS = GENSORT_SKEWED + 1, PART_RECORDS = 10000 };

static uint64_t sum_of(enum gensort_kind kind, uint64_t first, uint64_t n)
{
	unsigned char *part = malloc(PART_RECORDS * GENSORT_RECORD_NBYTES);
	struct gensort gensort;
	uint64_t sum = 0;

	assert_non_null(part);
	gensort_init(kind, first, n, &gensort);
	for (uint64_t at = 0; at < n; at += PART_RECORDS) {
		const uint64_t n_part_records = n - at < PART_RECORDS ? n - at : PART_RECORDS;

		gensort.set.fill(&gensort.set, at, n_part_records, part);
		for (uint64_t i = 0; i < n_part_records; i++)
			sum += crc32(0, part + i * GENSORT_RECORD_NBYTES, GENSORT_RECORD_NBYTES);
	}
	free(part);
	return sum;
}

TEST(million_records_have_the_published_programs_checksum)
{
	assert_int_equal(sum_of(GENSORT_ASCII, 0, 1000000), 0x7a19cff467438);
	assert_int_equal(sum_of(GENSORT_BINARY, 0, 1000000), 0x7a0e0d4868cd4);
	assert_int_equal(sum_of(GENSORT_SKEWED, 0, 1000000), 0x79f9a7e6de673);
}

/* Across 2^32; and, as lengths of numbers decide on the skew, 2^60 and the last numbers. */
TEST(records_far_away_have_the_published_programs_checksum)
{
	assert_int_equal(sum_of(GENSORT_ASCII, 4294967000, 1000), 0x1fb2272be23);
	assert_int_equal(sum_of(GENSORT_BINARY, 4294967000, 1000), 0x1ff3abdb77b);
	assert_int_equal(sum_of(GENSORT_SKEWED, 4294967000, 1000), 0x1f44400e385);
	assert_int_equal(sum_of(GENSORT_SKEWED, 1152921504606846900, 100), 0x348d22027d);
	assert_int_equal(sum_of(GENSORT_SKEWED, UINT64_C(18446744073709551000), 100), 0x3366d20ad7);
}
