/*
 * test_cpu_sort - chunk sorts against a radix sort, over sizes, lengths and distributions
 */
#include "config.h"
#include "src/base/cancellation.h"
#include "src/device/cpu/cpu_ops.h"
#include "src/device/cpu/cpu_sort.h"
#if HAVE_HIGHWAY
#include "src/device/cpu/vqsort.h"
#endif
#ifdef __x86_64__
#include "src/device/cpu/x86/network_avx512.h"
#endif
#include "tests/support/elements.h"

#include "tests/support/unit_test.h"

typedef void sort_fn(void *elements, uint64_t n, uint32_t element_nbytes);

/* Around vectors, networks, pieces of a sweep, and whatever changes the algorithm. */
static const uint64_t lengths[] = {
	0,   1,   2,   3,   7,   8,    9,    15,   16,   17,   23,   24,
	25,  31,  32,  33,  63,  64,   65,   127,  128,  129,  255,  256,
	257, 383, 511, 512, 513, 1000, 1023, 1024, 2047, 2049, 4099,
};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static void sort_chunk(void *elements, uint64_t n, uint32_t element_nbytes)
{
	const size_t scratch_nbytes = cpu_sort_scratch_nbytes(n, element_nbytes);
	void *scratch = guarded_alloc(scratch_nbytes);

	cpu_sort(&(struct sort_elements_op){ .elements = elements,
					     .n = n,
					     .scratch = scratch,
					     .element_nbytes = element_nbytes });
	guarded_free(scratch, scratch_nbytes);
}

static void sort_radix(void *elements, uint64_t n, uint32_t element_nbytes)
{
	void *scratch = guarded_alloc(n * element_nbytes);
	const struct sort_elements_op op = { .elements = elements, .n = n, .scratch = scratch };

	if (element_nbytes == 4)
		radix_sort_4(&op);
	else if (element_nbytes == 8)
		radix_sort_8(&op);
	else
		radix_sort_16(&op);
	guarded_free(scratch, n * element_nbytes);
}

#if HAVE_HIGHWAY
/* What the machine at hand may have a faster sort for is used on others. */
static void sort_vqsort(void *elements, uint64_t n, uint32_t element_nbytes)
{
	if (element_nbytes == 8)
		vqsort_8(elements, n);
	else if (element_nbytes == 16)
		vqsort_16(elements, n);
	else
		sort_radix(elements, n, element_nbytes);
}
#endif

#ifdef __x86_64__
/* As if every pivot had been bad, from the first level on, and from the sixth. */
static void sort_to_depth(void *elements, uint64_t n, unsigned depth)
{
	const size_t scratch_nbytes = sort_8_avx512_scratch_n(n) * sizeof(uint64_t);
	void *scratch = guarded_alloc(scratch_nbytes);

	sort_8_avx512_to_depth(
		&(struct sort_elements_op){ .elements = elements, .n = n, .scratch = scratch },
		depth);
	guarded_free(scratch, scratch_nbytes);
}

static void sort_without_quicksort(void *elements, uint64_t n, uint32_t element_nbytes)
{
	(void)element_nbytes;
	sort_to_depth(elements, n, 0);
}

static void sort_with_little_quicksort(void *elements, uint64_t n, uint32_t element_nbytes)
{
	(void)element_nbytes;
	sort_to_depth(elements, n, 5);
}
#endif

/* Sort the elements, and say if they became what they should; frees them. */
static bool sorts(sort_fn *sort, void *elements, uint64_t n, uint32_t element_nbytes)
{
	void *expected = guarded_copy(elements, n * element_nbytes);
	bool same;

	reference_sort_elements(expected, element_nbytes, n);
	sort(elements, n, element_nbytes);
	same = memcmp(elements, expected, n * element_nbytes) == 0;
	guarded_elements_free(elements, element_nbytes, n);
	guarded_elements_free(expected, element_nbytes, n);
	return same;
}

static void check(sort_fn *sort, uint32_t element_nbytes, int dist, uint64_t n)
{
	void *elements = guarded_elements_make(element_nbytes, dist, n, n + 1);

	if (!sorts(sort, elements, n, element_nbytes))
		fail_msg("%u bytes, distribution %d, n %lu", element_nbytes, dist,
			 (unsigned long)n);
}

static void check_all(sort_fn *sort, uint64_t large_n)
{
	for (unsigned size = 0; size < N_ELEMENT_SIZES; size++) {
		for (int dist = 0; dist < N_DISTS; dist++) {
			for (unsigned i = 0; i < N_LENGTHS; i++)
				check(sort, element_sizes[size], dist, lengths[i]);
			check(sort, element_sizes[size], dist, large_n);
		}
	}
}

TEST(chunks_of_any_data_are_sorted)
{
	check_all(sort_chunk, 70001);
}

TEST(radix_sort_sorts_any_data)
{
	check_all(sort_radix, 70001);
}

TEST(vqsort_sorts_any_data)
{
#if HAVE_HIGHWAY
	if (vqsort_is_supported()) {
		check_all(sort_vqsort, 70001);
		return;
	}
#endif
	skip();
}

/* No data that we have makes all pivots bad: heapsort then does what is left. */
TEST(bad_pivots_end_in_heapsort)
{
#ifdef __x86_64__
	if (avx512_is_supported()) {
		for (int dist = 0; dist < N_DISTS; dist++) {
			for (unsigned i = 0; i < N_LENGTHS; i++)
				check(sort_without_quicksort, 8, dist, lengths[i]);
			check(sort_without_quicksort, 8, dist, 150001);
			check(sort_with_little_quicksort, 8, dist, 200001);
		}
		return;
	}
#endif
	skip();
}

/* Large enough for quicksort, for several pieces, and for uneven ones. */
TEST(large_chunks_are_sorted)
{
	for (int dist = 0; dist < N_DISTS; dist++)
		check(sort_chunk, 8, dist, 600001);
}

/* Elements that double in distance: all but a few always fall into one bucket. */
TEST(unevenly_spread_elements_are_sorted)
{
	enum { N = 200000 };
	uint64_t *elements = guarded_elements_make(8, GEN_RANDOM, N, 3);

	for (unsigned i = 0; i < N; i++)
		elements[i] >>= elements[i] % 64;
	assert_true(sorts(sort_chunk, elements, N, 8));
}

/* More than a piece, so that buckets are formed first; equal high bytes make it do so again. */
TEST(radix_sort_forms_buckets_of_buckets)
{
	enum { N = 300000 };
	uint64_t *elements = guarded_elements_make(8, GEN_RANDOM, N, 1);

	for (unsigned i = 0; i < N; i++)
		elements[i] &= i % 16 == 0 ? UINT64_MAX : UINT64_C(0x0fffffff);
	assert_true(sorts(sort_radix, elements, N, 8));
}

TEST(one_element_out_of_order_is_noticed)
{
	enum { N = 1000 };

	for (uint64_t at = 0; at < N; at++) {
		uint64_t elements[N];

		for (uint64_t i = 0; i < N; i++)
			elements[i] = 2 * i;
		elements[at] = at < N / 2 ? 2 * N : 0;
		sort_chunk(elements, N, sizeof *elements);
		for (uint64_t i = 1; i < N; i++)
			assert_true(elements[i - 1] <= elements[i]);
	}
}

/* vqsort cannot be cancelled; it sorts 8 and 16 bytes without AVX-512. */
static bool can_be_cancelled(uint32_t element_nbytes)
{
#if HAVE_HIGHWAY
	if (element_nbytes > 4 && vqsort_is_supported()) {
#ifdef __x86_64__
		return avx512_is_supported();
#else
		return false;
#endif
	}
#endif
	return element_nbytes > 0;
}

TEST(cancelled_sort_ends_early)
{
	enum { N = 300000 }; /* several parts and pieces of all sorts */
	struct cancellation cancellation;

	cancellation_init(&cancellation);
	cancellation_request(&cancellation);
	for (unsigned i = 0; i < N_ELEMENT_SIZES; i++) {
		const uint32_t element_nbytes = element_sizes[i];
		const size_t scratch_nbytes = cpu_sort_scratch_nbytes(N, element_nbytes);
		void *elements = guarded_elements_make(element_nbytes, GEN_RANDOM, N, 1);
		void *scratch = guarded_alloc(scratch_nbytes);
		const struct sort_elements_op op = { .elements = elements,
						     .n = N,
						     .scratch = scratch,
						     .element_nbytes = element_nbytes,
						     .cancellation = &cancellation };
		bool is_sorted = true;

		cpu_sort(&op);
		for (uint64_t j = 1; j < N; j++)
			is_sorted &= element_get(elements, element_nbytes, j - 1) <=
				     element_get(elements, element_nbytes, j);
		assert_true(is_sorted != can_be_cancelled(element_nbytes));
		guarded_free(scratch, scratch_nbytes);
		guarded_elements_free(elements, element_nbytes, N);
	}
	cancellation_destroy(&cancellation);
}

/* Distribute n elements, half of which are splitters or next to one. dense: splitters are close. */
static void check_distribution(uint32_t element_nbytes, uint64_t n, uint32_t n_buckets, bool dense)
{
	const struct layout layout = { .element_nbytes = element_nbytes };
	const size_t scratch_nbytes = cpu_distribute_scratch_nbytes(&layout, n);
	void *elements = guarded_elements_make(element_nbytes, GEN_RANDOM, n, 1);
	void *out = aligned_alloc(64, (n / 64 + 1) * 64 * element_nbytes);
	void *scratch = aligned_alloc(64, (scratch_nbytes / 64 + 1) * 64);
	struct bucket_splitters *splitters = calloc(1, sizeof *splitters);
	uint32_t *starts = malloc((n_buckets + 1) * sizeof *starts);
	struct distribute_op op = { .layout = &layout,
				    .splitters = splitters,
				    .elements = elements,
				    .out = out,
				    .n = n,
				    .scratch = scratch,
				    .ret_starts = starts };
	const encoded_key_t max = (encoded_key_t)-1 >> (128 - 8 * element_nbytes);

	splitters->n = n_buckets;
	for (uint32_t i = 1; i < n_buckets; i++)
		splitters->first_keys[i] = dense ? max / 2 + 3 * i : max / n_buckets * i + i;
	splitters->first_keys[n_buckets - 1] = n_buckets > 1 ? max : 0;
	for (uint64_t i = 0; i < n; i += 2) {
		const encoded_key_t key = splitters->first_keys[i % n_buckets] - (i % 4 == 0);

		memcpy((char *)elements + i * element_nbytes, &key, element_nbytes);
	}
	cpu_distribute(&op);
	assert_int_equal(starts[0], 0);
	assert_int_equal(starts[n_buckets], n);
	for (uint32_t bucket = 0; bucket < n_buckets; bucket++)
		for (uint64_t i = starts[bucket]; i < starts[bucket + 1]; i++) {
			const encoded_key_t element = element_get(out, element_nbytes, i);

			assert_true(element >= splitters->first_keys[bucket]);
			assert_true(bucket + 1 == n_buckets ||
				    element < splitters->first_keys[bucket + 1]);
		}
	sort_chunk(elements, n, element_nbytes);
	sort_chunk(out, n, element_nbytes);
	assert_memory_equal(out, elements, n * element_nbytes);
	guarded_elements_free(elements, element_nbytes, n);
	free(out);
	free(scratch);
	free(splitters);
	free(starts);
}

TEST(elements_are_distributed_among_buckets)
{
	static const uint32_t n_buckets[] = { 1, 2, 3, 100, BACKEND_MAX_BUCKETS };

	for (size_t i = 0; i < sizeof n_buckets / sizeof n_buckets[0]; i++)
		for (size_t j = 0; j < N_LENGTHS; j++)
			for (uint32_t nbytes = 8; nbytes <= 16; nbytes *= 2)
				for (int dense = 0; dense <= 1; dense++)
					check_distribution(nbytes, lengths[j], n_buckets[i], dense);
}
