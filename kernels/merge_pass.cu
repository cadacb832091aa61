/*
 * merge_pass - every tile of a pass is made from its slices of up to 16 runs
 *
 * The slices of a tile are what lies between two neighbouring rows of cuts. Slices 2p and 2p + 1
 * make a pair of segments in shared memory; four rounds of tile.cuh make one tile of them.
 *
 *	slices    |   0   |   1   |   2   | 3 | ...		as they come: "natural" positions
 *	tile      | 0 -> | <- 1 | 2 ->    | <- 3 | ...		pairs, filled up to whole threads
 *
 * A pair's end is rounded up to whole threads, which costs at most ITEMS - 1 positions for each
 * but the last pair: hence a tile of a merge pass holds n_pairs - 1 threads' worth of elements
 * less than it could.
 *
 * Wide elements lie in shared memory at their natural positions, and tags go through the rounds.
 * If the slices are in order as they come, which the ends of neighbours tell, they are only
 * copied.
 */
#include "kernels/pass.cuh"
#include "kernels/tile_kernel.cuh"

static constexpr unsigned PAIRS_MAX = FAN_IN / 2;

template <class E>
static constexpr uint32_t merge_n = (tile_of<E>::n_threads - (PAIRS_MAX - 1)) * tile_of<E>::items;

template <class E> struct merge_memory : tile_memory<E> {
	const E *from[FAN_IN];
	uint32_t begin[FAN_IN + 1];     /* natural position of each slice; at the end, of none */
	uint32_t origin[FAN_IN];        /* see place() */
	uint32_t bounds[PAIRS_MAX + 1]; /* first thread of each pair */
};

/* The position in the tile of what is at `natural` in `slice`: odd slices descend. */
template <class E>
__device__ __forceinline__ uint32_t place(const merge_memory<E> &memory, uint32_t slice,
					  uint32_t natural)
{
	return slice % 2 ? memory.origin[slice] - natural : memory.origin[slice] + natural;
}

static constexpr GSORT_HD unsigned pairs_for(unsigned fan_in)
{
	return power_of_two_from(fan_in > 2 ? (fan_in + 1) / 2 : 1);
}

/* Lay out the tile; the first warp does. */
template <class E>
__device__ __forceinline__ void lay_out(merge_memory<E> &memory, const pass<E> &pass,
					uint64_t boundary)
{
	constexpr unsigned items = tile_of<E>::items, n_threads = tile_of<E>::n_threads;
	const unsigned lane = threadIdx.x, n_pairs = pairs_for(pass.fan_in);
	const E *from = nullptr;
	uint32_t n = 0, n_pair, begin, first_thread, end_thread;

	if (lane < FAN_IN) {
		from = pass.cuts[boundary * FAN_IN + lane];
		n = (uint32_t)(pass.cuts[(boundary + 1) * FAN_IN + lane] - from);
	}
	begin = lanes_sum_before(n, WARP);
	n_pair = n + __shfl_xor_sync(ALL_LANES, n, 1);
	n_pair = (n_pair + items - 1) / items; /* in threads */
	first_thread = lanes_sum_before(lane % 2 ? 0 : n_pair, WARP) - (lane % 2 ? n_pair : 0);
	end_thread = first_thread + n_pair;
	if (lane / 2 >= n_pairs - 1)
		end_thread = n_threads;
	if (lane < FAN_IN) {
		memory.from[lane] = from;
		memory.begin[lane] = begin;
		memory.origin[lane] = lane % 2 ? end_thread * items - 1 + begin :
						 first_thread * items - begin;
		if (lane % 2)
			memory.bounds[lane / 2 + 1] = end_thread;
	}
	if (lane == 0)
		memory.bounds[0] = 0;
	if (lane == FAN_IN)
		memory.begin[FAN_IN] = begin;
}

/* Follows the natural positions of one thread, which only grow, from slice to slice. */
template <class E> struct slice_walk {
	const merge_memory<E> &memory;
	const E *from;
	uint32_t slice, begin, end;

	__device__ slice_walk(const merge_memory<E> &shared)
	    : memory(shared), from(shared.from[0]), slice(0), begin(0), end(shared.begin[1])
	{
	}

	__device__ void to(uint32_t natural)
	{
		while (natural >= end) {
			begin = end;
			end = memory.begin[++slice + 1];
			from = memory.from[slice];
		}
	}

	__device__ const E &element(uint32_t natural) const
	{
		return from[natural - begin];
	}
};

/* The natural position of this thread's i-th element: a warp's are side by side. */
template <class E> __device__ __forceinline__ uint32_t natural_position(unsigned i)
{
	return threadIdx.x / WARP * WARP * tile_of<E>::items + i * WARP + threadIdx.x % WARP;
}

template <class E>
__device__ __forceinline__ void load_slices(const merge_memory<E> &memory, uint32_t n,
					    E (&elements)[tile_of<E>::items])
{
	slice_walk<E> walk(memory);

#pragma unroll
	for (unsigned i = 0; i < tile_of<E>::items; i++) {
		const uint32_t at = natural_position<E>(i);

		if (at < n) {
			walk.to(at);
			elements[i] = walk.element(at);
		}
	}
}

/* Put this thread's values, made of the elements, at their places in the tile; fill the gaps. */
template <class E, class V, class Make>
__device__ __forceinline__ void place_values(const merge_memory<E> &memory, uint32_t n, V *tile,
					     unsigned n_pairs, Make make)
{
	constexpr unsigned items = tile_of<E>::items;
	slice_walk<E> walk(memory);

#pragma unroll
	for (unsigned i = 0; i < items; i++) {
		const uint32_t at = natural_position<E>(i);

		if (at < n) {
			walk.to(at);
			tile[place(memory, walk.slice, at)] = make(i, at);
		}
	}
	for (unsigned pair = 0; pair < n_pairs; pair++) {
		const uint32_t first = memory.bounds[pair] * items + memory.begin[2 * pair + 1] -
				       memory.begin[2 * pair];
		const uint32_t end = memory.bounds[pair + 1] * items -
				     (memory.begin[2 * pair + 2] - memory.begin[2 * pair + 1]);

		for (uint32_t at = first + threadIdx.x; at < end; at += tile_of<E>::n_threads)
			tile[at] = past_all<V>::value;
	}
}

/* All rounds: the values, placed, become one ascending tile. */
template <class E, class V, unsigned ITEMS>
__device__ __forceinline__ void merge_tile(merge_memory<E> &memory, V *tile, unsigned n_pairs,
					   V (&v)[ITEMS])
{
	unsigned mine = 0;
	uint32_t begin;

	for (unsigned pair = 1; pair < n_pairs; pair++)
		mine += memory.bounds[pair] <= threadIdx.x;
	begin = memory.bounds[mine] * ITEMS;
	merge_pair(tile, memory.cuts,
		   segment_pair{ begin, memory.begin[2 * mine + 1] - memory.begin[2 * mine],
				 memory.bounds[mine + 1] * ITEMS - begin, mine % 2 == 0 },
		   v);
	merge_segments(tile, memory.cuts, memory.bounds, n_pairs, mine, v);
}

/* Does no slice begin below the end of the one before? at: where in `values` a position is. */
template <class E, class V, class At>
__device__ __forceinline__ bool slices_are_in_order(const merge_memory<E> &memory, uint32_t n,
						    const V *values, At at)
{
	const uint32_t slice = threadIdx.x;
	bool disorder = false;

	if (slice < FAN_IN && memory.begin[slice] < memory.begin[slice + 1] &&
	    memory.begin[slice + 1] < n) {
		const uint32_t next = memory.begin[slice + 1];
		uint32_t next_slice = slice + 1;

		while (memory.begin[next_slice + 1] == next)
			next_slice++;
		disorder = values[at(next_slice, next)] < values[at(slice, next - 1)];
	}
	return !__syncthreads_or(disorder);
}

template <class E>
__device__ __forceinline__ void copy_slices(const merge_memory<E> &memory, uint32_t n, E *to)
{
	slice_walk<E> walk(memory);

	for (unsigned i = 0; i < tile_of<E>::items; i++) {
		const uint32_t at = natural_position<E>(i);

		if (at >= n)
			break;
		walk.to(at);
		to[at] = walk.element(at);
	}
}

/* Merge the elements, which lie at their natural positions, themselves. */
template <class E>
__device__ __noinline__ void merge_elements(merge_memory<E> &memory, uint32_t n, unsigned n_pairs)
{
	E v[tile_of<E>::items];

#pragma unroll
	for (unsigned i = 0; i < tile_of<E>::items; i++)
		if (natural_position<E>(i) < n)
			v[i] = memory.elements[natural_position<E>(i)];
	__syncthreads();
	place_values(memory, n, memory.elements, n_pairs,
		     [&](unsigned i, uint32_t) { return v[i]; });
	__syncthreads();
	merge_tile(memory, memory.elements, n_pairs, v);
}

/* A tile of wide elements, by tags. edges: the keys that the tile's are between. */
template <class E>
__device__ __forceinline__ void merge_narrowed(merge_memory<E> &memory, uint32_t n,
					       unsigned n_pairs, const E *edges,
					       const E (&elements)[tile_of<E>::items], E *to)
{
	typedef tile_of<E> shape;
	const narrowing<E, shape::n> narrow(edges[0], edges[1]);
	uint32_t v[shape::items];

#pragma unroll
	for (unsigned i = 0; i < shape::items; i++)
		if (natural_position<E>(i) < n)
			memory.elements[natural_position<E>(i)] = elements[i];
	place_values(memory, n, memory.tags, n_pairs,
		     [&](unsigned i, uint32_t at) { return narrow.tag(elements[i], at); });
	__syncthreads();
	if (slices_are_in_order(memory, n, memory.elements,
				[](uint32_t, uint32_t natural) { return natural; })) {
		write_elements(memory, to, n);
		return;
	}
	merge_tile(memory, memory.tags, n_pairs, v);
	if (narrow.shift &&
	    !arrange_twins(twins<E, shape::n>{ memory.elements, memory.tags, n }, memory.cuts, v)) {
		merge_elements(memory, n, n_pairs);
		write_elements(memory, to, n);
		return;
	}
	write_by_tags(memory, to, n);
}

/* A tile of elements that are sorted themselves. */
template <class E>
__device__ __forceinline__ void merge_plain(merge_memory<E> &memory, uint32_t n, unsigned n_pairs,
					    E (&elements)[tile_of<E>::items], E *to)
{
	place_values(memory, n, memory.elements, n_pairs,
		     [&](unsigned i, uint32_t) { return elements[i]; });
	__syncthreads();
	if (slices_are_in_order(memory, n, memory.elements, [&](uint32_t slice, uint32_t natural) {
		    return place(memory, slice, natural);
	    })) {
		copy_slices(memory, n, to);
		return;
	}
	merge_tile(memory, memory.elements, n_pairs, elements);
	write_elements(memory, to, n);
}

template <class E>
__global__ void __launch_bounds__(tile_of<E>::n_threads, tile_of<E>::n_blocks)
	merge_tiles(pass<E> pass)
{
	merge_memory<E> &memory = *shared_memory<merge_memory<E>>();
	const group_view group = group_of_tile(pass, blockIdx.x);
	const uint64_t tile = blockIdx.x - group.first_tile, boundary = blockIdx.x + group.index;
	const unsigned n_pairs = pairs_for(pass.fan_in);
	E elements[tile_of<E>::items];
	E *to = pass.out;
	uint32_t n;

	if (pass.state) {
		if (!pass.state->merged[pass.index])
			return;
		to = buffer_at(pass, source_buffer(pass) ^ 1);
	}
	to += group.first_element + tile * pass.tile_n;
	if (threadIdx.x < WARP)
		lay_out(memory, pass, boundary);
	__syncthreads();
	n = memory.begin[FAN_IN];
	load_slices(memory, n, elements);
	if constexpr (is_narrowed<E>)
		merge_narrowed(memory, n, n_pairs, pass.edges + boundary, elements, to);
	else
		merge_plain(memory, n, n_pairs, elements, to);
}

template <class E> uint32_t merge_tile_n()
{
	return merge_n<E>;
}

template <class E> int launch_merge_tiles(const pass<E> &pass, CUstream_st *stream)
{
	const int r = (int)cudaFuncSetAttribute(merge_tiles<E>,
						cudaFuncAttributeMaxDynamicSharedMemorySize,
						(int)sizeof(merge_memory<E>));

	if (r)
		return r;
	LAUNCH(merge_tiles<E>, (unsigned)pass.n_tiles, tile_of<E>::n_threads,
	       sizeof(merge_memory<E>), stream, pass);
	return (int)cudaGetLastError();
}

#define INSTANTIATE(type)                                                                          \
	template uint32_t merge_tile_n<type>();                                                    \
	template int launch_merge_tiles(const pass<type> &, CUstream_st *);

INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
INSTANTIATE(uint128_t)

#undef INSTANTIATE
