/*
 * unique - keep the first of equal elements, in place, in one pass
 *
 * The output position of a tile is the number of elements kept before it. Tiles are claimed in
 * order. A block counts its kept elements, publishes the count, and adds up the counts of the
 * previous tiles, looking back until it meets one that has published its inclusive sum (Merrill and
 * Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016).
 *
 * The order also makes compaction in place safe: a block writes after all earlier blocks have
 * published their counts, and so have loaded their tiles, and it never writes past its own tile.
 * The element before a tile is copied first.
 */
#include "kernels/stream_pass.cuh"

/* The kept elements of a tile are counted per warp and row; a lane of warp 0 holds each count. */
static constexpr unsigned N_COUNTS = stream_pass::items * stream_pass::n_warps;

static_assert(N_COUNTS <= WARP, "one warp adds up the counts");

/* The status of a tile: its state in the upper two bits, and a number of kept elements. */
static constexpr unsigned STATUS_SHIFT = 62;
static constexpr unsigned long long STATUS_PARTIAL = 1ull
						     << STATUS_SHIFT; /* number of the tile alone */
static constexpr unsigned long long STATUS_INCLUSIVE =
	2ull << STATUS_SHIFT; /* number up to the end of the tile */
static constexpr unsigned long long STATUS_VALUE_MASK = STATUS_PARTIAL - 1;

template <class E> struct unique_memory : stream_pass_memory {
	E elements[stream_pass::n];
	uint32_t counts[WARP];
	uint32_t n_kept;
	uint64_t before;
};

__device__ __forceinline__ unsigned long long wait_for_status(const uint64_t *status)
{
	unsigned long long value;

	do
		value = atomicAdd((unsigned long long *)(uintptr_t)status, 0ull);
	while (!value);
	return value;
}

/* Publish this tile's count and return the number of elements kept before it, in the first warp. */
__device__ __forceinline__ uint64_t look_back(uint64_t *status, uint64_t tile, uint32_t n_kept)
{
	const unsigned lane = threadIdx.x;
	uint64_t before = 0, end = tile; /* `before` has the counts of tiles [end, tile) */
	bool done = tile == 0;

	__threadfence();
	if (lane == 0)
		atomicExch((unsigned long long *)&status[tile], STATUS_PARTIAL | n_kept);
	while (!done) {
		const bool is_valid = lane < end;
		const unsigned long long value =
			is_valid ? wait_for_status(&status[end - 1 - lane]) : STATUS_INCLUSIVE;
		const unsigned sums = __ballot_sync(ALL_LANES, (value & STATUS_INCLUSIVE) != 0);
		const unsigned last = sums ? (unsigned)__ffs((int)sums) - 1 : WARP - 1;

		before += lanes_sum(
			lane <= last ? (uint64_t)(value & STATUS_VALUE_MASK) : (uint64_t)0, WARP);
		done = sums != 0;
		end -= done ? 0 : WARP;
	}
	if (lane == 0)
		atomicExch((unsigned long long *)&status[tile],
			   STATUS_INCLUSIVE | (before + n_kept));
	__threadfence();
	return before;
}

template <class E>
__global__ void __launch_bounds__(stream_pass::n_threads)
	keep_first(unique_task task, stream_pass_scratch scratch)
{
	unique_memory<E> &memory = *shared_memory<unique_memory<E>>();
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	E *elements = (E *)task.elements;
	const E *edges = (const E *)scratch.edges;
	uint64_t sum = 0, count = 0;

	for (uint64_t tile = claim_tile(memory, scratch, true, UINT64_MAX);
	     tile * stream_pass::n < task.n; tile = claim_tile(memory, scratch, true, tile)) {
		const uint64_t base = tile * stream_pass::n;
		const uint32_t n = task.n - base < stream_pass::n ? (uint32_t)(task.n - base) :
								    stream_pass::n;
		uint32_t before[stream_pass::items];
		bool keep[stream_pass::items];

		for (uint32_t i = threadIdx.x; i < n; i += stream_pass::n_threads)
			memory.elements[i] = elements[base + i];
		__syncthreads();
#pragma unroll
		for (unsigned i = 0; i < stream_pass::items; i++) {
			const uint32_t at = i * stream_pass::n_threads + threadIdx.x;

			keep[i] = at < n && (base + at == 0 ||
					     memory.elements[at] !=
						     (at ? memory.elements[at - 1] : edges[tile]));
			before[i] = lanes_exclusive_sum((uint32_t)keep[i], WARP);
			if (lane == WARP - 1)
				memory.counts[i * stream_pass::n_warps + warp] =
					before[i] + keep[i];
			if (at < n && !keep[i]) {
				sum += digest_of_word(
					decode_word(memory.elements[at], task.encoding));
				count++;
			}
		}
		__syncthreads();
		if (warp == 0) {
			const uint32_t mine = lane < N_COUNTS ? memory.counts[lane] : 0;
			const uint32_t sum_before = lanes_exclusive_sum(mine, WARP);
			const uint32_t n_kept = lane_broadcast(sum_before + mine, WARP - 1, WARP);
			const uint64_t kept_before = look_back(scratch.status, tile, n_kept);

			memory.counts[lane] = sum_before;
			if (lane == 0)
				memory.before = kept_before;
			if (lane == 0 && base + n == task.n)
				task.result->n = kept_before + n_kept;
		}
		__syncthreads();
#pragma unroll
		for (unsigned i = 0; i < stream_pass::items; i++)
			if (keep[i])
				elements[memory.before + before[i] +
					 memory.counts[i * stream_pass::n_warps + warp]] =
					memory.elements[i * stream_pass::n_threads + threadIdx.x];
	}
	block_add_digest(memory, count, sum, &task.result->dropped);
}

template <class E> static int keep_first_elements(const unique_task &task, CUstream_st *stream)
{
	const stream_pass_scratch scratch = stream_pass_lay_out(task.scratch, task.n);
	int r = stream_pass_clear(scratch, task.n, stream);

	if (!r)
		r = launch_edges<E>(task.elements, task.n, scratch, stream);
	if (!r) {
		LAUNCH(keep_first<E>, stream_pass_n_blocks(task.n), stream_pass::n_threads,
		       sizeof(unique_memory<E>), stream, task, scratch);
		r = (int)cudaGetLastError();
	}
	return r;
}

int launch_unique(const struct unique_task *task, CUstream_st *stream)
{
	const int r = (int)cudaMemsetAsync(task->result, 0, sizeof *task->result, stream);

	if (r || task->n == 0)
		return r;
	return dispatch_element(task->encoding.element_nbytes, [&](auto e) {
		return keep_first_elements<decltype(e)>(*task, stream);
	});
}
