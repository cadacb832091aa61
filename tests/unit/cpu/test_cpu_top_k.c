/*
 * test_cpu_top_k - whatever the elements are, the first of them are selected
 */
#include "src/device/cpu/cpu_ops.h"

#include <stdlib.h>
#include <string.h>

#include "src/device/cpu/cpu_sort.h"
#include "tests/support/random_keys.h"
#include "tests/support/unit_test.h"

enum { N = 20000, LIMIT = 50 };

static const struct element_format narrow = { .element_nbytes = 8, .number_bits = 16 };
static const struct element_format wide = { .element_nbytes = 16, .number_bits = 32 };

/* The key of record i; below 2^48. */
typedef uint64_t key_fn(uint64_t i);

static uint64_t any_key(uint64_t i)
{
	return random_number(1, i) >> 16;
}

static uint64_t ascending(uint64_t i)
{
	return i;
}

static uint64_t descending(uint64_t i)
{
	return N - i;
}

static uint64_t one_key(uint64_t i)
{
	(void)i;
	return 7;
}

static uint64_t two_keys(uint64_t i)
{
	return random_number(2, i) % 2;
}

/* The records that a sample takes are the smallest. */
static uint64_t small_where_sampled(uint64_t i)
{
	return i % (N / 256) == 0 ? 1 : 1000 + i;
}

/* The elements of N records, for free(). */
static void *make_elements(const struct element_format *format, key_fn *key)
{
	void *elements = aligned_alloc(16, (size_t)N * format->element_nbytes);

	assert_non_null(elements);
	for (uint64_t i = 0; i < N; i++)
		element_put(format, elements, i, (uint128_t)key(i) << 80, i);
	return elements;
}

static void sort(const struct element_format *format, void *elements, uint64_t n)
{
	void *scratch = malloc(cpu_sort_scratch_nbytes(n, format->element_nbytes) + 1);

	assert_non_null(scratch);
	cpu_sort(&(struct sort_elements_op){ .elements = elements,
					     .n = n,
					     .scratch = scratch,
					     .element_nbytes = format->element_nbytes });
	free(scratch);
}

/* Select, sort what is selected, and all for comparison. Returns how many were selected. */
static uint64_t check_top_k(const struct element_format *format, key_fn *key, uint64_t limit)
{
	void *all = make_elements(format, key), *elements = make_elements(format, key);
	const uint64_t n = cpu_top_k(&(struct top_k_op){
		.format = format, .elements = elements, .n = N, .limit = limit });

	assert_true(n <= N && (n >= limit || n == N));
	sort(format, all, N);
	sort(format, elements, n);
	assert_memory_equal(elements, all, n * format->element_nbytes);
	if (n < N)
		assert_true(element_key(format, all, n - 1) < element_key(format, all, n));
	sort(format, elements, N);
	assert_memory_equal(elements, all, (size_t)N * format->element_nbytes);
	free(all);
	free(elements);
	return n;
}

static uint64_t check(key_fn *key, uint64_t limit)
{
	const uint64_t n = check_top_k(&narrow, key, limit);

	assert_int_equal(check_top_k(&wide, key, limit), n);
	return n;
}

TEST(first_elements_are_selected)
{
	static key_fn *const keys[] = { any_key, ascending, descending, small_where_sampled };
	static const uint64_t limits[] = { 1, 2, LIMIT, N / 100, N / 5, N / 4, N / 2, N, 2 * N };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		for (size_t j = 0; j < sizeof limits / sizeof limits[0]; j++)
			check(keys[i], limits[j]);
}

TEST(most_elements_are_excluded)
{
	assert_true(check(any_key, LIMIT) < N / 10);
	assert_true(check(descending, LIMIT) < N / 10);
}

TEST(elements_that_tie_stay_together)
{
	assert_int_equal(check(one_key, LIMIT), N);
	assert_in_range(check(two_keys, LIMIT), N / 3, 2 * N / 3);
}

TEST(misleading_sample_is_corrected)
{
	assert_int_equal(check(small_where_sampled, N / 5), N);
}
