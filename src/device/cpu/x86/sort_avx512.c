/*
 * sort_avx512 - sort u64 elements with AVX-512
 *
 * Three steps, each where it is cheapest:
 *
 *	quicksort    until a piece and its scratch fit the cache; 0.3 ns per element and level
 *	buckets      of 44 elements on average, by value: one counting and one scattering pass
 *	networks     for 64 or 128 elements in registers
 *
 * Buckets replace ten levels of quicksort, but depend on the data. A piece whose elements are not
 * spread evenly between its minimum and maximum continues with quicksort; after one or two levels
 * its parts, each with its own interval, try buckets again. Networks are the advantage over
 * Debian's vqsort: for 128 elements it takes 4.0 ns per element, a network 1.6 ns.
 *
 * 64 samples make bad pivots improbable, and equal elements are separated (see quicksort). If the
 * depth still grows too large, heapsort finishes in O(n log n).
 */
#include "src/device/cpu/x86/sort_avx512.h"

#include "src/device/cpu/x86/network_avx512.h"
#include "src/device/cpu/x86/partition_avx512.h"
#include "src/record/key_encoding.h"

enum {
	NETWORK_N = 128,     /* maximum that is sorted in registers */
	BUCKET_N = 44,       /* average; few buckets then have more than 64 */
	PIECE_N = 1 << 17,   /* 1 MiB: it and the scratch fit the cache */
	MIN_PIECE_N = 1024,  /* smaller pieces use quicksort */
	GOOD_PIVOT_N = 4096, /* large enough to pay for all samples */
};

/* Sort n <= NETWORK_N elements from `from` to `to`, which may be equal. */
AVX512 static void sort_network(const uint64_t *from, uint64_t n, uint64_t *to)
{
	__m512i rows[16];

	load_rows(rows, from, n);
	sort_64(rows);
	if (n > 64) {
		load_rows(rows + 8, from + 64, n - 64);
		sort_64(rows + 8);
		merge_rows(rows, 16);
		store_rows(to + 64, n - 64, rows + 8);
	}
	store_rows(to, n, rows);
}

static uint64_t median_of_3(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t min = a < b ? a : b;
	const uint64_t max = a < b ? b : a;

	return c < min ? min : c > max ? max : c;
}

/*
 * Return an element near the median of n > NETWORK_N: the median of 64 samples, or, if that would
 * cost more than it saves, a median of three medians of eight.
 */
AVX512 static uint64_t choose_pivot(const uint64_t *elements, uint64_t n)
{
	const uint64_t step = (n - N_LANES) / 7;
	uint64_t medians[N_LANES];
	__m512i rows[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		rows[i] = _mm512_loadu_si512(elements + i * step);
	if (n >= GOOD_PIVOT_N) {
		sort_64(rows);
		_mm512_storeu_si512(medians, rows[4]);
		return medians[0];
	}
	sort_columns(rows);
	_mm512_storeu_si512(medians, rows[4]);
	return median_of_3(medians[0], medians[3], medians[6]);
}

static void sift_down(uint64_t *elements, uint64_t n, uint64_t at)
{
	const uint64_t element = elements[at];

	for (uint64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && elements[child + 1] > elements[child])
			child++;
		if (elements[child] <= element)
			break;
		elements[at] = elements[child];
		at = child;
	}
	elements[at] = element;
}

static void heapsort(uint64_t *elements, uint64_t n)
{
	for (uint64_t i = n / 2; i-- > 0;)
		sift_down(elements, n, i);
	for (uint64_t i = n; i-- > 1;) {
		const uint64_t largest = elements[0];

		elements[0] = elements[i];
		elements[i] = largest;
		sift_down(elements, i, 0);
	}
}

/*
 * A monotonous map of elements to buckets. It multiplies instead of shifting, to allow any number
 * of buckets.
 */
struct bucket_map {
	uint64_t min;
	uint64_t scale;
	uint64_t n;
};

static inline uint64_t bucket_of(const struct bucket_map *buckets, uint64_t element)
{
	return (uint64_t)((uint128_t)(element - buckets->min) * buckets->scale >> 64);
}

AVX512 static struct bucket_map choose_buckets(const uint64_t *elements, uint64_t n)
{
	uint64_t min = elements[0], max = elements[0];
	struct bucket_map buckets = { .n = n / BUCKET_N };

	for (uint64_t i = 1; i < n; i++) {
		min = elements[i] < min ? elements[i] : min;
		max = elements[i] > max ? elements[i] : max;
	}
	buckets.min = min;
	/*
	 * The maximum maps to the last bucket. If there are fewer values than buckets, each value
	 * has its own.
	 */
	if (max - min < buckets.n)
		buckets.scale = UINT64_MAX;
	else
		buckets.scale =
			(uint64_t)(((uint128_t)buckets.n << 64) / ((uint128_t)(max - min) + 1));
	return buckets;
}

/*
 * Distribute n elements, at most PIECE_N, to buckets in the scratch, and sort each by a network
 * back into place. Returns false and changes nothing if a bucket would be far too large.
 */
AVX512 static bool sort_by_buckets(uint64_t *elements, uint64_t n, uint64_t *scratch)
{
	uint32_t ends[PIECE_N / BUCKET_N] = { 0 };
	const struct bucket_map buckets = choose_buckets(elements, n);
	uint64_t start = 0;

	for (uint64_t i = 0; i < n; i++)
		ends[bucket_of(&buckets, elements[i])]++;
	for (uint64_t i = 0; i < buckets.n; i++) {
		const uint32_t count = ends[i];

		if (count > NETWORK_N)
			return false;
		ends[i] = (uint32_t)start;
		start += count;
	}
	for (uint64_t i = 0; i < n; i++)
		scratch[ends[bucket_of(&buckets, elements[i])]++] = elements[i];
	start = 0;
	for (uint64_t i = 0; i < buckets.n; i++) {
		sort_network(scratch + start, ends[i] - start, elements + start);
		start = ends[i];
	}
	return true;
}

/* What may still be tried for a range; the values decrease with each level. */
struct sort_limits {
	unsigned depth;   /* levels of quicksort, before heapsort */
	unsigned n_tries; /* of buckets */
};

/*
 * If no element is above the pivot, the pivot is the maximum: elements that equal it are separated
 * and are sorted. So a value that fills half of the range is done after two levels.
 */
static void quicksort(uint64_t *elements, uint64_t n, uint64_t *scratch, struct sort_limits limits)
{
	while (n > NETWORK_N) {
		uint64_t pivot, n_left;

		if (n <= PIECE_N && n >= MIN_PIECE_N && limits.n_tries > 0) {
			if (sort_by_buckets(elements, n, scratch))
				return;
			limits.n_tries--;
		}
		pivot = choose_pivot(elements, n);
		n_left = partition_avx512(elements, n, pivot, false);
		if (n_left == n) {
			n = partition_avx512(elements, n, pivot, true);
			continue;
		}
		if (limits.depth-- == 0) {
			heapsort(elements, n);
			return;
		}
		quicksort(elements + n_left, n - n_left, scratch, limits);
		n = n_left;
	}
	sort_network(elements, n, elements);
}

uint64_t sort_8_avx512_scratch_n(uint64_t n)
{
	return n < PIECE_N ? n : PIECE_N;
}

void sort_8_avx512_to_depth(uint64_t *elements, uint64_t n, uint64_t *scratch, unsigned depth)
{
	quicksort(elements, n, scratch, (struct sort_limits){ .depth = depth, .n_tries = 3 });
}

void sort_8_avx512(uint64_t *elements, uint64_t n, uint64_t *scratch)
{
	unsigned depth = 8;

	for (uint64_t left = n; left > 0; left /= 2)
		depth += 2;
	sort_8_avx512_to_depth(elements, n, scratch, depth);
}
