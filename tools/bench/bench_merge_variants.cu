/*
 * bench_merge_variants.cu - merge kernels, from simple to fast (see bench_device.h)
 */
#include "tools/bench/bench_device.h"

#include "kernels/device.cuh"
#include "src/device/co_rank.h"

static constexpr unsigned THREADS = 256;
static constexpr unsigned ITEMS = 16; /* outputs of one thread */
static constexpr unsigned TILE = THREADS * ITEMS;

/* A circular buffer in shared memory: element i is at (start + i) modulo TILE. */
struct circular {
	const uint64_t *memory;
	uint32_t start;

	__device__ uint64_t operator[](uint32_t i) const
	{
		return memory[(start + i) % TILE];
	}
};

/* Merge outputs [first, end) of a and b sequentially to out. */
template <class Index, class A>
__device__ __forceinline__ void merge_serially(A a, Index n_a, A b, Index n_b, Index first,
					       Index end, uint64_t *out)
{
	Index i = co_rank<Index>(a, n_a, b, n_b, first, less_than()), j = first - i;

	for (Index position = first; position < end; position++) {
		const bool from_a = j >= n_b || (i < n_a && !(b[j] < a[i]));

		out[position - first] = from_a ? a[i] : b[j];
		i += from_a;
		j += !from_a;
	}
}

__global__ void __launch_bounds__(THREADS)
	merge_direct(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
		     uint64_t *out)
{
	const uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * ITEMS;
	const uint64_t n = n_a + n_b;

	if (first < n)
		merge_serially<uint64_t>(a, n_a, b, n_b, first,
					 first + ITEMS < n ? first + ITEMS : n, out + first);
}

int merge_variant_direct(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
			 uint64_t *out)
{
	merge_direct<<<(unsigned)divide_up(n_a + n_b, TILE), THREADS>>>(a, n_a, b, n_b, out);
	return cudaGetLastError();
}

/* Merge the piece of each thread of a tile of n outputs to `merged`, then copy the tile to out. */
template <class A>
__device__ __forceinline__ void merge_staged(A a, uint32_t n_a, A b, uint32_t n_b, uint32_t n,
					     uint64_t *merged, uint64_t *out)
{
	const uint32_t first = threadIdx.x * ITEMS < n ? threadIdx.x * ITEMS : n;

	merge_serially<uint32_t>(a, n_a, b, n_b, first, first + ITEMS < n ? first + ITEMS : n,
				 merged + first);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		out[i] = merged[i];
}

__global__ void __launch_bounds__(THREADS)
	merge_tiles(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b, uint64_t *out)
{
	uint64_t *staged = shared_memory<uint64_t>(), *merged = staged + TILE;
	const uint64_t n = n_a + n_b, first = (uint64_t)blockIdx.x * TILE;
	const uint64_t end = first + TILE < n ? first + TILE : n;
	const uint64_t first_a = co_rank<uint64_t>(a, n_a, b, n_b, first, less_than());
	const uint64_t end_a = co_rank<uint64_t>(a, n_a, b, n_b, end, less_than());
	const uint32_t tile_a = (uint32_t)(end_a - first_a), tile_n = (uint32_t)(end - first);

	for (uint32_t i = threadIdx.x; i < tile_n; i += THREADS)
		staged[i] = i < tile_a ? a[first_a + i] : b[first - first_a + i - tile_a];
	__syncthreads();
	merge_staged<const uint64_t *>(staged, tile_a, staged + tile_a, tile_n - tile_a, tile_n,
				       merged, out + first);
}

int merge_variant_tiles(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
			uint64_t *out)
{
	const size_t nbytes = 2 * TILE * sizeof(uint64_t);
	const int r = cudaFuncSetAttribute(merge_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
					   (int)nbytes);

	if (r)
		return r;
	merge_tiles<<<(unsigned)divide_up(n_a + n_b, TILE), THREADS, nbytes>>>(a, n_a, b, n_b, out);
	return cudaGetLastError();
}

/* Fill a circular buffer up to TILE elements from the slice's [*position, end). */
__device__ __forceinline__ void refill(uint64_t *memory, uint32_t start, uint32_t *n,
				       const uint64_t *slice, uint64_t *position, uint64_t end)
{
	const uint64_t n_left = end - *position, n_free = TILE - *n;
	const uint32_t n_loaded = (uint32_t)(n_left < n_free ? n_left : n_free);

	for (uint32_t i = threadIdx.x; i < n_loaded; i += THREADS)
		memory[(start + *n + i) % TILE] = slice[*position + i];
	*n += n_loaded;
	*position += n_loaded;
}

__global__ void __launch_bounds__(THREADS)
	merge_circular(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
		       uint64_t *out)
{
	uint64_t *memory_a = shared_memory<uint64_t>(), *memory_b = memory_a + TILE;
	uint64_t *merged = memory_b + TILE;
	const uint64_t n = n_a + n_b, n_tiles = (n + TILE - 1) / TILE;
	uint64_t first = n_tiles * blockIdx.x / gridDim.x * TILE;
	const uint64_t last = n_tiles * (blockIdx.x + 1) / gridDim.x * TILE;
	const uint64_t end = last < n ? last : n;
	uint64_t position_a = co_rank<uint64_t>(a, n_a, b, n_b, first, less_than()),
		 position_b = first - position_a;
	const uint64_t end_a = co_rank<uint64_t>(a, n_a, b, n_b, end, less_than());
	const uint64_t end_b = end - end_a;
	uint32_t start_a = 0, start_b = 0, n_buffered_a = 0, n_buffered_b = 0;

	for (; first < end; first += TILE) {
		const uint32_t tile_n = end - first < TILE ? (uint32_t)(end - first) : TILE;
		uint32_t n_used_a;

		refill(memory_a, start_a, &n_buffered_a, a, &position_a, end_a);
		refill(memory_b, start_b, &n_buffered_b, b, &position_b, end_b);
		__syncthreads();
		const circular view_a = { memory_a, start_a }, view_b = { memory_b, start_b };

		merge_staged(view_a, n_buffered_a, view_b, n_buffered_b, tile_n, merged,
			     out + first);
		n_used_a = co_rank<uint32_t>(view_a, n_buffered_a, view_b, n_buffered_b, tile_n,
					     less_than());
		start_a = (start_a + n_used_a) % TILE;
		start_b = (start_b + tile_n - n_used_a) % TILE;
		n_buffered_a -= n_used_a;
		n_buffered_b -= tile_n - n_used_a;
		__syncthreads();
	}
}

int merge_variant_circular(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
			   uint64_t *out)
{
	const size_t nbytes = 3 * TILE * sizeof(uint64_t);
	const int r = cudaFuncSetAttribute(
		merge_circular, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)nbytes);

	if (r)
		return r;
	merge_circular<<<132 * 2, THREADS, nbytes>>>(a, n_a, b, n_b, out);
	return cudaGetLastError();
}
