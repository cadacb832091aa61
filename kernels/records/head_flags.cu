/*
 * head_flags - which sorted elements are the first of those with equal keys, and how many before each
 *
 * Elements that differ in their part of the key differ; of others the items are looked at, if the
 * key goes further. The answer is a bit for each element and a count for every 32 (tie_flags.cuh), from
 * which gather knows where an item goes.
 */
#include "kernels/records/items.cuh"
#include "kernels/records/tie_flags.cuh"

struct firsts_memory {
	uint32_t *equal, *before; /* a word for each row */
	uint64_t *sums;           /* of each stretch */
	uint64_t *n;
};

static struct firsts_memory lay_out_firsts(void *memory, uint64_t n)
{
	struct firsts_memory firsts;

	firsts.equal = (uint32_t *)memory;
	firsts.before = firsts.equal + stretches_for(n) * WARP;
	firsts.sums = (uint64_t *)(firsts.before + stretches_for(n) * WARP);
	firsts.n = firsts.sums + stretches_for(n);
	return firsts;
}

size_t kernel_firsts_nbytes(uint64_t n)
{
	return round_up(stretches_for(n) * (2 * WARP * sizeof(uint32_t) + sizeof(uint64_t)) +
				sizeof(uint64_t),
			16);
}

template <class E> struct keys_agree {
	const kernel_items *items;
	const E *elements;

	__device__ bool operator()(uint64_t i) const
	{
		const E a = elements[i - 1], b = elements[i];
		const uint32_t prefix_nbytes = sizeof(E) - NUMBER_BITS / 8;

		if (a >> NUMBER_BITS != b >> NUMBER_BITS)
			return false;
		return items->keys.key_nbytes <= prefix_nbytes ||
		       compare_items(*items, item_at(*items, number_of(a)),
				     item_at(*items, number_of(b)), prefix_nbytes) == 0;
	}
};

template <class E>
__global__ void __launch_bounds__(sweep::n_threads)
	mark_equal(kernel_items items, const E *elements, uint64_t n, firsts_memory firsts)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t stretch = first_stretch(); stretch < stretches_for(n);
	     stretch += stretch_step()) {
		const uint64_t base = stretch * STRETCH;
		const uint32_t word = vote_rows(base, n, keys_agree<E>{ &items, elements });
		const uint32_t n_firsts = __popc(~word & real_of(base + lane * WARP, n));
		const uint32_t sum = lanes_sum(n_firsts, WARP);

		firsts.equal[stretch * WARP + lane] = word;
		if (lane == 0)
			firsts.sums[stretch] = sum;
	}
}

/* What comes before every row, from what comes before every stretch. */
static __global__ void __launch_bounds__(sweep::n_threads)
	spread_sums(uint64_t n, firsts_memory firsts)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t stretch = first_stretch(); stretch < stretches_for(n);
	     stretch += stretch_step()) {
		const uint64_t row = stretch * WARP + lane;
		const uint32_t n_firsts = __popc(~firsts.equal[row] & real_of(row * WARP, n));

		firsts.before[row] =
			(uint32_t)firsts.sums[stretch] + lanes_sum_before(n_firsts, WARP);
	}
}

template <class E>
static int find_firsts(const kernel_items *items, const E *elements, uint64_t n,
		       const firsts_memory &firsts, CUstream_st *stream)
{
	const unsigned n_blocks = blocks_for(n, STRETCH * sweep::n_warps);
	int r;

	LAUNCH(mark_equal<E>, n_blocks, sweep::n_threads, 0, stream, *items, elements, n, firsts);
	r = launch_scan(firsts.sums, stretches_for(n), firsts.n, stream);
	if (r)
		return r;
	LAUNCH(spread_sums, n_blocks, sweep::n_threads, 0, stream, n, firsts);
	return (int)cudaGetLastError();
}

int launch_find_firsts(const struct kernel_items *items, const void *elements,
		       uint32_t element_nbytes, uint64_t n, void *memory,
		       struct kernel_firsts *ret_firsts, CUstream_st *stream)
{
	const struct firsts_memory firsts = lay_out_firsts(memory, n);

	ret_firsts->equal = firsts.equal;
	ret_firsts->before = firsts.before;
	ret_firsts->n = firsts.n;
	if (n == 0)
		return (int)cudaMemsetAsync(firsts.n, 0, sizeof *firsts.n, stream);
	return element_nbytes == 8 ?
		       find_firsts(items, (const uint64_t *)elements, n, firsts, stream) :
		       find_firsts(items, (const uint128_t *)elements, n, firsts, stream);
}
