/*
 * vqsort - Highway's vectorised quicksort behind a C interface (see vqsort.h)
 */
#include "src/device/cpu/vqsort.h"

#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

/* Checked once, because it uses instructions that trap in a virtual machine. */
bool vqsort_is_supported(void)
{
	static const bool is_supported = (hwy::SupportedTargets() & ~(HWY_SCALAR | HWY_EMU128)) !=
					 0;

	return is_supported;
}

void vqsort_8(void *elements, size_t n)
{
	hwy::Sorter()(static_cast<uint64_t *>(elements), n, hwy::SortAscending());
}

void vqsort_16(void *elements, size_t n)
{
	hwy::Sorter()(static_cast<hwy::uint128_t *>(elements), n, hwy::SortAscending());
}
