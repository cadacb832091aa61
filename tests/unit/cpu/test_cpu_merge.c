/*
 * test_cpu_merge - two-way merges, and merges of thousands of slices, against a sort of everything
 */
#include "src/device/cpu/cpu_merge.h"
#include "tests/support/elements.h"

#include "tests/support/unit_test.h"

static const uint64_t lengths[] = {
	0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64, 100, 129, 1000
};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static void check_merge2(merge2_fn *merge2, uint32_t element_nbytes, int dist, uint64_t n_a,
			 uint64_t n_b)
{
	const size_t nbytes = (n_a + n_b) * element_nbytes;
	char *all = guarded_elements_make(element_nbytes, dist, n_a + n_b, n_a);
	void *out = guarded_alloc(nbytes);
	void *a, *b;

	reference_sort_elements(all, element_nbytes, n_a);
	reference_sort_elements(all + n_a * element_nbytes, element_nbytes, n_b);
	a = guarded_copy(all, n_a * element_nbytes);
	b = guarded_copy(all + n_a * element_nbytes, n_b * element_nbytes);
	merge2(a, n_a, b, n_b, out);
	reference_sort_elements(all, element_nbytes, n_a + n_b);
	if (memcmp(out, all, nbytes) != 0)
		fail_msg("%u bytes, distribution %d, %lu and %lu", element_nbytes, dist,
			 (unsigned long)n_a, (unsigned long)n_b);
	guarded_elements_free(a, element_nbytes, n_a);
	guarded_elements_free(b, element_nbytes, n_b);
	guarded_free(out, nbytes);
	guarded_free(all, nbytes);
}

/* Sorted slices of the other distributions look like these. */
static const int merge_dists[] = { GEN_RANDOM, GEN_SORTED, GEN_TWO_KEYS, GEN_ZIPF,
				   ELEMENTS_ALL_ONES };
enum { N_MERGE_DISTS = sizeof merge_dists / sizeof merge_dists[0] };

static void check_merge2_all(merge2_fn *merge2, uint32_t element_nbytes)
{
	for (unsigned dist = 0; dist < N_MERGE_DISTS; dist++)
		for (unsigned i = 0; i < N_LENGTHS; i++)
			for (unsigned j = 0; j < N_LENGTHS; j++)
				check_merge2(merge2, element_nbytes, merge_dists[dist], lengths[i],
					     lengths[j]);
}

TEST(two_way_merge_in_plain_c_is_exact)
{
	check_merge2_all(merge2_4, 4);
	check_merge2_all(merge2_8, 8);
	check_merge2_all(merge2_16, 16);
}

TEST(two_way_merge_of_this_machine_is_exact)
{
	for (unsigned i = 0; i < N_ELEMENT_SIZES; i++)
		check_merge2_all(merge2_choose(element_sizes[i]), element_sizes[i]);
}

/* Deal `all` to k sorted slices, each with its own guarded memory; every third may be empty. */
static struct slice *deal(char *all, uint32_t element_nbytes, bool some_empty, uint32_t k,
			  uint64_t n)
{
	struct slice *slices = malloc(k * sizeof *slices);

	assert_non_null(slices);
	for (uint32_t i = 0; i < k; i++) {
		const uint64_t even_n = n / (k - i);
		const uint64_t n_slice = i + 1 == k  ? n :
					 !some_empty ? even_n :
					 i % 3 == 0  ? 0 :
						       even_n * 3 / 2;

		reference_sort_elements(all, element_nbytes, n_slice);
		slices[i].elements = guarded_copy(all, n_slice * element_nbytes);
		slices[i].n = n_slice;
		all += n_slice * element_nbytes;
		n -= n_slice;
	}
	return slices;
}

static void free_slices(struct slice *slices, uint32_t k, uint32_t element_nbytes)
{
	for (uint32_t i = 0; i < k; i++)
		guarded_elements_free((void *)slices[i].elements, element_nbytes, slices[i].n);
	free(slices);
}

static void check_merge(uint32_t element_nbytes, bool some_empty, uint32_t k, uint64_t n)
{
	const size_t scratch_nbytes =
		(cpu_merge_scratch_nbytes(k, n, element_nbytes) + 15) / 16 * 16;
	void *all = guarded_elements_make(element_nbytes, GEN_RANDOM, n, k);
	struct slice *slices = deal(all, element_nbytes, some_empty, k, n);
	void *out = guarded_alloc(n * element_nbytes);
	void *scratch = guarded_alloc(scratch_nbytes);

	cpu_merge(&(struct merge_elements_op){ .slices = slices,
					       .k = k,
					       .element_nbytes = element_nbytes,
					       .out = out,
					       .scratch = scratch });
	reference_sort_elements(all, element_nbytes, n);
	if (memcmp(out, all, n * element_nbytes) != 0)
		fail_msg("%u bytes, k %u, n %lu", element_nbytes, k, (unsigned long)n);
	free_slices(slices, k, element_nbytes);
	guarded_free(scratch, scratch_nbytes);
	guarded_elements_free(out, element_nbytes, n);
	guarded_elements_free(all, element_nbytes, n);
}

/* So many that the shortest blocks still make a tile larger than usual. */
TEST(thousands_of_slices_are_merged)
{
	check_merge(16, false, 3000, 100000);
	check_merge(8, true, 9000, 300000);
}

TEST(no_slices_are_merged_to_nothing)
{
	struct merge_elements_op op = { .k = 0, .element_nbytes = 8 };

	cpu_merge(&op);
}
