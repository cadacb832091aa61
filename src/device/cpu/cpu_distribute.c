/*
 * cpu_distribute.c - distribute elements among buckets (see cpu_ops.h)
 *
 *	elements   --classify-->   bucket_of, starts   --scatter-->   bucket 0 | bucket 1 | ...
 *
 * This is the first step of a sample sort (Blelloch et al., 1991), in one pass over memory for any
 * number of buckets.
 *
 * Classify. The upper 16 bits of an element select the first bucket that it can be in, and few
 * elements are compared with more than one splitter, unless many of these share 16 bits.
 *
 * Scatter. There are more buckets than the TLB has entries, and a store to each of them would read
 * its cache line first. So a line is collected in a buffer and written as a whole, past the caches.
 */
#include "src/device/cpu/cpu_ops.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	LINE_NBYTES = 64,
	PREFIX_BITS = 16,
	N_PREFIXES = 1 << PREFIX_BITS,
};

/* The scratch. */
struct distribution {
	/* A cache line of each bucket. */
	_Alignas(LINE_NBYTES) unsigned char lines[BACKEND_MAX_BUCKETS][LINE_NBYTES];
	/* Of each bucket: the largest element that belongs there. */
	_Alignas(LINE_NBYTES) unsigned char largest[BACKEND_MAX_BUCKETS * sizeof(encoded_key_t)];
	uint32_t ends[BACKEND_MAX_BUCKETS];   /* of a bucket: where its next element goes */
	uint16_t first_bucket_of[N_PREFIXES]; /* the first one with elements of this prefix */
	uint16_t bucket_of[];                 /* n */
};

size_t cpu_distribute_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	/* Radix sort is as fast for narrow elements. */
	return layout->element_nbytes < 8 ? 0 : sizeof(struct distribution) + n * sizeof(uint16_t);
}

/* Write a cache line past the caches. */
static inline void stream_line(void *to, const void *line)
{
#ifdef __SSE2__
	for (int i = 0; i < LINE_NBYTES / 16; i++)
		_mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)line + i));
#else
	memcpy(to, line, LINE_NBYTES);
#endif
}

/* Make other threads see what was streamed, once they see what is stored after this. */
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
		PREFIX_SHIFT_##suffix = 8 * sizeof(type) - PREFIX_BITS,                            \
	};                                                                                         \
                                                                                                   \
	static void set_buckets_##suffix(const struct bucket_splitters *splitters,                 \
					 struct distribution *distribution)                        \
	{                                                                                          \
		type *largest = (type *)distribution->largest;                                     \
		uint32_t bucket = 0;                                                               \
                                                                                                   \
		for (uint32_t i = 0; i + 1 < splitters->n; i++)                                    \
			largest[i] = (type)(splitters->first_keys[i + 1] - 1);                     \
		largest[splitters->n - 1] = (type)-1;                                              \
		for (uint32_t prefix = 0; prefix < N_PREFIXES; prefix++) {                         \
			while (largest[bucket] < (type)prefix << PREFIX_SHIFT_##suffix)            \
				bucket++;                                                          \
			distribution->first_bucket_of[prefix] = (uint16_t)bucket;                  \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	/* Choose the bucket of each element, and count them. */                                   \
	static void classify_##suffix(const type *elements, uint64_t n,                            \
				      struct distribution *distribution)                           \
	{                                                                                          \
		const type *largest = (const type *)distribution->largest;                         \
                                                                                                   \
		for (uint64_t i = 0; i < n; i++) {                                                 \
			const type element = elements[i];                                          \
			const uint32_t prefix = (uint32_t)(element >> PREFIX_SHIFT_##suffix);      \
			uint32_t bucket = distribution->first_bucket_of[prefix];                   \
                                                                                                   \
			bucket += element > largest[bucket];                                       \
			while (__builtin_expect(element > largest[bucket], 0))                     \
				bucket++;                                                          \
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
		classify_##suffix(op->elements, op->n, distribution);                              \
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
