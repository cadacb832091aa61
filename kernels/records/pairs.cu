/*
 * pairs - convert small records to pairs of the key and the other bytes, and back
 *
 *	record   | before | key | after |	up to 16 bytes, at most 8 outside the key
 *	pair     | encoded key | before, after |	(element.cuh)
 *
 * A pair holds its whole record, so no gather is needed after the sort: records are reassembled in
 * order, in one sequential pass. src/record/key_encoding.h has the encoding.
 */
#include "kernels/records/items.cuh"
#include "kernels/sort/element.cuh"
#include "kernels/stream_pass.cuh"

static constexpr unsigned KEY_BITS = 64;

/* Return a mask of the lowest n bits; n <= 128. */
__device__ __forceinline__ uint128_t low_bits(unsigned n)
{
	return n >= 128 ? ~(uint128_t)0 : ((uint128_t)1 << n) - 1;
}

__device__ __forceinline__ uint128_t shift_right(uint128_t x, unsigned n)
{
	return n >= 128 ? 0 : x >> n;
}

__device__ __forceinline__ uint128_t shift_left(uint128_t x, unsigned n)
{
	return n >= 128 ? 0 : x << n;
}

/* Load a record as a word, first byte lowest. */
__device__ __forceinline__ uint128_t load_record(const unsigned char *record, uint32_t nbytes)
{
	if (nbytes <= 8)
		return load_bytes(record, nbytes);
	return (uint128_t)load_bytes(record + 8, nbytes - 8) << 64 | load_bytes(record, 8);
}

__device__ __forceinline__ void store_record(unsigned char *record, uint128_t word, uint32_t nbytes)
{
	if (((uintptr_t)record | nbytes) % 16 == 0) {
		*(uint128_t *)(void *)record = word;
		return;
	}
	if (((uintptr_t)record | nbytes) % 4 == 0) {
		for (uint32_t at = 0; at < nbytes; at += 4)
			*(uint32_t *)(void *)(record + at) = (uint32_t)(word >> 8 * at);
		return;
	}
	for (uint32_t at = 0; at < nbytes; at++)
		record[at] = (unsigned char)(word >> 8 * at);
}

__device__ __forceinline__ uint64_t hash_record(uint128_t word, uint32_t nbytes)
{
	return nbytes <= 8 ? digest_word8((uint64_t)word) :
			     digest_word16((uint64_t)word, (uint64_t)(word >> 64));
}

__device__ __forceinline__ pair_element pair_of(const pair_shape &shape, uint128_t word)
{
	const unsigned key_at = 8 * shape.key_offset, key_bits = 8 * shape.encoding.record_nbytes;
	const uint64_t key = (uint64_t)((word >> key_at) & low_bits(key_bits));
	const uint128_t after_key = shift_right(word, key_at + key_bits);
	const uint64_t other_bytes = (uint64_t)((word & low_bits(key_at)) | after_key << key_at);

	return { (uint128_t)encode_word(key, shape.encoding) << KEY_BITS | other_bytes };
}

__device__ __forceinline__ uint128_t record_of(const pair_shape &shape, pair_element pair)
{
	const unsigned key_at = 8 * shape.key_offset, key_bits = 8 * shape.encoding.record_nbytes;
	const uint128_t key = decode_word(key_of(pair), shape.encoding),
			other_bytes = (uint64_t)pair.bits;

	return (other_bytes & low_bits(key_at)) | key << key_at |
	       shift_left(other_bytes >> key_at, key_at + key_bits);
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	make_pairs(kernel_items items, pair_shape shape, uint64_t n, pair_element *pairs,
		   digest *digest)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	uint64_t sum = 0, count = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < n;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads) {
		const uint128_t word = load_record(item_at(items, i), items.item_nbytes);

		pairs[i] = pair_of(shape, word);
		sum += hash_record(word, items.item_nbytes);
		count++;
	}
	if (digest)
		block_add_digest(memory, count, sum, digest);
}

int launch_make_pairs(const struct kernel_items *items, const struct pair_shape *shape, uint64_t n,
		      void *pairs, struct digest *digest, CUstream_st *stream)
{
	if (n == 0)
		return 0;
	LAUNCH(make_pairs, n_blocks_for(n), stream_pass::n_threads, sizeof(stream_pass_memory),
	       stream, *items, *shape, n, (pair_element *)pairs, digest);
	return (int)cudaGetLastError();
}

__global__ void __launch_bounds__(stream_pass::n_threads) unpack_pairs(unpack_pairs_task task)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	const pair_element *pairs = (const pair_element *)task.pairs;
	const uint64_t n_kept = task.n < task.limit ? task.n : task.limit;
	const uint32_t nbytes = task.record_nbytes;
	uint64_t kept_sum = 0, count = 0, dropped_sum = 0, n_dropped = 0, n_disorders = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < task.n;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads) {
		const pair_element pair = pairs[i];
		const uint128_t word = record_of(task.shape, pair);
		const uint64_t hash = hash_record(word, nbytes);

		if (i >= n_kept) {
			dropped_sum += hash;
			n_dropped++;
			continue;
		}
		kept_sum += hash;
		count++;
		n_disorders += i > 0 && pair < pairs[i - 1];
		store_record((unsigned char *)task.out + i * nbytes, word, nbytes);
		if (i == 0 && task.first)
			store_record((unsigned char *)task.first, word, nbytes);
		if (i + 1 == n_kept && task.last)
			store_record((unsigned char *)task.last, word, nbytes);
	}
	block_add_digest(memory, count, kept_sum, &task.result->digest);
	block_add_digest(memory, n_dropped, dropped_sum, &task.result->dropped);
	n_disorders = block_sum(memory, n_disorders);
	if (threadIdx.x == 0)
		atomicAdd((unsigned long long *)&task.result->n_disorders,
			  (unsigned long long)n_disorders);
	if (threadIdx.x == 0 && blockIdx.x == 0)
		task.result->n = task.result->n_counted = n_kept;
}

int launch_unpack_pairs(const struct unpack_pairs_task *task, CUstream_st *stream)
{
	const int r = (int)cudaMemsetAsync(task->result, 0, sizeof *task->result, stream);

	if (r || task->n == 0)
		return r;
	LAUNCH(unpack_pairs, n_blocks_for(task->n), stream_pass::n_threads,
	       sizeof(stream_pass_memory), stream, *task);
	return (int)cudaGetLastError();
}
