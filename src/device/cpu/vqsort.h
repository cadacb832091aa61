/*
 * vqsort - Highway's vectorised quicksort, for the two element types it can be trusted with
 *
 * Only with HAVE_HIGHWAY. In place, no allocation, any distribution in O(n log n); picks the
 * vector instructions of the machine at run time. (Blacher, Giesen, Sanders and Wassenberg,
 * "Vectorized and performance-portable quicksort", 2022.)
 *
 * Not offered: u32, which libhwy 1.0.3 sorts several times slower than our radix sort; floats,
 * whose infinities, NaNs and -0.0 it loses; key-value pairs, of which it loses those with the
 * largest key.
 *
 * Not everywhere: where Highway has no vectors for the processor, on x86 without SSSE3 for example,
 * it aborts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Can it sort on this processor? If not, the others may not be called. */
bool vqsort_is_supported(void);

/* elements: n of 8 bytes, aligned to 8. */
void vqsort_8(void *elements, size_t n);

/* elements: n of 16 bytes, aligned to 16, as little-endian 128-bit integers. */
void vqsort_16(void *elements, size_t n);

#ifdef __cplusplus
}
#endif
