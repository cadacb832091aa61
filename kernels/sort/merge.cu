/*
 * merge - merge k sorted slices of any lengths into one, in passes of up to 16
 *
 * Tables of runs and groups describe a pass (pass.cuh). The host makes them from the lengths of the
 * slices alone, and passes them as kernel arguments (upload_table.cuh).
 *
 *	slices -> out                      one pass
 *	slices -> buffer -> out            two passes
 *	slices -> out -> buffer -> out     three passes
 */
#include "kernels/sort/pass.cuh"
#include "kernels/upload_table.cuh"

/* Plan at least one pass: even a single slice must be copied to `out`. */
static struct pass_plan plan_merge(uint32_t k)
{
	struct pass_plan plan = plan_passes(k);

	plan.n_passes += plan.n_passes == 0;
	return plan;
}

/* Return the number of elements of slices [first, end), clipped to k. */
static uint64_t count_elements(const kernel_slice *slices, uint32_t k, uint64_t first, uint64_t end)
{
	uint64_t n = 0;

	for (uint64_t i = first; i < end && i < k; i++)
		n += slices[i].n;
	return n;
}

/* Return the size of the tables (runs and groups) of all passes. */
static uint64_t table_nbytes(uint32_t k)
{
	const struct pass_plan plan = plan_merge(k);
	uint64_t n_runs = k, nbytes = 0;

	for (unsigned i = 0; i < plan.n_passes; i++) {
		const uint64_t n_groups = divide_up(n_runs, (uint64_t)1 << levels_of_pass(plan, i));

		nbytes += n_runs * sizeof(kernel_slice) + n_groups * sizeof(run_group);
		n_runs = n_groups;
	}
	return nbytes;
}

/*
 * Return the maximum number of boundaries: every group has at most one tile that is not full, and
 * one more boundary than tiles. The maximum is for all devices, because scratch is planned before
 * the device is known.
 */
template <class E> static uint64_t max_boundaries(uint32_t k, uint64_t n)
{
	const uint64_t n_groups = divide_up(k, (uint64_t)1 << levels_of_pass(plan_merge(k), 0));
	const uint32_t a = merge_tile_n<E>(SHARED_LIMIT_64K), b = merge_tile_n<E>(SHARED_LIMIT_99K);

	return n / (a < b ? a : b) + 2 * n_groups;
}

/* | tables | cuts | edges | buffer of n elements, if there are several passes | */
struct merge_layout {
	size_t cuts_at, edges_at, buffer_at, nbytes;
};

template <class E> static struct merge_layout lay_out_scratch(uint32_t k, uint64_t n)
{
	const uint64_t n_boundaries = max_boundaries<E>(k, n);
	struct merge_layout layout;

	layout.cuts_at = round_up(table_nbytes(k), 256);
	layout.edges_at = layout.cuts_at + round_up(n_boundaries * FAN_IN * sizeof(E *), 256);
	layout.buffer_at = layout.edges_at + round_up(n_boundaries * sizeof(key_type<E>), 256);
	layout.nbytes = layout.buffer_at;
	if (plan_merge(k).n_passes > 1)
		layout.nbytes += round_up(n * sizeof(E), 256);
	return layout;
}

/*
 * Write the tables of a pass, and set the members of the pass that depend on them. A run has the
 * elements of `stride` slices. Runs follow each other in `from`, or are the slices themselves
 * (stride 1, from NULL).
 */
template <class E>
static void write_tables(struct table_writer *writer, pass<E> *pass, const kernel_slice *slices,
			 uint32_t k, uint64_t stride, const E *from)
{
	uint64_t first_element = 0;

	pass->n_runs = divide_up(k, stride);
	pass->n_groups = divide_up(pass->n_runs, pass->fan_in);
	pass->n_tiles = 0;
	pass->n_spans = 0;
	pass->runs = (const kernel_slice *)table_writer_position(writer);
	for (uint64_t i = 0; i < pass->n_runs; i++) {
		const uint64_t n = count_elements(slices, k, i * stride, (i + 1) * stride);
		const void *run = from ? from + first_element : slices[i].elements;

		table_writer_put(writer, (uint64_t)(uintptr_t)run);
		table_writer_put(writer, n);
		first_element += n;
	}
	pass->groups = (const run_group *)table_writer_position(writer);
	first_element = 0;
	for (uint64_t i = 0; i < pass->n_groups; i++) {
		const uint64_t group_stride = stride * pass->fan_in;
		const uint64_t n =
			count_elements(slices, k, i * group_stride, (i + 1) * group_stride);

		table_writer_put(writer, pass->n_tiles);
		table_writer_put(writer, first_element);
		table_writer_put(writer, pass->n_spans);
		pass->n_tiles += divide_up(n, pass->tile_n);
		pass->n_spans += spans_for(divide_up(n, pass->tile_n));
		first_element += n;
	}
}

template <class E>
static int merge(const kernel_slice *slices, uint32_t k, E *out, char *scratch, CUstream_st *stream)
{
	const uint64_t n = count_elements(slices, k, 0, k);
	const struct pass_plan plan = plan_merge(k ? k : 1);
	const struct merge_layout layout = lay_out_scratch<E>(k ? k : 1, n);
	struct table_writer writer = { (uint64_t *)scratch, stream, {}, 0, 0 };
	pass<E> passes[PASSES_MAX] = {};
	uint64_t stride = 1;
	const E *from = nullptr;
	shared_limit limit;
	int r;

	if (n == 0)
		return 0;
	r = find_shared_limit<E>(&limit);
	if (r)
		return r;
	for (unsigned i = 0; i < plan.n_passes; i++) {
		pass<E> *pass = &passes[i];

		pass->n = n;
		pass->tile_n = merge_tile_n<E>(limit);
		pass->fan_in = 1u << levels_of_pass(plan, i);
		pass->cuts = (const E **)(scratch + layout.cuts_at);
		pass->edges = (key_type<E> *)(scratch + layout.edges_at);
		pass->out = (plan.n_passes - 1 - i) % 2 ? (E *)(scratch + layout.buffer_at) : out;
		write_tables(&writer, pass, slices, k, stride, from);
		stride *= pass->fan_in;
		from = pass->out;
	}
	table_writer_flush(&writer);
	r = writer.r;
	for (unsigned i = 0; !r && i < plan.n_passes; i++) {
		r = launch_splitters(passes[i], stream);
		if (!r)
			r = launch_merge_tiles(passes[i], limit, stream);
	}
	return r;
}

size_t kernel_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes)
{
	k = k ? k : 1;
	return dispatch_element(element_nbytes,
				[&](auto e) { return lay_out_scratch<decltype(e)>(k, n).nbytes; });
}

int launch_merge(const struct kernel_slice *slices, uint32_t k, uint32_t element_nbytes, void *out,
		 void *scratch, CUstream_st *stream)
{
	return dispatch_element(element_nbytes, [&](auto e) {
		return merge(slices, k, (decltype(e) *)out, (char *)scratch, stream);
	});
}

size_t kernel_merge_pairs_scratch_nbytes(uint32_t k, uint64_t n)
{
	return lay_out_scratch<pair_element>(k ? k : 1, n).nbytes;
}

int launch_merge_pairs(const struct kernel_slice *slices, uint32_t k, void *out, void *scratch,
		       CUstream_st *stream)
{
	return merge(slices, k, (pair_element *)out, (char *)scratch, stream);
}
