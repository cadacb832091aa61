/*
 * radix_sort - radix sort for elements of 4, 8 and 16 bytes (see radix_sort.h)
 */
#include "src/device/cpu/radix_sort.h"

#include <string.h>

#include "src/record/key_encoding.h"

enum {
	N_DIGITS = 256,
	INSERTION_N = 24, /* below that, insertion sort is faster than clearing 256 counters */
	PIECE_NBYTES = 1 << 19, /* a piece and its scratch fit a second-level cache of 1 MiB */
};

/* Turn the numbers of elements into the starts of their buckets. */
static void counts_to_starts(uint64_t counts[N_DIGITS])
{
	uint64_t sum = 0;

	for (unsigned digit = 0; digit < N_DIGITS; digit++) {
		const uint64_t count = counts[digit];

		counts[digit] = sum;
		sum += count;
	}
}

#define ELEMENT uint32_t
#define NAME(stem) stem##_4
#include "src/device/cpu/radix_sort.inc"

#define ELEMENT uint64_t
#define NAME(stem) stem##_8
#include "src/device/cpu/radix_sort.inc"

#define ELEMENT uint128_t
#define NAME(stem) stem##_16
#include "src/device/cpu/radix_sort.inc"
