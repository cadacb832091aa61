/*
 * merge2_avx512 - two-way merge of u32 and u64 elements with vectors
 *
 * A step holds a vector of elements: the largest that were loaded and not written. It loads the
 * next vector of the list whose next element is smaller. All elements that are not loaded then are
 * at least as large as the lower half of the loaded ones, so that half is the next output. A
 * bitonic network separates the halves: comparing the held vector in descending order with the new
 * one in ascending order gives both halves, and three more rounds (u32: four) sort them (Chhugani
 * et al., "Efficient implementation of sorting on multi-core SIMD CPU architecture", 2008). The
 * network is not stable, but equal elements are indistinguishable.
 *
 * A round is a min, a max, and two shuffles that arrange the next pairs of both halves, so that no
 * lane is idle. On Intel all of these use one port. Sixteen per step limit the merge to 0.5 ns per
 * element, if two independent chains of steps overlap. A single chain waits for its own results and
 * takes 0.9 ns; a third chain gains nothing. The second chain is the mirror image of the first: it
 * merges from the ends downwards and holds the smallest elements. Each chain makes half of the
 * output. No search has to find where they meet, because both know their number of elements.
 *
 *	a  [ front > . . . . . < back ]		out  [ front > | < back ]
 *	b  [ front > . . . . . < back ]
 *
 * A list is padded at its end with the largest value (for the back chain: with the smallest).
 * Padding may be written before a real element of that value, but the two are equal. Loads at the
 * end are masked, so nothing outside the lists is read.
 */
#include "src/device/cpu/cpu_merge.h"

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
