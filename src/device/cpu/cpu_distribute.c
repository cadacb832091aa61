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

#define DISTRIBUTE_DEFINE(suffix, type)                                                            \
	enum {                                                                                     \
		LINE_N_##suffix = LINE_NBYTES / sizeof(type),                                      \
	};                                                                                         \
                                                                                                   \
	/* Return the logarithm of the length of the intervals, which begin at largest[0]. */      \
	static unsigned interval_shift_##suffix(const type *largest, uint32_t n_buckets)           \
	{                                                                                          \
		const type range = n_buckets > 1 ? largest[n_buckets - 2] - largest[0] : 0;        \
		const unsigned n_bits = uint128_bit_length(range);                                 \
                                                                                                   \
		return n_bits > INTERVAL_BITS ? n_bits - INTERVAL_BITS : 0;                        \
	}                                                                                          \
                                                                                                   \
	static void set_buckets_##suffix(const struct bucket_splitters *splitters,                 \
					 struct distribution *distribution)                        \
	{                                                                                          \
		type *largest = (type *)distribution->largest;                                     \
		uint32_t bucket = 0;                                                               \
		unsigned shift;                                                                    \
                                                                                                   \
		for (uint32_t i = 0; i + 1 < splitters->n; i++)                                    \
			largest[i] = (type)(splitters->first_keys[i + 1] - 1);                     \
		largest[splitters->n - 1] = (type)-1;                                              \
		shift = interval_shift_##suffix(largest, splitters->n);                            \
		for (uint32_t i = 0; i < N_INTERVALS; i++) {                                       \
			while (bucket + 1 < splitters->n &&                                        \
			       largest[bucket] - largest[0] < (type)i << shift)                    \
				bucket++;                                                          \
			distribution->first_bucket_of[i] = (uint16_t)bucket;                       \
		}                                                                                  \
		distribution->first_bucket_of[N_INTERVALS] = (uint16_t)(splitters->n - 1);         \
	}                                                                                          \
                                                                                                   \
	/* Return the bucket of an element, one of [first, last]. */                               \
	static uint32_t search_bucket_##suffix(const type *largest, type element, uint32_t first,  \
					       uint32_t last)                                      \
	{                                                                                          \
		uint32_t n = last - first + 1;                                                     \
                                                                                                   \
		while (n > 1) {                                                                    \
			const uint32_t half = n / 2;                                               \
                                                                                                   \
			/* No branch: half of the predictions would be wrong. */                   \
			first += (largest[first + half - 1] < element) * half;                     \
			n -= half;                                                                 \
		}                                                                                  \
		return first;                                                                      \
	}                                                                                          \
                                                                                                   \
	/* Choose the bucket of each element, and count them. */                                   \
	static void classify_##suffix(const type *elements, uint64_t n, uint32_t n_buckets,        \
				      struct distribution *distribution)                           \
	{                                                                                          \
		const type *largest = (const type *)distribution->largest;                         \
		const unsigned shift = interval_shift_##suffix(largest, n_buckets);                \
		const type begin = largest[0];                                                     \
                                                                                                   \
		for (uint64_t i = 0; i < n; i++) {                                                 \
			const type element = elements[i];                                          \
			const type distance = element > begin ? (element - begin) >> shift : 0;    \
			const uint32_t interval = distance < N_INTERVALS ? (uint32_t)distance :    \
									   N_INTERVALS - 1;        \
			uint32_t bucket = distribution->first_bucket_of[interval];                 \
                                                                                                   \
			bucket += element > largest[bucket];                                       \
			if (__builtin_expect(element > largest[bucket], 0))                        \
				bucket = search_bucket_##suffix(                                   \
					largest, element, bucket,                                  \
					distribution->first_bucket_of[interval + 1]);              \
			distribution->bucket_of[i] = (uint16_t)bucket;                             \
			distribution->ends[bucket]++;                                              \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	/* Write the elements of a bucket that are in its line, up to `end`. */                    \
	static void flush_line_##suffix(const struct distribution *distribution, uint32_t bucket,  \
					uint32_t start, uint32_t end, type *out)                   \
	{                                                                                          \
		const type *line = (const type *)distribution->lines[bucket];                      \
		uint32_t i = (end - 1) / LINE_N_##suffix * LINE_N_##suffix;                        \
                                                                                                   \
		for (i = i > start ? i : start; i < end; i++)                                      \
			out[i] = line[i % LINE_N_##suffix];                                        \
	}                                                                                          \
                                                                                                   \
	static void scatter_##suffix(const type *elements, uint64_t n, uint32_t n_buckets,         \
				     const uint32_t *starts, struct distribution *distribution,    \
				     type *out)                                                    \
	{                                                                                          \
		for (uint64_t i = 0; i < n; i++) {                                                 \
			const uint32_t bucket = distribution->bucket_of[i];                        \
			const uint32_t end = ++distribution->ends[bucket];                         \
			type *line = (type *)distribution->lines[bucket];                          \
                                                                                                   \
			line[(end - 1) % LINE_N_##suffix] = elements[i];                           \
			if (end % LINE_N_##suffix != 0)                                            \
				continue;                                                          \
			if (end - starts[bucket] >= LINE_N_##suffix)                               \
				stream_line(out + end - LINE_N_##suffix, line);                    \
			else                                                                       \
				flush_line_##suffix(distribution, bucket, starts[bucket], end,     \
						    out);                                          \
		}                                                                                  \
		for (uint32_t i = 0; i < n_buckets; i++)                                           \
			if (distribution->ends[i] % LINE_N_##suffix != 0)                          \
				flush_line_##suffix(distribution, i, starts[i],                    \
						    distribution->ends[i], out);                   \
		finish_streaming();                                                                \
	}                                                                                          \
                                                                                                   \
	static void distribute_##suffix(const struct distribute_op *op)                            \
	{                                                                                          \
		struct distribution *distribution = op->scratch;                                   \
		const uint32_t n_buckets = op->splitters->n;                                       \
                                                                                                   \
		memset(distribution->ends, 0, n_buckets * sizeof distribution->ends[0]);           \
		set_buckets_##suffix(op->splitters, distribution);                                 \
		classify_##suffix(op->elements, op->n, n_buckets, distribution);                   \
		set_starts(n_buckets, distribution->ends, op->ret_starts);                         \
		scatter_##suffix(op->elements, op->n, n_buckets, op->ret_starts, distribution,     \
				 op->out);                                                         \
	}

DISTRIBUTE_DEFINE(8, uint64_t)
DISTRIBUTE_DEFINE(16, uint128_t)

void cpu_distribute(const struct distribute_op *op)
{
	if (op->layout->element_nbytes == 8)
		distribute_8(op);
	else
		distribute_16(op);
}
