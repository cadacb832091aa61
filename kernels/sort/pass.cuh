/*
 * pass - one merge pass over all elements: groups of up to FAN_IN runs become one run each
 *
 *	runs    [ 0 ][ 1 ][ 2 ][ 3 ]  [ 4 ][ 5 ][ 6 ][ 7 ]   [ 8 ][ 9 ]		FAN_IN = 4
 *	groups  [         0        ]  [        1         ]   [    2   ]
 *	tiles   |     |     |     |   |     |     |     |    |     |  |		<- boundaries
 *
 * A tile is tile_n elements of a group's output; the last tile of a group may be shorter. Splitters
 * (tile_cuts.cu) cut the group's runs at every boundary, so that merge_pass.cu can make each tile
 * independently. A group of t tiles has t + 1 boundaries; those of group g are first_tile + g ...
 * first_tile + g + t.
 *
 * In a sort, all runs have run_n elements (the last may have fewer) and are adjacent in one of two
 * buffers. In a merge, the runs and groups are in tables.
 */
#pragma once

#include "kernels/kernels.h"
#include "kernels/sort/element.cuh"
#include "kernels/tuning.h"
#include "src/device/co_rank.h"

static constexpr unsigned FAN_IN_LOG2 = GSORT_FAN_IN_LOG2;
static constexpr unsigned FAN_IN = 1u << FAN_IN_LOG2;

/* Maximum number of passes: FAN_IN >= 4, so this suffices for 2^64 runs. */
static constexpr unsigned PASSES_MAX = 32;

struct pass_plan {
	unsigned n_passes;
	unsigned levels; /* of pairwise merging in all passes: log2(n_runs), rounded up */
};

static inline struct pass_plan plan_passes(uint64_t n_runs)
{
	struct pass_plan plan = { 0, 0 };

	while (n_runs && (n_runs - 1) >> plan.levels)
		plan.levels++;
	plan.n_passes = (plan.levels + FAN_IN_LOG2 - 1) / FAN_IN_LOG2;
	return plan;
}

/* Return the levels of one pass. They are spread evenly; the first passes take the remainder. */
static inline unsigned levels_of_pass(struct pass_plan plan, unsigned index)
{
	return plan.levels / plan.n_passes + (index < plan.levels % plan.n_passes);
}

/*
 * State that the kernels of one sort share. All zeros at the start: no disorder is known, so the
 * kernels do nothing.
 */
struct sort_state {
	uint32_t disordered;         /* the input is not sorted */
	uint32_t merged[PASSES_MAX]; /* pass i had an unsorted group, so it was executed */
};

/* Geometry of the splitters (tile_cuts.cu). */
template <unsigned THREADS, unsigned BOUNDARIES> struct split_shape {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned n_boundaries = BOUNDARIES; /* of a span, which one block cuts */
};
typedef split_shape<GSORT_SPLIT> splitting;

/* Return the number of spans of a group of n_tiles tiles, which has n_tiles + 1 boundaries. */
static constexpr GSORT_HD uint64_t spans_for(uint64_t n_tiles)
{
	return n_tiles / splitting::n_boundaries + 1;
}

/* The start of a group, in tables. */
struct run_group {
	uint64_t first_tile;
	uint64_t first_element;
	uint64_t first_span;
};

template <class E> struct pass {
	/* Shape */
	uint64_t n; /* elements */
	uint32_t tile_n;
	uint32_t fan_in;
	uint64_t n_runs;
	uint64_t n_groups;
	uint64_t n_tiles;
	uint64_t n_spans;

	/* In a sort */
	E *buffers[2];
	unsigned start; /* the buffer that holds the runs of pass 0 */
	unsigned index;
	uint64_t run_n;
	uint64_t tiles_per_group;
	sort_state *state;

	/* In a merge; runs is NULL in a sort */
	const kernel_slice *runs;
	const run_group *groups;
	E *out;

	/* Made by the splitters: FAN_IN pointers for each boundary, and the first key after it */
	const E **cuts;
	key_type<E> *edges;

	__host__ __device__ uint64_t n_boundaries() const
	{
		return n_tiles + n_groups;
	}
};

struct first_tiles {
	const run_group *groups;

	__device__ uint64_t operator[](uint64_t i) const
	{
		return groups[i].first_tile;
	}
};

struct first_spans {
	const run_group *groups;

	__device__ uint64_t operator[](uint64_t i) const
	{
		return groups[i].first_span;
	}
};

/* The description of a group that kernels use, for a sort and a merge. */
struct run_group_view {
	uint64_t index;
	uint64_t first_tile;
	uint64_t first_element;
	uint64_t n; /* elements */
};

template <class E>
__device__ __forceinline__ run_group_view describe_run_group(const pass<E> &pass, uint64_t index)
{
	run_group_view view;

	view.index = index;
	if (pass.runs) {
		view.first_tile = pass.groups[index].first_tile;
		view.first_element = pass.groups[index].first_element;
		view.n = (index + 1 < pass.n_groups ? pass.groups[index + 1].first_element :
						      pass.n) -
			 view.first_element;
	} else {
		const uint64_t group_n = pass.run_n * pass.fan_in;

		view.first_tile = index * pass.tiles_per_group;
		view.first_element = index * group_n;
		view.n = pass.n - view.first_element < group_n ? pass.n - view.first_element :
								 group_n;
	}
	return view;
}

template <class E>
__device__ __forceinline__ run_group_view run_group_of_tile(const pass<E> &pass, uint64_t tile)
{
	if (pass.runs)
		return describe_run_group(pass, co_rank_pivot<uint64_t>(first_tiles{ pass.groups },
									0, pass.n_groups, tile,
									true, less_than()) -
							1);
	return describe_run_group(pass, tile / pass.tiles_per_group);
}

/* Return the group of a span. ret_span: the number of the span in its group. */
template <class E>
__device__ __forceinline__ run_group_view run_group_of_span(const pass<E> &pass, uint64_t span,
							    uint64_t *ret_span)
{
	uint64_t index;

	if (pass.runs) {
		index = co_rank_pivot<uint64_t>(first_spans{ pass.groups }, 0, pass.n_groups, span,
						true, less_than()) -
			1;
		*ret_span = span - pass.groups[index].first_span;
	} else {
		const uint64_t n_spans = spans_for(pass.tiles_per_group);

		index = span / n_spans;
		*ret_span = span % n_spans;
	}
	return describe_run_group(pass, index);
}

/* In a sort: return the number of the buffer that holds the runs of pass.index. */
template <class E> __device__ __forceinline__ unsigned source_buffer(const pass<E> &pass)
{
	unsigned buffer = pass.start;

	for (unsigned i = 0; i < pass.index; i++)
		buffer ^= pass.state->merged[i];
	return buffer;
}

/* Return pass.buffers[buffer]. A variable index would move the pass to local memory. */
template <class E> __device__ __forceinline__ E *buffer_at(const pass<E> &pass, unsigned buffer)
{
	return buffer ? pass.buffers[1] : pass.buffers[0];
}

/* Return run i; empty after the last. */
template <class E> __device__ __forceinline__ kernel_slice view_run(const pass<E> &pass, uint64_t i)
{
	kernel_slice run = { nullptr, 0 };

	if (i >= pass.n_runs)
		return run;
	if (pass.runs)
		return pass.runs[i];
	run.elements = buffer_at(pass, source_buffer(pass)) + i * pass.run_n;
	run.n = pass.n - i * pass.run_n < pass.run_n ? pass.n - i * pass.run_n : pass.run_n;
	return run;
}

/* The functions that sort.cu and merge.cu compose passes of, each for integers and pairs. */
template <class E> uint32_t merge_tile_n(shared_limit limit);
template <class E> uint32_t sort_tile_n(shared_limit limit);
template <class E>
int launch_sort_tiles(const E *from, E *to, uint64_t n, sort_state *state, shared_limit limit,
		      CUstream_st *stream);
template <class E> int launch_splitters(const pass<E> &pass, CUstream_st *stream);
template <class E>
int launch_merge_tiles(const pass<E> &pass, shared_limit limit, CUstream_st *stream);

/*
 * Find the shared memory limit of the code that the device runs. It is not queried for elements
 * whose tiles are the same for any limit.
 */
template <class E> static inline int find_shared_limit(shared_limit *ret_limit)
{
	int architecture = 0, r = 0;

	*ret_limit = SHARED_LIMIT_99K;
	if (sort_tile_n<E>(SHARED_LIMIT_64K) == sort_tile_n<E>(SHARED_LIMIT_99K) &&
	    merge_tile_n<E>(SHARED_LIMIT_64K) == merge_tile_n<E>(SHARED_LIMIT_99K))
		return 0;
	r = kernels_architecture(&architecture);
	if (!r)
		*ret_limit = shared_limit_of(architecture);
	return r;
}
