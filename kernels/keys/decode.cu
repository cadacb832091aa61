/*
 * decode - decode elements to records, with their digest and a check of their order
 *
 * First, copy_edges() copies the element before each tile: if records replace the elements in
 * place, it may be overwritten before the tile is checked.
 */
#include "kernels/stream_pass.cuh"

template <class E> struct decode_memory : stream_pass_memory {
	E elements[stream_pass::n];
	alignas(16) unsigned char bytes[stream_pass::n * sizeof(E) + 4];
};

template <class E>
__device__ __forceinline__ void store_word(unsigned char *record, E word, unsigned record_nbytes)
{
	for (unsigned i = 0; i < record_nbytes; i++)
		record[i] = (unsigned char)(word >> 8 * i);
}

template <class E> __device__ __forceinline__ bool is_out_of_order(E before, E after, bool strict)
{
	return strict ? !(before < after) : after < before;
}

template <class E>
__global__ void __launch_bounds__(stream_pass::n_threads)
	decode(decode_task task, stream_pass_scratch scratch, bool ordered)
{
	decode_memory<E> &memory = *shared_memory<decode_memory<E>>();
	const unsigned record_nbytes = task.encoding.record_nbytes;
	const E *elements = (const E *)task.elements, *edges = (const E *)scratch.edges;
	uint64_t sum = 0, count = 0, n_disorders = 0;

	for (uint64_t tile = claim_tile(memory, scratch, ordered, UINT64_MAX);
	     tile * stream_pass::n < task.n; tile = claim_tile(memory, scratch, ordered, tile)) {
		const uint64_t base = tile * stream_pass::n;
		const uint32_t n = task.n - base < stream_pass::n ? (uint32_t)(task.n - base) :
								    stream_pass::n;
		unsigned char *to = (unsigned char *)task.records + base * record_nbytes;
		unsigned char *bytes = memory.bytes + skew(to);

		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n; i += stream_pass::n_threads)
			memory.elements[i] = elements[base + i];
		if (ordered)
			wait_for_tiles(scratch, tile, tile * record_nbytes / sizeof(E));
		else
			__syncthreads();
		for (uint32_t i = threadIdx.x; i < n; i += stream_pass::n_threads) {
			const E element = memory.elements[i];
			const E word = decode_word(element, task.encoding);

			if (base + i > 0)
				n_disorders +=
					is_out_of_order(i ? memory.elements[i - 1] : edges[tile],
							element, task.strict);
			else
				task.result->first = widen(element);
			if (base + i == task.n - 1)
				task.result->last = widen(element);
			sum += digest_of_word(word);
			count++;
			if (record_nbytes < sizeof(E))
				store_word(bytes + i * record_nbytes, word, record_nbytes);
			else
				((E *)task.records)[base + i] = word;
		}
		if (record_nbytes < sizeof(E)) {
			__syncthreads();
			copy_bytes(to, bytes, n * record_nbytes);
		}
	}
	block_add_digest(memory, count, sum, &task.result->digest);
	n_disorders = block_sum(memory, n_disorders);
	if (threadIdx.x == 0)
		atomicAdd((unsigned long long *)&task.result->n_disorders,
			  (unsigned long long)n_disorders);
}

template <class E> static int decode_elements(const decode_task &task, CUstream_st *stream)
{
	const bool ordered = task.elements == task.records &&
			     task.encoding.record_nbytes < sizeof(E);
	const stream_pass_scratch scratch = stream_pass_lay_out(task.scratch, task.n);
	int r = (int)cudaFuncSetAttribute(decode<E>, cudaFuncAttributeMaxDynamicSharedMemorySize,
					  (int)sizeof(decode_memory<E>));

	if (!r && ordered)
		r = stream_pass_clear(scratch, task.n, stream);
	if (!r)
		r = launch_edges<E>(task.elements, task.n, scratch, stream);
	if (!r) {
		LAUNCH(decode<E>, stream_pass_n_blocks(task.n), stream_pass::n_threads,
		       sizeof(decode_memory<E>), stream, task, scratch, ordered);
		r = (int)cudaGetLastError();
	}
	return r;
}

int launch_decode(const struct decode_task *task, CUstream_st *stream)
{
	const int r = (int)cudaMemsetAsync(task->result, 0, sizeof *task->result, stream);

	if (r || task->n == 0)
		return r;
	return dispatch_element(task->encoding.element_nbytes, [&](auto e) {
		return decode_elements<decltype(e)>(*task, stream);
	});
}

size_t kernel_record_scratch_nbytes(uint64_t n)
{
	return round_up(stream_pass_n_tiles(n) * (sizeof(uint128_t) + sizeof(uint64_t)) +
				sizeof(uint64_t),
			sizeof(uint128_t));
}
