/*
 * sort - the sequence of kernels that sorts a chunk
 *
 *	check order -> tile sort -> (split -> merge tiles) for each pass -> copy back
 *
 * Passes alternate between the caller's elements and the scratch buffer. The first buffer is chosen
 * so that the last pass writes to the elements. But a pass whose groups are all in order is not
 * executed. Only the device knows which passes were executed (sort_state), so that the host never
 * waits, and copy_back() copies the elements if necessary.
 */
#include "kernels/sort/pass.cuh"

/* Return the size of the cuts of one pass. */
template <class E> static size_t cuts_nbytes(uint64_t n_boundaries)
{
	return round_up(n_boundaries * FAN_IN * sizeof(E *), 256);
}

template <class E> static size_t edges_nbytes(uint64_t n_boundaries)
{
	return round_up(n_boundaries * sizeof(key_type<E>), 256);
}

template <class E>
static void shape_pass(pass<E> *pass, uint64_t run_n, unsigned levels, shared_limit limit)
{
	const uint64_t n_runs = divide_up(pass->n, run_n);

	pass->fan_in = 1u << levels;
	pass->run_n = run_n;
	pass->n_runs = n_runs;
	pass->n_groups = divide_up(n_runs, pass->fan_in);
	pass->tile_n = merge_tile_n<E>(limit);
	pass->tiles_per_group = divide_up(run_n * pass->fan_in, pass->tile_n);
	pass->n_tiles =
		(pass->n_groups - 1) * pass->tiles_per_group +
		divide_up(pass->n - (pass->n_groups - 1) * run_n * pass->fan_in, pass->tile_n);
	pass->n_spans = pass->n_groups * spans_for(pass->tiles_per_group);
}

/* Return the maximum number of boundaries of any pass. */
template <class E> static uint64_t max_boundaries_within(shared_limit limit, uint64_t n)
{
	const struct pass_plan plan = plan_passes(divide_up(n, sort_tile_n<E>(limit)));
	uint64_t run_n = sort_tile_n<E>(limit), max_boundaries_n = 0;
	pass<E> pass = {};

	pass.n = n;
	for (unsigned i = 0; i < plan.n_passes; i++) {
		shape_pass(&pass, run_n, levels_of_pass(plan, i), limit);
		max_boundaries_n = pass.n_boundaries() > max_boundaries_n ? pass.n_boundaries() :
									    max_boundaries_n;
		run_n *= pass.fan_in;
	}
	return max_boundaries_n;
}

/* Return the maximum for all devices, because scratch is planned before the device is known. */
template <class E> static uint64_t max_boundaries(uint64_t n)
{
	const uint64_t a = max_boundaries_within<E>(SHARED_LIMIT_64K, n),
		       b = max_boundaries_within<E>(SHARED_LIMIT_99K, n);

	return a < b ? b : a;
}

/* | state | cuts | edges | buffer of n elements | */
template <class E> static size_t sort_scratch_nbytes(uint64_t n)
{
	const uint64_t n_boundaries = max_boundaries<E>(n);

	return round_up(sizeof(sort_state), 256) + cuts_nbytes<E>(n_boundaries) +
	       edges_nbytes<E>(n_boundaries) + round_up(n * sizeof(E), 256);
}

static constexpr unsigned COPY_BACK_THREADS = 256;
static constexpr unsigned COPY_BACK_BLOCKS = GSORT_MULTIPROCESSORS * 8;

/* Copy the sorted elements from the scratch buffer if the last executed pass left them there. */
template <class E> __global__ void __launch_bounds__(COPY_BACK_THREADS) copy_back(pass<E> pass)
{
	if (!pass.state->disordered || source_buffer(pass) == 0)
		return;
	for (uint64_t i = (uint64_t)blockIdx.x * COPY_BACK_THREADS + threadIdx.x; i < pass.n;
	     i += (uint64_t)gridDim.x * COPY_BACK_THREADS)
		pass.buffers[0][i] = pass.buffers[1][i];
}

template <class E> static int sort(E *elements, uint64_t n, char *scratch, CUstream_st *stream)
{
	const uint64_t n_boundaries = max_boundaries<E>(n);
	struct pass_plan plan;
	shared_limit limit;
	uint64_t run_n;
	pass<E> pass = {};
	int r;

	if (n < 2)
		return 0;
	r = find_shared_limit<E>(&limit);
	if (r)
		return r;
	run_n = sort_tile_n<E>(limit);
	plan = plan_passes(divide_up(n, run_n));
	pass.n = n;
	pass.state = (sort_state *)scratch;
	pass.cuts = (const E **)(scratch + round_up(sizeof(sort_state), 256));
	pass.edges = (key_type<E> *)((char *)pass.cuts + cuts_nbytes<E>(n_boundaries));
	pass.buffers[0] = elements;
	pass.buffers[1] = (E *)((char *)pass.edges + edges_nbytes<E>(n_boundaries));
	pass.start = plan.n_passes % 2;

	r = (int)cudaMemsetAsync(pass.state, 0, sizeof *pass.state, stream);
	if (!r)
		r = launch_sort_tiles(elements, pass.buffers[pass.start], n, pass.state, limit,
				      stream);
	for (; !r && pass.index < plan.n_passes; pass.index++) {
		shape_pass(&pass, run_n, levels_of_pass(plan, pass.index), limit);
		r = launch_splitters(pass, stream);
		if (!r)
			r = launch_merge_tiles(pass, limit, stream);
		run_n *= pass.fan_in;
	}
	if (!r && plan.n_passes > 0) {
		LAUNCH(copy_back<E>, COPY_BACK_BLOCKS, COPY_BACK_THREADS, 0, stream, pass);
		r = (int)cudaGetLastError();
	}
	return r;
}

size_t kernel_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes)
{
	return dispatch_element(element_nbytes,
				[&](auto e) { return sort_scratch_nbytes<decltype(e)>(n); });
}

int launch_sort(void *elements, uint64_t n, uint32_t element_nbytes, void *scratch,
		CUstream_st *stream)
{
	return dispatch_element(element_nbytes, [&](auto e) {
		return sort((decltype(e) *)elements, n, (char *)scratch, stream);
	});
}

size_t kernel_sort_pairs_scratch_nbytes(uint64_t n)
{
	return sort_scratch_nbytes<pair_element>(n);
}

int launch_sort_pairs(void *pairs, uint64_t n, void *scratch, CUstream_st *stream)
{
	return sort((pair_element *)pairs, n, (char *)scratch, stream);
}
