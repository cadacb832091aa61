/*
 * cpu_sort.c - sort a chunk of elements in memory, with one thread (see cpu_sort.h)
 *
 * The fastest sort depends on the element:
 *
 *	8 bytes       sort_avx512; without AVX-512 Highway's vqsort
 *	16 bytes      Highway's vqsort, with AVX-512 after some partitions
 *	4 bytes       radix sort: vqsort is slow here (see vqsort.h), and there are few bytes
 *
 * Without a suitable processor or library, the radix sort sorts all three sizes. Equal elements are
 * indistinguishable, so any sort is stable.
 *
 * A first pass checks whether the elements are sorted already. It stops at the first pair out of
 * order, so with random data it costs next to nothing.
 */
#include "src/device/cpu/cpu_sort.h"

#include <string.h>

#include "config.h"
#if HAVE_HIGHWAY
#include "src/device/cpu/vqsort.h"
#endif
#ifdef __x86_64__
#include "src/device/cpu/x86/network_avx512.h"
#endif
#include "src/base/cancellation.h"

enum {
	N_DIGITS = 256,
	SCATTER_N = 1 << 16, /* elements between two checks for cancellation */
	INSERTION_N = 24,    /* below that, insertion sort is faster than clearing 256 counters */
	PIVOT_SAMPLE_N = 31,
	PART_N = 1 << 14,       /* longer arrays of 16-byte elements are partitioned */
	PIECE_NBYTES = 1 << 19, /* a piece and its scratch fit a second-level cache of 1 MiB */
};

/* Replace the number of elements of each digit by the start of its bucket. */
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

#if HAVE_HIGHWAY

/* Sort with vqsort. Returns false and does nothing if it is not available. */
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

/* The check for order has a branch after so many elements; its inner loop has none. */
enum { SWEEP_N = 64 };

#define ORDER_DEFINE(suffix, type)                                                                 \
	/* Return whether all neighbours are in order: a <= b, or a > b if descending. */          \
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
	/* Sort elements in ascending or strictly descending order; return false for others. */    \
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
		sort_8_avx512(op);
		return;
	}
#endif
	if (!sort_by_vqsort(op))
		radix_sort_8(op);
}

#ifdef __x86_64__
/* Partition by the median of a sample; return the number of elements not above it. */
static uint64_t partition_16(const struct sort_elements_op *op)
{
	const uint128_t *const elements = op->elements;
	uint128_t sample[PIVOT_SAMPLE_N];

	for (unsigned i = 0; i < PIVOT_SAMPLE_N; i++)
		sample[i] = elements[op->n / PIVOT_SAMPLE_N * i];
	insertion_sort_16(sample, PIVOT_SAMPLE_N);
	return partition_16_avx512(op->elements, op->n, sample[PIVOT_SAMPLE_N / 2]);
}
#endif

/*
 * Partition with AVX-512, which is faster than vqsort, and sort the parts with vqsort. A bad pivot,
 * for example with many equal elements, ends the partitioning.
 */
static void sort_16(struct sort_elements_op op)
{
#ifdef __x86_64__
	while (op.n > PART_N && avx512_is_supported()) {
		const uint64_t n_left = partition_16(&op);
		struct sort_elements_op right = op;

		if (cancellation_is_requested(op.cancellation))
			return;
		if (n_left < op.n / 8 || n_left > op.n - op.n / 8)
			break;
		right.elements = (uint128_t *)op.elements + n_left;
		right.n -= n_left;
		sort_16(right);
		op.n = n_left;
	}
#endif
	/* Not by vqsort, which first gets random numbers from the system. */
	if (op.n <= INSERTION_N)
		insertion_sort_16(op.elements, op.n);
	else if (!sort_by_vqsort(&op))
		radix_sort_16(&op);
}

void cpu_sort(const struct sort_elements_op *op)
{
	switch (op->element_nbytes) {
	case 4:
		if (!sort_presorted_4(op->elements, op->n))
			radix_sort_4(op);
		break;
	case 8:
		if (!sort_presorted_8(op->elements, op->n))
			sort_8(op);
		break;
	default:
		if (!sort_presorted_16(op->elements, op->n))
			sort_16(*op);
	}
}
