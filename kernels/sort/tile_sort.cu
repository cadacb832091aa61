/*
 * tile_sort - the first pass: sort every tile of the input into a run
 *
 * Each thread sorts its elements (or their tags) in registers, and tile_merge.cuh merges the
 * segments of the threads. It does not matter which elements a thread starts with, so they are
 * loaded in coalesced order.
 *
 * Before that, a kernel checks whether the whole input is sorted; then the other kernels of the
 * sort do nothing. The check stops as soon as any block finds a disorder, which in unsorted data is
 * at once.
 */
#include "kernels/sort/pass.cuh"
#include "kernels/sort/tile_kernel.cuh"

static constexpr unsigned CHECK_THREADS = 256;
static constexpr unsigned CHECK_ITEMS = 16; /* per thread, before the shared flag is read again */
static constexpr unsigned CHECK_BLOCKS = GSORT_MULTIPROCESSORS * 8;

template <class E>
__global__ void __launch_bounds__(CHECK_THREADS)
	find_disorder(const E *elements, uint64_t n, sort_state *state)
{
	constexpr uint64_t step = CHECK_THREADS * CHECK_ITEMS;

	for (uint64_t base = blockIdx.x * step; base + 1 < n; base += gridDim.x * step) {
		bool disorder = false;

		if (__syncthreads_or(threadIdx.x == 0 && atomicAdd(&state->disordered, 0u)))
			return;
#pragma unroll
		for (unsigned i = 0; i < CHECK_ITEMS; i++) {
			const uint64_t at = base + i * CHECK_THREADS + threadIdx.x;

			if (at + 1 < n)
				disorder |= elements[at + 1] < elements[at];
		}
		if (__syncthreads_or(disorder) && threadIdx.x == 0)
			atomicExch(&state->disordered, 1u);
	}
}

template <class E, shared_limit IN = SHARED_LIMIT>
struct sort_memory : tile_memory<E, sort_tile_of<E, IN>> {
	key_type<E> min_key[WARP], max_key[WARP]; /* of the elements of each warp */
};

/* Return the minimum and maximum of the block's values to all threads. */
template <class E>
__device__ __forceinline__ void block_min_max(sort_memory<E> &memory, key_type<E> &min_key,
					      key_type<E> &max_key)
{
	constexpr unsigned n_warps = sort_tile_of<E>::n_threads / WARP;
	const unsigned warp = threadIdx.x / WARP;

	min_key = lanes_min(min_key, WARP);
	max_key = lanes_max(max_key, WARP);
	if (threadIdx.x % WARP == 0) {
		memory.min_key[warp] = min_key;
		memory.max_key[warp] = max_key;
	}
	__syncthreads();
	for (unsigned i = 0; i < n_warps; i++) {
		min_key = memory.min_key[i] < min_key ? memory.min_key[i] : min_key;
		max_key = max_key < memory.max_key[i] ? memory.max_key[i] : max_key;
	}
}

/*
 * Return whether the elements in shared memory are in order. In most tiles, one of the first pairs
 * is not.
 */
template <class E> __device__ __forceinline__ bool tile_is_in_order(const E *elements, uint32_t n)
{
	bool disorder = threadIdx.x + 1 < n && elements[threadIdx.x + 1] < elements[threadIdx.x];

	if (__syncthreads_or(disorder))
		return false;
	for (uint32_t at = threadIdx.x; at + 1 < n; at += sort_tile_of<E>::n_threads)
		disorder |= elements[at + 1] < elements[at];
	return !__syncthreads_or(disorder);
}

/* Sort the elements in shared memory without tags. */
template <class E>
__device__ __noinline__ void sort_elements(sort_memory<E> &memory, const E *, E *to, uint32_t n)
{
	typedef sort_tile_of<E> shape;
	E v[shape::items];

#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		v[i] = at < n ? memory.elements[at] : max_sentinel<E>::value;
	}
	__syncthreads();
	sort_tile<shape::n_threads>(memory.elements, memory.cuts, v);
	write_elements(memory, to, n);
}

/*
 * Sort pairs, which are at `from` as well. Their position replaces the payload, so that all are
 * distinct and equal keys keep their order. Then each payload is fetched from its original
 * position.
 */
__device__ __noinline__ void sort_elements(sort_memory<pair_element> &memory,
					   const pair_element *from, pair_element *to, uint32_t n)
{
	typedef sort_tile_of<pair_element> shape;
	uint128_t v[shape::items], *tile = &memory.elements[0].bits;

#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		v[i] = at < n ? with_position(memory.elements[at], at) :
				max_sentinel<uint128_t>::value;
	}
	__syncthreads();
	sort_tile<shape::n_threads>(tile, memory.cuts, v);
#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		if (at < n)
			v[i] = with_payload(tile[at], from[position_of(tile[at])]);
	}
	__syncthreads();
#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		if (at < n)
			to[at].bits = v[i];
	}
}

/* Sort by tags. Returns false if tags cannot order the elements. */
template <class E>
__device__ __forceinline__ bool sort_tags(sort_memory<E> &memory, uint32_t n,
					  const E (&elements)[sort_tile_of<E>::items])
{
	typedef sort_tile_of<E> shape;
	key_type<E> min_key = key_of(elements[0]), max_key = min_key;
	uint32_t v[shape::items];

	if (threadIdx.x >= n)
		min_key = max_key = key_of(memory.elements[0]);
#pragma unroll
	for (unsigned i = 1; i < shape::items; i++) {
		const bool real = i * shape::n_threads + threadIdx.x < n;
		const key_type<E> key = key_of(elements[i]);

		min_key = real && key < min_key ? key : min_key;
		max_key = real && max_key < key ? key : max_key;
	}
	block_min_max(memory, min_key, max_key);

	const tag_format<key_type<E>, shape::n> format(min_key, max_key);

#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		v[i] = at < n ? format.tag(key_of(elements[i]), at) : max_sentinel<uint32_t>::value;
	}
	sort_tile<shape::n_threads>(memory.tags, memory.cuts, v);
	return !format.shift ||
	       sort_tied_tags(tied_tags<E, shape::n>{ memory.elements, memory.tags, n },
			      memory.cuts, v);
}

template <class E>
__global__ void __launch_bounds__(sort_tile_of<E>::n_threads, sort_tile_of<E>::n_blocks)
	sort_tiles(const E *from, E *to, uint64_t n_all, const sort_state *state)
{
	typedef sort_tile_of<E> shape;
	sort_memory<E> &memory = *shared_memory<sort_memory<E>>();
	const uint64_t base = (uint64_t)blockIdx.x * shape::n;
	const uint32_t n = n_all - base < shape::n ? (uint32_t)(n_all - base) : shape::n;
	E elements[shape::items];

	if (!state->disordered)
		return;
#pragma unroll
	for (unsigned i = 0; i < shape::items; i++) {
		const uint32_t at = i * shape::n_threads + threadIdx.x;

		elements[i] = at < n ? from[base + at] : max_sentinel<E>::value;
	}
#pragma unroll
	for (unsigned i = 0; i < shape::items; i++)
		memory.elements[i * shape::n_threads + threadIdx.x] = elements[i];
	__syncthreads();

	if (!tile_is_in_order(memory.elements, n)) {
		if constexpr (!is_tagged<E>) {
			sort_tile<shape::n_threads>(memory.elements, memory.cuts, elements);
		} else if (sort_tags(memory, n, elements)) {
			__syncthreads();
			write_by_tags(memory, to + base, n);
			return;
		} else {
			sort_elements(memory, from + base, to + base, n);
			return;
		}
	}
	write_elements(memory, to + base, n);
}

template <class E> uint32_t sort_tile_n(shared_limit limit)
{
	return limit == SHARED_LIMIT_64K ? sort_tile_of<E, SHARED_LIMIT_64K>::n :
					   sort_tile_of<E, SHARED_LIMIT_99K>::n;
}

/* Launch the code that the device has: its tiles depend on the shared memory limit. */
template <shared_limit IN, class E>
static int launch_tiles(const E *from, E *to, uint64_t n, sort_state *state, CUstream_st *stream)
{
	typedef sort_tile_of<E, IN> shape;
	constexpr size_t nbytes = sizeof(sort_memory<E, IN>);
	const int r = (int)cudaFuncSetAttribute(
		sort_tiles<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)nbytes);

	static_assert(nbytes <= shared_limit_nbytes(IN), "a block may not use more");
	if (r)
		return r;
	LAUNCH(sort_tiles<E>, (unsigned)divide_up(n, shape::n), shape::n_threads, nbytes, stream,
	       from, to, n, state);
	return (int)cudaGetLastError();
}

template <class E>
int launch_sort_tiles(const E *from, E *to, uint64_t n, sort_state *state, shared_limit limit,
		      CUstream_st *stream)
{
	const uint64_t n_check_blocks = divide_up(n, CHECK_THREADS * CHECK_ITEMS);
	int r;

	LAUNCH(find_disorder<E>,
	       (unsigned)(n_check_blocks < CHECK_BLOCKS ? n_check_blocks : CHECK_BLOCKS),
	       CHECK_THREADS, 0, stream, from, n, state);
	r = (int)cudaGetLastError();
	if (r)
		return r;
	return limit == SHARED_LIMIT_64K ?
		       launch_tiles<SHARED_LIMIT_64K>(from, to, n, state, stream) :
		       launch_tiles<SHARED_LIMIT_99K>(from, to, n, state, stream);
}

#define INSTANTIATE(type)                                                                          \
	template uint32_t sort_tile_n<type>(shared_limit);                                         \
	template int launch_sort_tiles(const type *, type *, uint64_t, sort_state *, shared_limit, \
				       CUstream_st *);

INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
INSTANTIATE(uint128_t)
INSTANTIATE(pair_element)

#undef INSTANTIATE
