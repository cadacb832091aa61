/*
 * test_sort_kernels.c - sorting and merging on the device, against a radix sort on the host
 *
 * Lengths are at the limits of tiles and groups of tiles, for several geometries, because the test
 * does not know the real one. Buffers have exactly the length that the interface requires.
 */
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tests/kernels/device.h"
#include "tests/support/race.h"
#include "tests/support/reference_sort.h"
#include "tools/bench/kernel_keys.h"
#include "tests/support/unit_test.h"

static const uint32_t element_sizes[] = { 4, 8, 16 };

#define FOR_EACH_SIZE(i)                                                                           \
	for (size_t i = 0; i < sizeof element_sizes / sizeof element_sizes[0];                     \
	     i += FOR_RACES_ONLY ? 2 : 1)

/* Fail with the parameters if the two differ. */
static void assert_same(const void *actual, const void *expected, uint32_t element_nbytes,
			uint64_t n, const char *what)
{
	const char *g = actual, *w = expected;
	uint64_t i = 0;

	if (memcmp(actual, expected, n * element_nbytes) == 0)
		return;
	while (memcmp(g + i * element_nbytes, w + i * element_nbytes, element_nbytes) == 0)
		i++;
	fail_msg("%s: %u bytes, n %llu: element %llu differs", what, (unsigned)element_nbytes,
		 (unsigned long long)n, (unsigned long long)i);
}

/* Write element i of n: a key, or a pair that contains i, which identifies it among equal keys. */
static void put_element(void *elements, uint32_t element_nbytes, bool pairs, uint64_t i,
			uint64_t number, uint64_t n, enum key_distribution keys)
{
	/* Dropping the lowest bits makes close keys equal. */
	const uint128_t pair = key_make(keys, number, n, 64) >> 84 << 84 | number;

	if (pairs)
		memcpy((char *)elements + i * sizeof pair, &pair, sizeof pair);
	else
		key_store(elements, element_nbytes, i,
			  key_make(keys, number, n, element_nbytes * 8));
}

/* Set for a build with another geometry, to which the keys do not matter. */
#ifndef KEYS_STEP
#define KEYS_STEP (FOR_RACES_ONLY ? 5 : 1)
#endif

enum { STEP = FOR_RACES_ONLY ? 7 : 1 };

/* Skewed keys are always among them: tags cannot order the elements of their tiles. */
#define FOR_EACH_KEYS(keys)                                                                        \
	for (enum key_distribution keys = KEYS_SKEWED % KEYS_STEP; keys < N_KEY_DISTRIBUTIONS;     \
	     keys += KEYS_STEP)

/* Pairs have 16 bytes. Sorting them as integers sorts keys stably. */
static void check_sort(uint32_t element_nbytes, bool pairs, uint64_t n, enum key_distribution keys)
{
	const size_t nbytes = n * element_nbytes;
	const size_t scratch_nbytes = pairs ? kernel_sort_pairs_scratch_nbytes(n) :
					      kernel_sort_scratch_nbytes(n, element_nbytes);
	void *expected = malloc(nbytes + 1), *actual = malloc(nbytes + 1);
	void *elements = kernel_memory_alloc(nbytes),
	     *scratch = kernel_memory_alloc(scratch_nbytes);

	for (uint64_t i = 0; i < n; i++)
		put_element(expected, element_nbytes, pairs, i, i, n, keys);
	kernel_memory_write(elements, expected, nbytes);
	reference_sort_elements(expected, element_nbytes, n);
	assert_int_equal(pairs ? launch_sort_pairs(elements, n, scratch, NULL) :
				 launch_sort(elements, n, element_nbytes, scratch, NULL),
			 0);
	kernel_memory_read(actual, elements, nbytes);
	assert_same(actual, expected, element_nbytes, n, key_distribution_names[keys]);
	kernel_memory_free(scratch, scratch_nbytes);
	kernel_memory_free(elements, nbytes);
	free(actual);
	free(expected);
}

/* Lengths at the limits of tiles of the small geometry, and, on a GPU, of the real ones. */
static const uint64_t small_lengths[] = { 0,   1,   2,   3,   31,  33,  191,  192,  193,
					  319, 320, 321, 576, 577, 640, 2560, 2561, 4609 };
/* Among others a tile of 8 and of 4 bytes, and 16 of them. */
static const uint64_t large_lengths[] = { 4479,  4480,  4481,   16639,  16640,   16641,
					  71680, 71681, 266240, 266241, 1000003, 2031617 };

TEST(every_length_is_sorted)
{
	FOR_EACH_SIZE(s)
	{
		for (size_t i = 0; i < sizeof small_lengths / sizeof small_lengths[0]; i += STEP)
			check_sort(element_sizes[s], false, small_lengths[i], KEYS_RANDOM);
		for (size_t i = 0;
		     device_is_fast() && i < sizeof large_lengths / sizeof large_lengths[0]; i++)
			check_sort(element_sizes[s], false, large_lengths[i], KEYS_RANDOM);
	}
}

/* The splitters compare the ends of long ranges first. Threads of short ones race as well. */
TEST(long_runs_that_do_not_overlap_are_sorted)
{
	const uint64_t n = FOR_RACES_ONLY ? 2011 : 20011;

	check_sort(8, false, n, KEYS_REVERSED);
	check_sort(16, true, n, KEYS_REVERSED);
}

TEST(every_distribution_is_sorted)
{
	FOR_EACH_SIZE(s)
	FOR_EACH_KEYS(keys)
	{
		check_sort(element_sizes[s], false, 300, keys);
		check_sort(element_sizes[s], false, device_is_fast() ? 3000017 : 1301, keys);
	}
}

/* Ascending except for the last two elements, which a test for sorted input must not miss. */
static void check_disorder_at_the_end(uint32_t element_nbytes, uint64_t n)
{
	const size_t nbytes = n * element_nbytes;
	const size_t scratch_nbytes = kernel_sort_scratch_nbytes(n, element_nbytes);
	void *expected = malloc(nbytes), *actual = malloc(nbytes);
	void *elements = kernel_memory_alloc(nbytes),
	     *scratch = kernel_memory_alloc(scratch_nbytes);

	for (uint64_t i = 0; i < n; i++)
		key_store(expected, element_nbytes, i, i < n - 2 ? i : 2 * n - 3 - i);
	kernel_memory_write(elements, expected, nbytes);
	reference_sort_elements(expected, element_nbytes, n);
	assert_int_equal(launch_sort(elements, n, element_nbytes, scratch, NULL), 0);
	kernel_memory_read(actual, elements, nbytes);
	assert_same(actual, expected, element_nbytes, n, "disorder at the end");
	kernel_memory_free(scratch, scratch_nbytes);
	kernel_memory_free(elements, nbytes);
	free(actual);
	free(expected);
}

TEST(disorder_of_the_last_two_alone_is_seen)
{
	FOR_EACH_SIZE(s)
	for (uint64_t n = 2; n <= 330; n += STEP * (n % 64 < 3 || n % 64 > 60 ? 1 : 15))
		check_disorder_at_the_end(element_sizes[s], n);
	FOR_EACH_SIZE(s)
	for (size_t i = 0; device_is_fast() && i < sizeof large_lengths / sizeof large_lengths[0];
	     i++)
		check_disorder_at_the_end(element_sizes[s], large_lengths[i]);
}

TEST(pairs_with_equal_keys_stay_in_order)
{
	FOR_EACH_KEYS(keys)
	{
		check_sort(16, true, 150, keys);
		check_sort(16, true, device_is_fast() ? 3000017 : 1601, keys);
	}
}

/* How the lengths of k runs, about n in total, are distributed. */
enum run_lengths { RUNS_EQUAL, RUNS_RANDOM, RUNS_MOSTLY_EMPTY, RUNS_ONE_LONG, N_RUN_LENGTHS };

static uint64_t run_length(enum run_lengths lengths, uint32_t i, uint32_t k, uint64_t n)
{
	const uint64_t hash = digest_mix64(i + 77);

	switch (lengths) {
	case RUNS_EQUAL:
		return n / k;
	case RUNS_RANDOM:
		return hash % (2 * n / k + 1);
	case RUNS_MOSTLY_EMPTY:
		return hash % 5 ? 0 : hash % (5 * n / k + 1);
	default:
		return i == k / 2 ? n : hash % 3;
	}
}

static void check_merge(uint32_t element_nbytes, bool pairs, uint32_t k, uint64_t about_n,
			enum run_lengths lengths, enum key_distribution keys)
{
	struct kernel_slice *slices = calloc(k + 1, sizeof *slices);
	char *expected = malloc((2 * about_n + 8 * k) * element_nbytes + 1), *actual;
	void *out, *scratch;
	size_t scratch_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < k; i++) {
		const uint64_t run_n = run_length(lengths, i, k, about_n);
		const size_t run_nbytes = run_n * element_nbytes;
		char *run = expected + n * element_nbytes;

		for (uint64_t j = 0; j < run_n; j++)
			put_element(run, element_nbytes, pairs, j, n + j, about_n, keys);
		reference_sort_elements(run, element_nbytes, run_n);
		slices[i].n = run_n;
		slices[i].elements = kernel_memory_alloc(run_nbytes);
		kernel_memory_write((void *)slices[i].elements, run, run_nbytes);
		n += run_n;
	}
	reference_sort_elements(expected, element_nbytes, n);
	actual = malloc(n * element_nbytes + 1);
	scratch_nbytes = pairs ? kernel_merge_pairs_scratch_nbytes(k, n) :
				 kernel_merge_scratch_nbytes(k, n, element_nbytes);
	scratch = kernel_memory_alloc(scratch_nbytes);
	out = kernel_memory_alloc(n * element_nbytes);
	assert_int_equal(pairs ? launch_merge_pairs(slices, k, out, scratch, NULL) :
				 launch_merge(slices, k, element_nbytes, out, scratch, NULL),
			 0);
	kernel_memory_read(actual, out, n * element_nbytes);
	assert_same(actual, expected, element_nbytes, n, key_distribution_names[keys]);
	kernel_memory_free(out, n * element_nbytes);
	kernel_memory_free(scratch, scratch_nbytes);
	for (uint32_t i = 0; i < k; i++)
		kernel_memory_free((void *)slices[i].elements, slices[i].n * element_nbytes);
	free(actual);
	free(expected);
	free(slices);
}

TEST(any_number_of_runs_is_merged)
{
	static const uint32_t numbers[] = { 1, 2, 3, 5, 8, 9, 16, 17, 64, 65, 256, 300 };

	FOR_EACH_SIZE(s)
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i += STEP)
		check_merge(element_sizes[s], false, numbers[i], device_is_fast() ? 1000000 : 3000,
			    RUNS_EQUAL, KEYS_RANDOM);
}

TEST(runs_of_any_lengths_are_merged)
{
	FOR_EACH_SIZE(s)
	for (enum run_lengths lengths = 0; lengths < N_RUN_LENGTHS; lengths++) {
		check_merge(element_sizes[s], false, 7, 900, lengths, KEYS_FEW_VALUES);
		check_merge(element_sizes[s], false, 20, device_is_fast() ? 500000 : 2000, lengths,
			    KEYS_FEW_PREFIXES);
	}
}

TEST(runs_of_every_distribution_are_merged)
{
	FOR_EACH_SIZE(s)
	FOR_EACH_KEYS(keys)
	check_merge(element_sizes[s], false, 6, device_is_fast() ? 500000 : 1500, RUNS_RANDOM,
		    keys);
}

TEST(pairs_with_equal_keys_are_merged_in_order)
{
	FOR_EACH_KEYS(keys)
	check_merge(16, true, 9, device_is_fast() ? 500000 : 1200, RUNS_RANDOM, keys);
}

TEST(no_elements_are_merged_from_empty_runs)
{
	check_merge(8, false, 1, 0, RUNS_EQUAL, KEYS_RANDOM);
	check_merge(8, false, 40, 0, RUNS_EQUAL, KEYS_RANDOM);
}
