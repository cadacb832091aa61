/*
 * bench_splitters.cu - cuts of a merge's first pass: exact, and at given keys (see bench_device.h)
 */
#include "tools/bench/bench_device.h"

#include <vector>

#include "kernels/sort/pass.cuh"

static constexpr unsigned THREADS = 256;

/* Rows that are compared with launch_cut(). */
static constexpr uint64_t N_SAMPLED = 64;

typedef const uint64_t *cut_position;

int split_pass_open(struct split_pass *split, const uint64_t *elements, uint64_t n, uint32_t k)
{
	int r;

	*split = {};
	split->elements = elements;
	split->n = n;
	split->run_n = n / k;
	split->fan_in = 1u << levels_of_pass(plan_passes(k), 0);
	split->tile_n = merge_tile_n<uint64_t>(SHARED_LIMIT_99K);
	split->n_groups = k / split->fan_in;
	split->tiles_per_group = divide_up(split->run_n * split->fan_in, split->tile_n);
	split->n_rows = split->n_groups * (split->tiles_per_group + 1);
	r = (int)cudaMalloc(&split->cuts, split->n_rows * FAN_IN * sizeof(cut_position));
	if (!r)
		r = (int)cudaMalloc(&split->by_keys, split->n_rows * FAN_IN * sizeof(cut_position));
	if (!r)
		r = (int)cudaMalloc(&split->keys, split->n_rows * sizeof(uint64_t));
	return r;
}

void split_pass_close(struct split_pass *split)
{
	cudaFree(split->keys);
	cudaFree(split->by_keys);
	cudaFree(split->cuts);
}

/* Runs side by side, as in the passes of a sort: no tables, and nothing can be skipped. */
int split_exactly(const struct split_pass *split)
{
	pass<uint64_t> pass = {};

	pass.n = split->n;
	pass.tile_n = split->tile_n;
	pass.fan_in = split->fan_in;
	pass.n_runs = split->n / split->run_n;
	pass.n_groups = split->n_groups;
	pass.n_tiles = split->n_groups * split->tiles_per_group;
	pass.n_spans = split->n_groups * spans_for(split->tiles_per_group);
	pass.buffers[0] = const_cast<uint64_t *>(split->elements);
	pass.run_n = split->run_n;
	pass.tiles_per_group = split->tiles_per_group;
	pass.cuts = split->cuts;
	pass.edges = split->keys;
	return launch_splitters(pass, nullptr);
}

__global__ void __launch_bounds__(THREADS) search_runs(split_pass split)
{
	const uint64_t thread = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
	const uint64_t row = thread / split.fan_in, run_index = thread % split.fan_in;
	const uint64_t group = row / (split.tiles_per_group + 1);
	const uint64_t *run = split.elements + (group * split.fan_in + run_index) * split.run_n;

	if (row < split.n_rows)
		split.by_keys[row * FAN_IN + run_index] =
			run + co_rank_pivot<uint64_t>(run, 0, split.run_n, split.keys[row], false,
						      less_than());
}

int split_by_keys(const struct split_pass *split)
{
	LAUNCH(search_runs, (unsigned)divide_up(split->n_rows * split->fan_in, THREADS), THREADS, 0,
	       nullptr, *split);
	return (int)cudaGetLastError();
}

/* Copies on the host, for split_check(). */
struct split_rows {
	std::vector<cut_position> cuts, by_keys;
	std::vector<uint64_t> keys;
};

/*
 * Check the row at `boundary` of a group: its cuts must sum to the rank, and each must be the
 * number of elements below one key. As keys differ, this is true of the exact cuts only. There is
 * no key after the last boundary of a group.
 */
static bool is_row_correct(const split_pass &split, const split_rows &split_rows, uint64_t group,
			   uint64_t boundary)
{
	const uint64_t row = group * (split.tiles_per_group + 1) + boundary;
	const uint64_t group_n = split.run_n * split.fan_in, rank = boundary * split.tile_n;
	uint64_t sum = 0;

	for (unsigned run_index = 0; run_index < split.fan_in; run_index++) {
		const uint64_t *run =
			split.elements + (group * split.fan_in + run_index) * split.run_n;
		const cut_position *cut = &split_rows.cuts[row * FAN_IN + run_index];

		sum += (uint64_t)(*cut - run);
		if (*cut < run || *cut > run + split.run_n)
			return false;
		if (boundary && *cut < *(cut - FAN_IN))
			return false;
		if (boundary < split.tiles_per_group &&
		    *cut != split_rows.by_keys[row * FAN_IN + run_index])
			return false;
	}
	return sum == (rank < group_n ? rank : group_n);
}

/*
 * Check that launch_cut() finds the row's cuts by its key. counts: device memory for FAN_IN counts.
 */
static int compare_with_cut(const split_pass &split, const split_rows &split_rows, uint64_t row,
			    uint64_t *counts, bool *ret_is_correct)
{
	const uint64_t first_run = row / (split.tiles_per_group + 1) * split.fan_in;
	kernel_slice slices[FAN_IN];
	uint64_t actual[FAN_IN];
	int r;

	for (unsigned run_index = 0; run_index < split.fan_in; run_index++)
		slices[run_index] = { split.elements + (first_run + run_index) * split.run_n,
				      split.run_n };
	r = launch_cut(slices, split.fan_in, 8, { split_rows.keys[row], 0 }, 0, counts, nullptr);
	if (!r)
		r = (int)cudaMemcpy(actual, counts, split.fan_in * sizeof *counts,
				    cudaMemcpyDeviceToHost);
	for (unsigned run_index = 0; !r && run_index < split.fan_in; run_index++)
		if ((cut_position)slices[run_index].elements + actual[run_index] !=
		    split_rows.cuts[row * FAN_IN + run_index])
			*ret_is_correct = false;
	return r;
}

template <class T> static int copy_to_host(std::vector<T> *to, const T *from, uint64_t n)
{
	to->resize(n);
	return (int)cudaMemcpy(to->data(), from, n * sizeof(T), cudaMemcpyDeviceToHost);
}

int split_check(const struct split_pass *split, bool *ret_is_correct)
{
	const uint64_t rows_per_group = split->tiles_per_group + 1;
	const uint64_t stride = divide_up(split->n_rows, N_SAMPLED);
	uint64_t *counts = nullptr;
	split_rows split_rows;
	int r = split_exactly(split);

	if (!r)
		r = split_by_keys(split);
	if (!r)
		r = copy_to_host(&split_rows.cuts, (const cut_position *)split->cuts,
				 split->n_rows * FAN_IN);
	if (!r)
		r = copy_to_host(&split_rows.by_keys, (const cut_position *)split->by_keys,
				 split->n_rows * FAN_IN);
	if (!r)
		r = copy_to_host(&split_rows.keys, (const uint64_t *)split->keys, split->n_rows);
	if (!r)
		r = (int)cudaMalloc(&counts, FAN_IN * sizeof *counts);
	*ret_is_correct = true;
	for (uint64_t row = 0; !r && row < split->n_rows; row++) {
		const uint64_t boundary = row % rows_per_group;

		if (!is_row_correct(*split, split_rows, row / rows_per_group, boundary))
			*ret_is_correct = false;
		if (row % stride == 0 && boundary < split->tiles_per_group)
			r = compare_with_cut(*split, split_rows, row, counts, ret_is_correct);
	}
	cudaFree(counts);
	return r;
}
