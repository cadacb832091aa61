/*
 * merge2_avx512 - the two-way merge of u32 and u64 elements, a vector at a time
 *
 * Hold a vector of elements, the largest of what was loaded so far and is not out yet. Load the
 * next vector of the list whose next element is the smaller one: all that is not loaded then is
 * at least as large as the lower half of what is in hand, so that half is the next output. A
 * bitonic network tells the halves apart: the held vector in descending order against the new
 * one in ascending order gives the lower and the upper half, three more rounds (u32: four) sort
 * both (Chhugani et al., "Efficient implementation of sorting on multi-core SIMD CPU
 * architecture", 2008). Elements are codes, so it is no loss that the network is not stable.
 *
 * A round is a min, a max, and two shuffles that line up the next pairs of *both* halves, so
 * that no lane idles. On Intel all of these use one port: sixteen per step are what bounds the
 * merge, 0.5 ns per element, if two independent chains of steps overlap; one alone waits for
 * its own results, 0.9 ns, and a third gains nothing. The second chain is the mirror image of
 * the first: it merges from the ends downwards, holding the smallest. Each makes half of the
 * output; no search has to find where they meet, as both know how much they make.
 *
 *	a  [ front > . . . . . < back ]		out  [ front > | < back ]
 *	b  [ front > . . . . . < back ]
 *
 * Ends: past its end a list is read as the largest value (by the back chain: the smallest).
 * Such padding may come out before a real element of that value, but then one cannot be told
 * from the other. Reads past the end are masked, not made.
 */
#include "src/device/cpu/merge2.h"

#include <stdbool.h>

#include "src/device/cpu/x86/network_avx512.h"

#define ELEMENT uint32_t
#define NAME(stem) stem##_4
#define MASK __mmask16
#define MASK_LOAD _mm512_mask_loadu_epi32
#define MASKZ_LOAD _mm512_maskz_loadu_epi32
#define MASK_STORE _mm512_mask_storeu_epi32
#include "src/device/cpu/x86/merge2_avx512.inc"

#define ELEMENT uint64_t
#define NAME(stem) stem##_8
#define MASK __mmask8
#define MASK_LOAD _mm512_mask_loadu_epi64
#define MASKZ_LOAD _mm512_maskz_loadu_epi64
#define MASK_STORE _mm512_mask_storeu_epi64
#include "src/device/cpu/x86/merge2_avx512.inc"
