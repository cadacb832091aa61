/*
 * cpu_distribute.c - distribute elements among buckets (see cpu_ops.h)
 *
 *	elements   --classify-->   bucket_of, starts   --scatter-->   bucket 0 | bucket 1 | ...
 *
 * This is the first step of a sample sort (Blelloch et al., 1991), in one pass over memory for any
 * number of buckets.
 *
 * Classify. The range of the splitters is divided into up to 2^16 intervals of equal length. A
 * table has the first bucket of each interval. Most intervals overlap one or two buckets; in
 * others, a binary search finds the bucket.
 *
 * Scatter. There are more buckets than the TLB has entries, and the first store to a cache line
 * would read the line from memory. So the elements of a line are collected in a buffer, and the
 * line is written as a whole with stores that bypass the caches.
 */
#include "src/device/cpu/cpu_ops.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	LINE_NBYTES = 64,
	INTERVAL_BITS = 16,
	N_INTERVALS = 1 << INTERVAL_BITS,
};

/* The contents of the scratch. */
struct distribution {
	/* The cache line of each bucket that is being filled. */
	_Alignas(LINE_NBYTES) unsigned char lines[BACKEND_MAX_BUCKETS][LINE_NBYTES];
	/* The largest possible element of each bucket; an array of elements. */
	_Alignas(LINE_NBYTES) unsigned char largest[BACKEND_MAX_BUCKETS * sizeof(encoded_key_t)];
	/* Classify: the number of elements of each bucket. Scatter: where its next element goes. */
	uint32_t ends[BACKEND_MAX_BUCKETS];
	/* The first bucket that overlaps each interval; the last entry is the last bucket. */
	uint16_t first_bucket_of[N_INTERVALS + 1];
	uint16_t bucket_of[]; /* of each of the n elements */
};

size_t cpu_distribute_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	/* Radix sort is as fast for narrow elements. */
	return layout->element_nbytes < 8 ? 0 : sizeof(struct distribution) + n * sizeof(uint16_t);
}

/* Write a cache line with stores that bypass the caches. */
static inline void stream_line(void *to, const void *line)
{
#ifdef __SSE2__
	for (int i = 0; i < LINE_NBYTES / 16; i++)
		_mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)line + i));
#else
	memcpy(to, line, LINE_NBYTES);
#endif
}

/* Order the streamed lines before all later stores, as other threads see them. */
static inline void finish_streaming(void)
{
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/* Replace the numbers of elements in `ends` by the positions of the buckets. */
static void set_starts(uint32_t n_buckets, uint32_t *ends, uint32_t *ret_starts)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_buckets; i++) {
		const uint32_t n_in_bucket = ends[i];

		ret_starts[i] = ends[i] = n;
		n += n_in_bucket;
	}
	ret_starts[n_buckets] = n;
}

#define ELEMENT uint64_t
#define NAME(stem) stem##_8
#include "src/device/cpu/cpu_distribute.inc"

#define ELEMENT uint128_t
#define NAME(stem) stem##_16
#include "src/device/cpu/cpu_distribute.inc"

void cpu_distribute(const struct distribute_op *op)
{
	if (op->layout->element_nbytes == 8)
		distribute_8(op);
	else
		distribute_16(op);
}
