/*
 * cpu_sort - sort a chunk of elements in memory, with one thread (see cpu_sort.h)
 *
 * Which sort is the best depends on the element:
 *
 *	8 bytes       sort_avx512; without AVX-512 Highway's vqsort
 *	16 bytes      Highway's vqsort
 *	4 bytes       the radix sort: vqsort is slow there (see vqsort.h), and four bytes are few
 *
 * and where the processor, or the build, has none of these, the radix sort for all of them.
 *
 * Elements are codes: equal ones cannot be told apart, so that every sort is stable here.
 *
 * Before that a sweep looks for order. It stops where the order does, which in random data is
 * after a handful of elements, so it costs nothing where it does not help. Equal elements are
 * in order, so this is the case of all equal, too.
 */
#include "src/device/cpu/cpu_sort.h"

#include <string.h>

#include "config.h"
#include "src/device/cpu/radix_sort.h"
#ifdef __x86_64__
#include "src/device/cpu/x86/network_avx512.h"
#include "src/device/cpu/x86/sort_avx512.h"
#endif
#if HAVE_HIGHWAY
#include "src/device/cpu/vqsort.h"

/* Returns false, with nothing done, where there is none. */
static bool sort_by_vqsort(const struct sort_elements_op *op)
{
	if (!vqsort_is_supported())
		return false;
	if (op->element_nbytes == 8)
		vqsort_8(op->elements, op->n);
	else
		vqsort_16(op->elements, op->n);
	return true;
}
#else
static bool vqsort_is_supported(void)
{
	return false;
}

static bool sort_by_vqsort(const struct sort_elements_op *op)
{
	(void)op;
	return false;
}
#endif

/* Elements between two looks at whether the order still holds: the loop within has no branches. */
enum { SWEEP_N = 64 };

#define ORDER_DEFINE(suffix, type)                                                                 \
	/* Are all neighbours in order: a <= b, or a > b when descending? */                       \
	static bool is_ordered_##suffix(const type *elements, uint64_t n, bool descending)         \
	{                                                                                          \
		uint64_t i = 1;                                                                    \
                                                                                                   \
		while (i < n) {                                                                    \
			const uint64_t end = n - i < SWEEP_N ? n : i + SWEEP_N;                    \
			bool broken = false;                                                       \
                                                                                                   \
			for (; i < end; i++)                                                       \
				broken |= (elements[i - 1] > elements[i]) != descending;           \
			if (broken)                                                                \
				return false;                                                      \
		}                                                                                  \
		return true;                                                                       \
	}                                                                                          \
	static void reverse_##suffix(type *elements, uint64_t n)                                   \
	{                                                                                          \
		for (uint64_t i = 0; i < n / 2; i++) {                                             \
			const type element = elements[i];                                          \
                                                                                                   \
			elements[i] = elements[n - 1 - i];                                         \
			elements[n - 1 - i] = element;                                             \
		}                                                                                  \
	}                                                                                          \
	/* Was it enough to look, or to reverse? */                                                \
	static bool sort_presorted_##suffix(type *elements, uint64_t n)                            \
	{                                                                                          \
		if (is_ordered_##suffix(elements, n, false))                                       \
			return true;                                                               \
		if (!is_ordered_##suffix(elements, n, true))                                       \
			return false;                                                              \
		reverse_##suffix(elements, n);                                                     \
		return true;                                                                       \
	}

ORDER_DEFINE(4, uint32_t)
ORDER_DEFINE(8, uint64_t)
ORDER_DEFINE(16, uint128_t)

size_t cpu_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes)
{
#ifdef __x86_64__
	if (element_nbytes == 8 && avx512_is_supported())
		return sort_8_avx512_scratch_n(n) * sizeof(uint64_t);
#endif
	if (element_nbytes != 4 && vqsort_is_supported())
		return 0;
	return n * element_nbytes;
}

static void sort_8(const struct sort_elements_op *op)
{
#ifdef __x86_64__
	if (avx512_is_supported()) {
		sort_8_avx512(op->elements, op->n, op->scratch);
		return;
	}
#endif
	if (!sort_by_vqsort(op))
		radix_sort_8(op->elements, op->n, op->scratch);
}

static void sort_16(const struct sort_elements_op *op)
{
	if (!sort_by_vqsort(op))
		radix_sort_16(op->elements, op->n, op->scratch);
}

void cpu_sort(const struct sort_elements_op *op)
{
	switch (op->element_nbytes) {
	case 4:
		if (!sort_presorted_4(op->elements, op->n))
			radix_sort_4(op->elements, op->n, op->scratch);
		break;
	case 8:
		if (!sort_presorted_8(op->elements, op->n))
			sort_8(op);
		break;
	default:
		if (!sort_presorted_16(op->elements, op->n))
			sort_16(op);
	}
}
