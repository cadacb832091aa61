/*
 * vqsort - Highway's vectorised quicksort, for the two element types that it sorts well
 *
 * Only with HAVE_HIGHWAY. It sorts in place, allocates nothing, takes O(n log n) for any
 * distribution, and chooses the vector instructions at run time. (Blacher, Giesen, Sanders and
 * Wassenberg, "Vectorized and performance-portable quicksort", 2022.)
 *
 * Not used: u32, which libhwy 1.0.3 sorts several times slower than our radix sort; floats, because
 * it loses infinities, NaNs and -0.0; key-value pairs, because it loses those with the largest key.
 *
 * It aborts on processors for which Highway has no vectors, for example x86 without SSSE3.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return whether it works on this processor. If not, do not call the other functions. */
bool vqsort_is_supported(void);

/* Sort n elements of 8 bytes, aligned to 8. */
void vqsort_8(void *elements, size_t n);

/* Sort n elements of 16 bytes, aligned to 16: little-endian 128-bit integers. */
void vqsort_16(void *elements, size_t n);

#ifdef __cplusplus
}
#endif
