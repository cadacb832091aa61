/*
 * head_flags - find the first or the last of the elements with equal keys, and count them
 *
 * An element is a head if its key differs from that of its neighbour: the previous element, or with
 * keep_last the next one. Elements whose prefixes differ have different keys. If the prefixes are
 * equal and the key is longer, the items are compared. The result is a bit per element and a count
 * per 32 elements (tie_flags.cuh), from which gather computes output positions.
 */
#include "kernels/records/items.cuh"
#include "kernels/records/tie_flags.cuh"

struct head_flags_scratch {
	uint32_t *equal, *before; /* one word per row */
	uint64_t *sums;           /* one per segment */
	uint64_t *n;
};

static struct head_flags_scratch lay_out_head_flags(void *memory, uint64_t n)
{
	struct head_flags_scratch heads;

	heads.equal = (uint32_t *)memory;
	heads.before = heads.equal + n_segments_for(n) * WARP;
	heads.sums = (uint64_t *)(heads.before + n_segments_for(n) * WARP);
	heads.n = heads.sums + n_segments_for(n);
	return heads;
}

size_t kernel_head_flags_nbytes(uint64_t n)
{
	return round_up(n_segments_for(n) * (2 * WARP * sizeof(uint32_t) + sizeof(uint64_t)) +
				sizeof(uint64_t),
			16);
}

template <class E> struct keys_are_equal {
	const kernel_items *items;
	const E *elements;

	/* Return whether element i, which is not the first, equals the previous one. */
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
__global__ void __launch_bounds__(stream_pass::n_threads)
	flag_equal_keys(kernel_items items, const E *elements, uint64_t n, bool keep_last,
			head_flags_scratch heads)
{
	const keys_are_equal<E> equal_previous = { &items, elements };
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t segment = first_segment(); segment < n_segments_for(n);
	     segment += segment_step()) {
		const uint64_t base = segment * SEGMENT;
		const uint32_t word = ballot_rows(base, n, [=](uint64_t i) {
			return keep_last ? i + 1 < n && equal_previous(i + 1) :
					   i > 0 && equal_previous(i);
		});
		const uint32_t n_heads = __popc(~word & valid_mask(base + lane * WARP, n));
		const uint32_t sum = lanes_sum(n_heads, WARP);

		heads.equal[segment * WARP + lane] = word;
		if (lane == 0)
			heads.sums[segment] = sum;
	}
}

/* Compute the number of heads before each row from the number before its segment. */
static __global__ void __launch_bounds__(stream_pass::n_threads)
	add_segment_sums(uint64_t n, head_flags_scratch heads)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t segment = first_segment(); segment < n_segments_for(n);
	     segment += segment_step()) {
		const uint64_t row = segment * WARP + lane;
		const uint32_t n_heads = __popc(~heads.equal[row] & valid_mask(row * WARP, n));

		heads.before[row] =
			(uint32_t)heads.sums[segment] + lanes_exclusive_sum(n_heads, WARP);
	}
}

template <class E>
static int flag_heads(const kernel_items *items, const E *elements, uint64_t n, bool keep_last,
		      const head_flags_scratch &heads, CUstream_st *stream)
{
	const unsigned n_blocks = n_blocks_for(n, SEGMENT * stream_pass::n_warps);
	int r;

	LAUNCH(flag_equal_keys<E>, n_blocks, stream_pass::n_threads, 0, stream, *items, elements, n,
	       keep_last, heads);
	r = launch_scan(heads.sums, n_segments_for(n), heads.n, stream);
	if (r)
		return r;
	LAUNCH(add_segment_sums, n_blocks, stream_pass::n_threads, 0, stream, n, heads);
	return (int)cudaGetLastError();
}

int launch_flag_heads(const struct kernel_items *items, const void *elements,
		      uint32_t element_nbytes, uint64_t n, bool keep_last, void *memory,
		      struct kernel_head_flags *ret_heads, CUstream_st *stream)
{
	const struct head_flags_scratch heads = lay_out_head_flags(memory, n);

	ret_heads->equal = heads.equal;
	ret_heads->keep_last = keep_last;
	ret_heads->before = heads.before;
	ret_heads->n = heads.n;
	if (n == 0)
		return (int)cudaMemsetAsync(heads.n, 0, sizeof *heads.n, stream);
	return element_nbytes == 8 ?
		       flag_heads(items, (const uint64_t *)elements, n, keep_last, heads, stream) :
		       flag_heads(items, (const uint128_t *)elements, n, keep_last, heads, stream);
}
