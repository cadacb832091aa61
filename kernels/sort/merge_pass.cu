/*
 * merge_pass - make every tile of a pass from its slices of up to 16 runs
 *
 * The slices of a tile are between two neighbouring rows of cuts. Slices 2p and 2p + 1 form a pair
 * of segments in shared memory. Four rounds of tile_merge.cuh merge them to one tile.
 *
 *	slices    |   0   |   1   |   2   | 3 | ...		in order: "natural" positions
 *	tile      | 0 -> | <- 1 | 2 ->    | <- 3 | ...		pairs, padded to whole threads
 *
 * The end of a pair is rounded up to whole threads, which wastes at most ITEMS - 1 positions for
 * each pair but the last. So a tile of a merge pass holds the elements of n_pairs - 1 threads fewer
 * than it could.
 *
 * Wide elements stay at their natural positions in shared memory, and their tags are merged. If the
 * first and last elements of the slices show that these are already in order, they are only copied.
 */
#include "kernels/sort/pass.cuh"
#include "kernels/sort/tile_kernel.cuh"

static constexpr unsigned PAIRS_MAX = FAN_IN / 2;

template <class E, shared_limit IN = SHARED_LIMIT>
static constexpr uint32_t
	merge_n = (tile_of<E, IN>::n_threads - (PAIRS_MAX - 1)) * tile_of<E, IN>::items;

/*
 * The unit of loading: up to a warp of adjacent elements of one slice. Lane i loads from[i], whose
 * natural position is natural_position + i, and whose position in the tile is tile_position + i *
 * step. step is -1 for odd slices, which descend, and else 1.
 */
template <class E> struct alignas(16) fragment {
	const E *from;
	uint16_t natural_position, tile_position;
	uint16_t n;
	int16_t step;
};

/* The maximum number of fragments of a tile, where each slice may end with an incomplete one. */
template <class E, shared_limit IN = SHARED_LIMIT>
static constexpr uint32_t max_fragments = merge_n<E, IN> / WARP + FAN_IN;
/* The maximum number of fragments of a warp. */
template <class E>
static constexpr uint32_t max_warp_fragments = divide_up(max_fragments<E>,
							 tile_of<E>::n_threads / WARP);

template <class E, shared_limit IN = SHARED_LIMIT>
struct merge_memory : tile_memory<E, tile_of<E, IN>> {
	fragment<E> fragments[max_fragments<E, IN>];
	const E *from[FAN_IN];
	uint32_t begin[FAN_IN + 1]; /* natural position of each slice, and of the end */
	uint32_t first_fragment[FAN_IN + 1];
	uint32_t bounds[PAIRS_MAX + 1]; /* first thread of each pair */
};

static constexpr GSORT_HD unsigned pairs_for(unsigned fan_in)
{
	return power_of_two_from(fan_in > 2 ? (fan_in + 1) / 2 : 1);
}

/* Compute the slices and their positions, in the first warp. */
template <class E>
__device__ __forceinline__ void lay_out_slices(merge_memory<E> &memory, const pass<E> &pass,
					       uint64_t boundary)
{
	constexpr unsigned items = tile_of<E>::items;
	const unsigned lane = threadIdx.x, n_pairs = pairs_for(pass.fan_in);
	const E *from = nullptr;
	uint32_t n = 0, n_pair, begin, first_fragment, first_thread;

	if (lane < FAN_IN) {
		from = pass.cuts[boundary * FAN_IN + lane];
		n = (uint32_t)(pass.cuts[(boundary + 1) * FAN_IN + lane] - from);
	}
	begin = lanes_exclusive_sum(n, WARP);
	first_fragment = lanes_exclusive_sum((n + WARP - 1) / WARP, WARP);
	n_pair = n + __shfl_xor_sync(ALL_LANES, n, 1);
	n_pair = (n_pair + items - 1) / items; /* in threads */
	first_thread = lanes_exclusive_sum(lane % 2 ? 0u : n_pair, WARP);
	if (lane < FAN_IN)
		memory.from[lane] = from;
	if (lane <= FAN_IN) {
		memory.begin[lane] = begin;
		memory.first_fragment[lane] = first_fragment;
		if (lane % 2 == 0)
			memory.bounds[lane / 2] = lane / 2 < n_pairs ? first_thread :
								       tile_of<E>::n_threads;
	}
}

/* List the fragments of all slices, with all threads. */
template <class E> __device__ __forceinline__ void lay_out_fragments(merge_memory<E> &memory)
{
	const uint32_t n_fragments = memory.first_fragment[FAN_IN];

	for (uint32_t i = threadIdx.x; i < n_fragments; i += tile_of<E>::n_threads) {
		const uint32_t slice = co_rank_pivot<uint32_t>(memory.first_fragment, 0, FAN_IN, i,
							       true, less_than()) -
				       1;
		const uint32_t offset = (i - memory.first_fragment[slice]) * WARP;
		const uint32_t n_left = memory.begin[slice + 1] - memory.begin[slice] - offset;
		const uint32_t pair = slice / 2;
		fragment<E> fragment;

		fragment.from = memory.from[slice] + offset;
		fragment.natural_position = (uint16_t)(memory.begin[slice] + offset);
		fragment.n = (uint16_t)(n_left < WARP ? n_left : WARP);
		if (slice % 2) {
			fragment.tile_position =
				(uint16_t)(memory.bounds[pair + 1] * tile_of<E>::items - 1 -
					   offset);
			fragment.step = -1;
		} else {
			fragment.tile_position =
				(uint16_t)(memory.bounds[pair] * tile_of<E>::items + offset);
			fragment.step = 1;
		}
		memory.fragments[i] = fragment;
	}
}

/*
 * Call `visit(j, fragment)` for each fragment of this thread's warp that has an element for this
 * lane.
 */
template <class E, class Visit>
__device__ __forceinline__ void for_each_fragment(const merge_memory<E> &memory, Visit visit)
{
	const uint32_t n_fragments = memory.first_fragment[FAN_IN];

#pragma unroll
	for (unsigned j = 0; j < max_warp_fragments<E>; j++) {
		const uint32_t i = j * (tile_of<E>::n_threads / WARP) + threadIdx.x / WARP;

		if (i < n_fragments) {
			const fragment<E> fragment = memory.fragments[i];

			if (threadIdx.x % WARP < fragment.n)
				visit(j, fragment);
		}
	}
}

/* Return the position of this lane's element of a fragment: in the tile, and in natural order. */
template <class E> __device__ __forceinline__ uint32_t tile_position(const fragment<E> &fragment)
{
	return (uint32_t)(fragment.tile_position + (int32_t)(threadIdx.x % WARP) * fragment.step);
}

template <class E> __device__ __forceinline__ uint32_t natural_position(const fragment<E> &fragment)
{
	return fragment.natural_position + threadIdx.x % WARP;
}

/* Fill the gaps between the slices of each pair. */
template <class E, class V>
__device__ __forceinline__ void fill_gaps(const merge_memory<E> &memory, V *tile, unsigned n_pairs)
{
	constexpr unsigned items = tile_of<E>::items;

	for (unsigned pair = 0; pair < n_pairs; pair++) {
		const uint32_t *begin = memory.begin + 2 * pair;
		const uint32_t first = memory.bounds[pair] * items + begin[1] - begin[0];
		const uint32_t end = memory.bounds[pair + 1] * items - (begin[2] - begin[1]);

		for (uint32_t at = first + threadIdx.x; at < end; at += tile_of<E>::n_threads)
			tile[at] = max_sentinel<V>::value;
	}
}

/* Merge the values at their tile positions into one ascending tile, in all rounds. */
template <class E, class V, unsigned ITEMS>
__device__ __forceinline__ void merge_tile(merge_memory<E> &memory, V *tile, unsigned n_pairs,
					   V (&v)[ITEMS])
{
	unsigned own_segment = 0;
	uint32_t begin;

	for (unsigned pair = 1; pair < n_pairs; pair++)
		own_segment += memory.bounds[pair] <= threadIdx.x;
	begin = memory.bounds[own_segment] * ITEMS;
	merge_pair(tile, memory.cuts,
		   segment_pair{
			   begin, memory.begin[2 * own_segment + 1] - memory.begin[2 * own_segment],
			   memory.bounds[own_segment + 1] * ITEMS - begin, own_segment % 2 == 0 },
		   v);
	merge_segments(tile, memory.cuts, memory.bounds, n_pairs, own_segment, v);
}

/*
 * Return whether each slice begins at or above the end of the previous one. at(slice, position)
 * returns the index in `values` of the element with that natural position.
 */
template <class E, class V, class At>
__device__ __forceinline__ bool slices_are_in_order(const merge_memory<E> &memory, const V *values,
						    At at)
{
	const uint32_t slice = threadIdx.x;
	bool disorder = false;

	if (slice < FAN_IN && memory.begin[slice] < memory.begin[slice + 1] &&
	    memory.begin[slice + 1] < memory.begin[FAN_IN]) {
		const uint32_t next = memory.begin[slice + 1];
		uint32_t next_slice = slice + 1;

		while (memory.begin[next_slice + 1] == next)
			next_slice++;
		disorder = values[at(next_slice, next)] < values[at(slice, next - 1)];
	}
	return !__syncthreads_or(disorder);
}

/* Merge the elements themselves, which are at their natural positions. */
template <class E>
__device__ __noinline__ void merge_elements(merge_memory<E> &memory, unsigned n_pairs, E *to)
{
	E elements[max_warp_fragments<E>], v[tile_of<E>::items];

	for_each_fragment(memory, [&](unsigned j, const fragment<E> &fragment) {
		elements[j] = memory.elements[natural_position(fragment)];
	});
	__syncthreads();
	for_each_fragment(memory, [&](unsigned j, const fragment<E> &fragment) {
		memory.elements[tile_position(fragment)] = elements[j];
	});
	fill_gaps(memory, memory.elements, n_pairs);
	__syncthreads();
	merge_tile(memory, memory.elements, n_pairs, v);
	write_elements(memory, to, memory.begin[FAN_IN]);
}

/* Merge pairs by key and natural position; see sort_elements(). */
__device__ __noinline__ void merge_elements(merge_memory<pair_element> &memory, unsigned n_pairs,
					    pair_element *to)
{
	typedef tile_of<pair_element> shape;
	uint128_t elements[max_warp_fragments<pair_element>], v[shape::items];
	uint128_t *tile = &memory.elements[0].bits;

	for_each_fragment(memory, [&](unsigned j, const fragment<pair_element> &fragment) {
		elements[j] = with_position(memory.elements[natural_position(fragment)],
					    natural_position(fragment));
	});
	__syncthreads();
	for_each_fragment(memory, [&](unsigned j, const fragment<pair_element> &fragment) {
		tile[tile_position(fragment)] = elements[j];
	});
	fill_gaps(memory, tile, n_pairs);
	__syncthreads();
	merge_tile(memory, tile, n_pairs, v);
	for (uint32_t at = threadIdx.x; at < memory.begin[FAN_IN]; at += shape::n_threads) {
		const uint32_t natural_position = position_of(tile[at]);
		const uint32_t slice = co_rank_pivot<uint32_t>(memory.begin, 0, FAN_IN,
							       natural_position, true,
							       less_than()) -
				       1;

		to[at].bits = with_payload(
			tile[at], memory.from[slice][natural_position - memory.begin[slice]]);
	}
}

/* Merge a tile of wide elements by tags. edges: a lower and an upper bound of the tile's keys. */
template <class E>
__device__ __forceinline__ void merge_by_tags(merge_memory<E> &memory, unsigned n_pairs,
					      const key_type<E> *edges,
					      const E (&elements)[max_warp_fragments<E>], E *to)
{
	typedef tile_of<E> shape;
	const tag_format<key_type<E>, shape::n> format(edges[0], edges[1]);
	const uint32_t n = memory.begin[FAN_IN];
	uint32_t v[shape::items];

	for_each_fragment(memory, [&](unsigned j, const fragment<E> &fragment) {
		memory.elements[natural_position(fragment)] = elements[j];
		memory.tags[tile_position(fragment)] =
			format.tag(key_of(elements[j]), natural_position(fragment));
	});
	fill_gaps(memory, memory.tags, n_pairs);
	__syncthreads();
	if (slices_are_in_order(memory, memory.elements, [](uint32_t, uint32_t natural_position) {
		    return natural_position;
	    })) {
		write_elements(memory, to, n);
		return;
	}
	merge_tile(memory, memory.tags, n_pairs, v);
	if (format.shift &&
	    !sort_tied_tags(tied_tags<E, shape::n>{ memory.elements, memory.tags, n }, memory.cuts,
			    v)) {
		merge_elements(memory, n_pairs, to);
		return;
	}
	write_by_tags(memory, to, n);
}

/* Merge a tile of elements without tags. */
template <class E>
__device__ __forceinline__ void merge_plain(merge_memory<E> &memory, unsigned n_pairs,
					    const E (&elements)[max_warp_fragments<E>], E *to)
{
	E v[tile_of<E>::items];

	for_each_fragment(memory, [&](unsigned j, const fragment<E> &fragment) {
		memory.elements[tile_position(fragment)] = elements[j];
	});
	fill_gaps(memory, memory.elements, n_pairs);
	__syncthreads();
	if (slices_are_in_order(
		    memory, memory.elements, [&](uint32_t slice, uint32_t natural_position) {
			    const uint32_t offset = natural_position - memory.begin[slice];
			    const uint32_t first =
				    memory.bounds[slice / 2 + slice % 2] * tile_of<E>::items;

			    return slice % 2 ? first - 1 - offset : first + offset;
		    })) {
		for_each_fragment(memory, [&](unsigned, const fragment<E> &fragment) {
			to[natural_position(fragment)] = fragment.from[threadIdx.x % WARP];
		});
		return;
	}
	merge_tile(memory, memory.elements, n_pairs, v);
	write_elements(memory, to, memory.begin[FAN_IN]);
}

template <class E>
__global__ void __launch_bounds__(tile_of<E>::n_threads, tile_of<E>::n_blocks)
	merge_tiles(pass<E> pass)
{
	merge_memory<E> &memory = *shared_memory<merge_memory<E>>();
	const run_group_view group = run_group_of_tile(pass, blockIdx.x);
	const uint64_t tile = blockIdx.x - group.first_tile, boundary = blockIdx.x + group.index;
	const unsigned n_pairs = pairs_for(pass.fan_in);
	E elements[max_warp_fragments<E>];
	E *to = pass.out;

	if (pass.state) {
		if (!pass.state->merged[pass.index])
			return;
		to = buffer_at(pass, source_buffer(pass) ^ 1);
	}
	to += group.first_element + tile * pass.tile_n;
	if (threadIdx.x < WARP)
		lay_out_slices(memory, pass, boundary);
	__syncthreads();
	lay_out_fragments(memory);
	__syncthreads();
	for_each_fragment(memory, [&](unsigned j, const fragment<E> &fragment) {
		elements[j] = fragment.from[threadIdx.x % WARP];
	});
	if constexpr (is_tagged<E>)
		merge_by_tags(memory, n_pairs, pass.edges + boundary, elements, to);
	else
		merge_plain(memory, n_pairs, elements, to);
}

template <class E> uint32_t merge_tile_n(shared_limit limit)
{
	return limit == SHARED_LIMIT_64K ? merge_n<E, SHARED_LIMIT_64K> :
					   merge_n<E, SHARED_LIMIT_99K>;
}

/* Launch the code that the device has: its tiles depend on the shared memory limit. */
template <shared_limit IN, class E>
static int launch_tiles(const pass<E> &pass, CUstream_st *stream)
{
	constexpr size_t nbytes = sizeof(merge_memory<E, IN>);
	const int r = (int)cudaFuncSetAttribute(
		merge_tiles<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)nbytes);

	static_assert(nbytes <= shared_limit_nbytes(IN), "a block may not use more");
	if (r)
		return r;
	LAUNCH(merge_tiles<E>, (unsigned)pass.n_tiles, (tile_of<E, IN>::n_threads), nbytes, stream,
	       pass);
	return (int)cudaGetLastError();
}

template <class E>
int launch_merge_tiles(const pass<E> &pass, shared_limit limit, CUstream_st *stream)
{
	return limit == SHARED_LIMIT_64K ? launch_tiles<SHARED_LIMIT_64K>(pass, stream) :
					   launch_tiles<SHARED_LIMIT_99K>(pass, stream);
}

#define INSTANTIATE(type)                                                                          \
	template uint32_t merge_tile_n<type>(shared_limit);                                        \
	template int launch_merge_tiles(const pass<type> &, shared_limit, CUstream_st *);

INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
INSTANTIATE(uint128_t)
INSTANTIATE(pair_element)

#undef INSTANTIATE
