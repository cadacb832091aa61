/*
 * encode - encode records as elements, with their digest
 *
 * Records as wide as their elements are loaded directly. Others pass through shared memory as
 * bytes, and every thread assembles its records there.
 */
#include "kernels/stream_pass.cuh"

template <class E> struct encode_memory : stream_pass_memory {
	alignas(16) unsigned char bytes[stream_pass::n * sizeof(E) + 4];
};

/* Add a record's word to the digest and return its element. */
template <class E>
__device__ __forceinline__ E encode_and_digest(E word, const key_encoding &encoding, uint64_t *sum)
{
	*sum += digest_of_word(word);
	return encode_word(word, encoding);
}

template <class E>
__device__ __forceinline__ E load_word(const unsigned char *record, unsigned record_nbytes)
{
	E word = 0;

	for (unsigned i = 0; i < record_nbytes; i++)
		word |= (E)record[i] << 8 * i;
	return word;
}

/* Return the first tile with a record that is overwritten by elements from begin_element on. */
template <class E>
__device__ __forceinline__ uint64_t first_overwritten_tile(const encode_task &task,
							   uint64_t begin_element)
{
	const uint64_t R = task.encoding.record_nbytes, gap = task.n * (sizeof(E) - R);
	const uint64_t byte = begin_element * sizeof(E);

	return byte > gap ? (byte - gap) / R / stream_pass::n : 0;
}

template <class E>
__global__ void __launch_bounds__(stream_pass::n_threads)
	encode(encode_task task, stream_pass_scratch scratch, bool ordered)
{
	encode_memory<E> &memory = *shared_memory<encode_memory<E>>();
	const unsigned record_nbytes = task.encoding.record_nbytes;
	E *elements = (E *)task.elements;
	uint64_t sum = 0, count = 0;

	for (uint64_t tile = claim_tile(memory, scratch, ordered, UINT64_MAX);
	     tile * stream_pass::n < task.n; tile = claim_tile(memory, scratch, ordered, tile)) {
		const uint64_t base = tile * stream_pass::n;
		const uint32_t n = task.n - base < stream_pass::n ? (uint32_t)(task.n - base) :
								    stream_pass::n;
		const unsigned char *from =
			(const unsigned char *)task.records + base * record_nbytes;
		unsigned char *bytes = memory.bytes + skew(from);

		if (record_nbytes < sizeof(E)) {
			__syncthreads();
			copy_bytes(bytes, from, n * record_nbytes);
			if (ordered)
				wait_for_tiles(scratch, tile,
					       first_overwritten_tile<E>(task, base));
			else
				__syncthreads();
		}
		for (uint32_t i = threadIdx.x; i < n; i += stream_pass::n_threads) {
			const E word =
				record_nbytes < sizeof(E) ?
					load_word<E>(bytes + i * record_nbytes, record_nbytes) :
					((const E *)task.records)[base + i];

			elements[base + i] = encode_and_digest(word, task.encoding, &sum);
			count++;
		}
	}
	if (task.digest)
		block_add_digest(memory, count, sum, task.digest);
}

template <class E> static int encode_elements(const encode_task &task, CUstream_st *stream)
{
	const char *records = (const char *)task.records, *elements = (const char *)task.elements;
	const bool overlap = records < elements + task.n * sizeof(E) &&
			     elements < records + task.n * task.encoding.record_nbytes;
	const bool ordered = overlap && task.encoding.record_nbytes < sizeof(E);
	const stream_pass_scratch scratch = stream_pass_lay_out(task.scratch, task.n);
	int r = ordered ? stream_pass_clear(scratch, task.n, stream) : 0;

	if (!r) {
		LAUNCH(encode<E>, stream_pass_n_blocks(task.n), stream_pass::n_threads,
		       sizeof(encode_memory<E>), stream, task, scratch, ordered);
		r = (int)cudaGetLastError();
	}
	return r;
}

int launch_encode(const struct encode_task *task, CUstream_st *stream)
{
	if (task->n == 0)
		return 0;
	return dispatch_element(task->encoding.element_nbytes, [&](auto e) {
		return encode_elements<decltype(e)>(*task, stream);
	});
}
