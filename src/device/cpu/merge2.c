/*
 * merge2 - two-way merge, the basis of all merges
 *
 * A merge is a chain of dependent steps: the next comparison depends on the result of the last one.
 * With a branch, half of the comparisons of random data are mispredicted (3.0 ns per element).
 * Without a branch, the processor waits for the comparison, the address and the load. To use this
 * time, the merge is cut at output positions (by co-rank) into independent parts, whose steps are
 * interleaved. The pointers of three parts fit the registers of x86-64.
 *
 * The inner loop does not check for ends: as long as each side of each part has n elements left, n
 * steps are safe. Then n is computed again. Random data takes about log2(n) such rounds.
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
