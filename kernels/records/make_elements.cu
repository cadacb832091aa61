/*
 * make_elements - make elements of items: the key prefix and the number of the item
 *
 * If the bodies are digested as well, the whole item is read, so items are staged
 * (staged_rows.cuh). Otherwise only the keys are read, in place.
 */
#include "kernels/records/staged_rows.cuh"

struct make_elements_memory : stream_pass_memory {
	const unsigned char *from[rows::n_rows];
	alignas(UNIT) unsigned char slots[rows::slots_nbytes];
};

template <class E, bool WORDS>
__global__ void __launch_bounds__(rows::n_threads, rows::n_blocks)
	make_row_elements(kernel_items items, row_shape shape, uint64_t n_items, E *elements,
			  digest *digest)
{
	make_elements_memory &memory = *shared_memory<make_elements_memory>();
	const body_hash<WORDS> body(items.body_nbytes, shape.n_hashers);
	uint64_t sum = 0, count = 0;

	for (uint64_t base = (uint64_t)blockIdx.x * shape.n; base < n_items;
	     base += (uint64_t)gridDim.x * shape.n) {
		const uint32_t n = n_items - base < shape.n ? (uint32_t)(n_items - base) : shape.n;

		for (uint32_t i = threadIdx.x; i < n; i += rows::n_threads)
			memory.from[i] = item_at(items, base + i);
		__syncthreads();
		load_rows(memory.slots, memory.from, shape, 0, n);
		for (uint32_t first = 0; first < n; first += shape.n_hashed) {
			const uint32_t i = first + threadIdx.x / shape.n_hashers;
			const uint32_t row = i < n ? i : 0;
			const unsigned char *item =
				memory.slots + slot_offset(memory.from[row], shape, row);
			const uint64_t hash = body.hash(item + items.body_offset);

			if (i < n && body.lane == 0) {
				elements[base + i] =
					make_element<E>(items, item, (uint32_t)(base + i));
				sum += hash;
				count++;
			}
		}
		__syncthreads();
	}
	block_add_digest(memory, count, sum, digest);
}

/* One warp per item. */
template <class E, bool WORDS>
__global__ void __launch_bounds__(rows::n_threads)
	make_wide_elements(kernel_items items, uint64_t n_items, E *elements, digest *digest)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	const body_hash<WORDS> body(items.body_nbytes, WARP);
	const uint64_t first = (uint64_t)blockIdx.x * rows::n_warps + threadIdx.x / WARP;
	uint64_t sum = 0, count = 0;

	for (uint64_t i = first; i < n_items; i += (uint64_t)gridDim.x * rows::n_warps) {
		const unsigned char *item = item_at(items, i);
		const uint64_t hash = body.hash(item + items.body_offset);

		if (body.lane == 0) {
			elements[i] = make_element<E>(items, item, (uint32_t)i);
			sum += hash;
			count++;
		}
	}
	block_add_digest(memory, count, sum, digest);
}

/* Make elements without a digest: only the keys are read. */
template <class E>
__global__ void __launch_bounds__(stream_pass::n_threads)
	make_key_elements(kernel_items items, uint64_t n_items, E *elements)
{
	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < n_items;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads)
		elements[i] = make_element<E>(items, item_at(items, i), (uint32_t)i);
}

template <class E, bool WORDS>
static int make_and_digest_elements(const kernel_items *items, uint64_t n, E *elements,
				    digest *digest, CUstream_st *stream)
{
	const struct row_shape shape = shape_rows(items, 0);
	const int r = prefer_shared_memory(make_row_elements<E, WORDS>);

	if (r)
		return r;
	if (shape.wide)
		LAUNCH((make_wide_elements<E, WORDS>), row_blocks(n, rows::n_warps),
		       rows::n_threads, sizeof(stream_pass_memory), stream, *items, n, elements,
		       digest);
	else
		LAUNCH((make_row_elements<E, WORDS>), row_blocks(n, shape.n), rows::n_threads,
		       sizeof(make_elements_memory), stream, *items, shape, n, elements, digest);
	return (int)cudaGetLastError();
}

template <class E>
static int make_item_elements(const kernel_items *items, uint64_t n, E *elements, digest *digest,
			      CUstream_st *stream)
{
	if (digest)
		return items->alignment >= 4 ?
			       make_and_digest_elements<E, true>(items, n, elements, digest,
								 stream) :
			       make_and_digest_elements<E, false>(items, n, elements, digest,
								  stream);
	LAUNCH(make_key_elements<E>, n_blocks_for(n), stream_pass::n_threads, 0, stream, *items, n,
	       elements);
	return (int)cudaGetLastError();
}

int launch_make_elements(const struct kernel_items *items, uint64_t n, uint32_t element_nbytes,
			 void *elements, struct digest *digest, CUstream_st *stream)
{
	if (n == 0)
		return 0;
	return element_nbytes == 8 ?
		       make_item_elements(items, n, (uint64_t *)elements, digest, stream) :
		       make_item_elements(items, n, (uint128_t *)elements, digest, stream);
}
