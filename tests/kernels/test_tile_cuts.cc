/*
 * test_tile_cuts.cc - parts of tile_cuts.cu that only huge runs reach
 *
 * Floats do not represent each integer above 2^24. A pivot computed with floats may then be the end
 * of the range, where there is no element.
 */
#define GSORT_SPLIT 64, 8
#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/sort/tile_cuts.cu"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}

template <class Index> static void check_range(Index width)
{
	const Index fractions[] = { 0, 1, width / 3, width / 2, width - 2, width - 1 };

	assert_true(pivot_offset<Index>(width, 0, width, false) == 0);
	assert_true(pivot_offset<Index>(width, 1, 2, true) == width / 2);
	for (Index missing : fractions) {
		const Index at = pivot_offset<Index>(width, missing, width, false);
		const Index far = at < missing ? missing - at : at - missing;

		assert_true(at < width);
		assert_true(far <= width / 1000000 + 1);
	}
}

static void pivot_lies_in_its_range_whatever_floats_make_of_it(void **)
{
	for (uint32_t bit = 4; bit < 32; bit++)
		for (uint32_t i = 0; i < 16; i++)
			check_range<uint32_t>((UINT32_C(1) << bit) + i - 8);
	for (uint64_t bit = 4; bit < 40; bit++)
		for (uint64_t i = 0; i < 16; i++)
			check_range<uint64_t>((UINT64_C(1) << bit) + i - 8);
}

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pivot_lies_in_its_range_whatever_floats_make_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
