/*
 * merge2 - the two-way merge that everything is made of
 *
 * A merge is a chain: which elements are compared next depends on the outcome of this
 * comparison. Written with a branch, random data mispredicts half of them (3.0 ns per element);
 * without one, the processor waits for the comparison, the address and the load. To give it
 * something to do meanwhile, the merge is cut at output positions by co-rank into parts that do not
 * depend on each other, and their steps are interleaved. The pointers of three parts fit the
 * registers of x86-64.
 *
 * The inner loop has no checks for ends either: as long as every side of every part has n
 * elements left, n steps are safe. n is then computed anew; on random data that takes some
 * log2(n) rounds.
 */
#include "src/device/cpu/merge2.h"

#include <string.h>

#include "src/device/co_rank.h"
#ifdef __x86_64__
#include "src/device/cpu/x86/network_avx512.h"
#endif

enum { N_CHAINS = 3 };

#define ELEMENT uint32_t
#define CO_RANK co_rank_4
#define NAME(stem) stem##_4
#include "src/device/cpu/merge2.inc"

#define ELEMENT uint64_t
#define CO_RANK co_rank_8
#define NAME(stem) stem##_8
#include "src/device/cpu/merge2.inc"

#define ELEMENT uint128_t
#define CO_RANK co_rank_16
#define NAME(stem) stem##_16
#include "src/device/cpu/merge2.inc"

merge2_fn *merge2_choose(uint32_t element_nbytes)
{
#ifdef __x86_64__
	if (element_nbytes < 16 && avx512_is_supported())
		return element_nbytes == 4 ? merge2_avx512_4 : merge2_avx512_8;
#endif
	return element_nbytes == 4 ? merge2_4 : element_nbytes == 8 ? merge2_8 : merge2_16;
}
