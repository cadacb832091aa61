/*
 * tile_cuts - cut up to 16 sorted runs exactly at every tile boundary
 *
 * The first `rank` elements of the stable merge of k runs are the first c[i] elements of each run
 * i, where the sum of all c[i] is rank. Half a warp finds them (find_cut), one lane per run. Every
 * lane keeps lo <= c <= hi for its run:
 *
 *	1. take an element of the run with the widest range as the pivot;
 *	2. each lane searches its range for the pivot (gallop); the sum s of the elements before it
 *	   is the pivot's rank in the merge;
 *	3. if s < rank, the first `rank` elements include the pivot and all elements before it, and
 *	   at most rank - s - 1 other elements of each run; else they include no element from the
 *	   pivot on, and all but at most s - rank of the elements of each run before it.
 *
 * Step 3 keeps the number of rounds small: the ranges shrink to the pivot's distance from rank. The
 * pivot is taken where rank would be if the runs had equal distributions, which leaves a distance
 * of about the square root of the range. For the same reason each search begins at that fraction of
 * its range, and reads few sectors that it does not need. If a round leaves more than half of all
 * ranges, the next one uses the middle, so that the widest range is halved for any data. Ties are
 * decided by the number of the run, so the cut is exact and the merge is stable for any data, even
 * if all keys are equal.
 *
 * A search in device memory loads a sector for each key that it reads. So a block cuts a span of
 * neighbouring boundaries: first both ends of the span, over whole runs; then each boundary within
 * the span, where all searches of the block begin with the same keys and find them in the cache.
 *
 * All lanes of a warp iterate until both halves have finished, because warp collectives need all
 * lanes.
 */
#include "kernels/sort/pass.cuh"

static constexpr unsigned CUT_LANES = 16; /* lanes per boundary */
static constexpr unsigned N_CUTTERS = splitting::n_threads / CUT_LANES;

/* Galloping search, in elements: the first step, and a range whose ends are compared first. */
static constexpr unsigned FIRST_STEP = 8;
static constexpr unsigned LONG_RANGE = 512;

static_assert(FAN_IN <= CUT_LANES, "one lane for each run");
static_assert(splitting::n_threads % WARP == 0, "whole warps");

/* Return the lane with the widest range. Widths are clipped to 2^28, which is wide enough. */
__device__ __forceinline__ unsigned widest_lane(uint64_t width, unsigned lane)
{
	const uint32_t max_width = 1u << 28,
		       capped = width < max_width ? (uint32_t)width : max_width - 1;

	return lanes_max(capped * CUT_LANES + lane, CUT_LANES) % CUT_LANES;
}

/* Return the offset in a range at which to begin: at the missing fraction, or in the middle. */
template <class Index>
__device__ __forceinline__ Index pivot_offset(Index width, Index missing, Index open, bool middle)
{
	const Index guess = (Index)((float)width * ((float)missing / (float)open));

	if (middle || guess >= width)
		return middle ? width / 2 : width - 1;
	return guess;
}

/*
 * Return the number of elements of the run that are before the pivot, which must be in [lo, hi]:
 * galloping search (Bentley and Yao 1976), which begins at `guess` and doubles its steps until it
 * has passed the pivot. a_first: see co_rank_pivot().
 */
template <class Index, class E>
__device__ __forceinline__ Index gallop(const E *run, Index lo, Index hi, Index guess, E pivot,
					bool a_first)
{
	const auto is_after_pivot = [=](Index i) {
		return a_first ? pivot < run[i] : !(run[i] < pivot);
	};
	bool descend;

	if (lo == hi)
		return lo;
	/* If runs hardly overlap, the pivot lies outside most of them. */
	if (hi - lo > LONG_RANGE) {
		if (is_after_pivot(lo))
			return lo;
		if (!is_after_pivot(hi - 1))
			return hi;
	}
	descend = is_after_pivot(guess);
	if (descend)
		hi = guess;
	else
		lo = guess + 1;
	for (Index step = FIRST_STEP; hi - lo > step; step *= 2) {
		const Index i = descend ? hi - step : lo + step;
		const bool is_after = is_after_pivot(i);

		if (is_after)
			hi = i;
		else
			lo = i + 1;
		if (is_after != descend)
			break;
	}
	return co_rank_pivot<Index>(run, lo, hi, pivot, a_first, less_than());
}

/*
 * Return the cut of this lane's run for `rank`, which must be in [lo, hi]. Index: a type for sums
 * over the lanes.
 */
template <class Index, class E>
__device__ __forceinline__ Index find_cut(const E *run, Index lo, Index hi, Index rank)
{
	const unsigned lane = threadIdx.x % CUT_LANES;
	Index sum_lo = lanes_sum(lo, CUT_LANES), sum_hi = lanes_sum(hi, CUT_LANES);

	for (bool middle = false;;) {
		const bool done = sum_lo == rank || sum_hi == rank;
		const Index open = sum_hi - sum_lo;
		const unsigned owner = widest_lane(hi - lo, lane);
		Index guess = 0, n_before, place, changed;
		E pivot = {};

		if (!__any_sync(ALL_LANES, !done))
			break;
		if (!done)
			guess = lo + pivot_offset<Index>(hi - lo, rank - sum_lo, open, middle);
		if (lane == owner && !done)
			pivot = run[guess];
		pivot = lane_broadcast(pivot, owner, CUT_LANES);
		n_before = guess;
		if (lane != owner && !done)
			n_before = gallop(run, lo, hi, guess, pivot, lane < owner);
		place = lanes_sum(n_before, CUT_LANES);
		if (!done && place < rank) {
			const Index max_shift = rank - place - 1;

			lo = n_before + (lane == owner);
			hi = hi - lo > max_shift ? lo + max_shift : hi;
			sum_lo = place + 1;
		} else if (!done) {
			const Index max_shift = place - rank;

			hi = n_before;
			lo = hi - lo > max_shift ? hi - max_shift : lo;
			sum_hi = place;
		}
		changed = lanes_sum(place < rank ? hi : lo, CUT_LANES);
		sum_hi = done || place >= rank ? sum_hi : changed;
		sum_lo = done || place < rank ? sum_lo : changed;
		middle = !middle && sum_hi - sum_lo > open / 2;
	}
	return sum_lo == rank ? lo : hi;
}

/* Return whether the runs of the lanes are already sorted, one after the other. */
template <class E>
__device__ __forceinline__ bool runs_are_in_order(kernel_slice run, unsigned lane)
{
	const E *elements = (const E *)run.elements;
	key_type<E> max_key = run.n ? key_of(elements[run.n - 1]) : 0, before;
	bool disorder;

	for (unsigned distance = 1; distance < CUT_LANES; distance *= 2) {
		const key_type<E> other = lane_broadcast(
			max_key, lane >= distance ? lane - distance : lane, CUT_LANES);

		max_key = max_key < other ? other : max_key;
	}
	before = lane_broadcast(max_key, lane ? lane - 1 : 0, CUT_LANES);
	disorder = lane && run.n && key_of(elements[0]) < before;
	return lanes_sum((uint32_t)disorder, CUT_LANES) == 0;
}

/*
 * Return the minimum key after the cut, for tag_format; for the last cut of a group, the maximum
 * key of the group.
 */
template <class E>
__device__ __forceinline__ key_type<E> find_edge(kernel_slice run, uint64_t cut, bool last)
{
	typedef key_type<E> key;
	const E *elements = (const E *)run.elements;

	if (last)
		return lanes_max(run.n ? key_of(elements[run.n - 1]) : (key)0, CUT_LANES);
	return lanes_min(cut < run.n ? key_of(elements[cut]) : (key) ~(key)0, CUT_LANES);
}

/* A span of one group: boundaries [first, end), numbered in the group. */
struct boundary_span {
	run_group_view group;
	uint64_t first, end;
};

/* The part of each run that lies in the span. */
template <class E> struct split_memory {
	const E *run_start[CUT_LANES];
	uint32_t n[CUT_LANES];
};

template <class E>
__device__ __forceinline__ uint64_t boundary_rank(const pass<E> &pass,
						  const boundary_span &boundary_span,
						  uint64_t boundary)
{
	const uint64_t rank = boundary * pass.tile_n;

	return rank < boundary_span.group.n ? rank : boundary_span.group.n;
}

/* Cut the runs at both ends of the span: the first warp, one half per end. */
template <class E>
__device__ __forceinline__ void cut_span(split_memory<E> &memory, const pass<E> &pass,
					 const boundary_span &boundary_span, kernel_slice run)
{
	const unsigned lane = threadIdx.x % CUT_LANES;
	const bool is_end = threadIdx.x >= CUT_LANES;
	const uint64_t rank = boundary_rank(pass, boundary_span,
					    is_end ? boundary_span.end - 1 : boundary_span.first);
	const uint64_t cut =
		find_cut<uint64_t>((const E *)run.elements, 0, run.n < rank ? run.n : rank, rank);
	const uint64_t end = lane_broadcast(cut, lane + CUT_LANES, WARP);

	if (is_end)
		return;
	memory.run_start[lane] = (const E *)run.elements + cut;
	memory.n[lane] = (uint32_t)(end - cut);
}

template <class E> __global__ void __launch_bounds__(splitting::n_threads) split_runs(pass<E> pass)
{
	split_memory<E> &memory = *shared_memory<split_memory<E>>();
	const unsigned lane = threadIdx.x % CUT_LANES;
	kernel_slice run = { nullptr, 0 };
	uint64_t index, n_boundaries, first_rank;
	const E *run_start;
	uint32_t n;
	boundary_span boundary_span;

	if (pass.state && !pass.state->disordered)
		return;
	boundary_span.group = run_group_of_span(pass, blockIdx.x, &index);
	n_boundaries = divide_up(boundary_span.group.n, pass.tile_n) + 1;
	boundary_span.first = index * splitting::n_boundaries;
	boundary_span.end = boundary_span.first + splitting::n_boundaries;
	if (boundary_span.first >= n_boundaries)
		return;
	if (boundary_span.end > n_boundaries)
		boundary_span.end = n_boundaries;
	if (lane < pass.fan_in)
		run = view_run(pass, boundary_span.group.index * pass.fan_in + lane);

	if (threadIdx.x < WARP) {
		cut_span(memory, pass, boundary_span, run);
		if (pass.state && index == 0 && !runs_are_in_order<E>(run, lane) &&
		    threadIdx.x == 0)
			atomicExch(&pass.state->merged[pass.index], 1u);
	}
	__syncthreads();

	run_start = memory.run_start[lane];
	n = memory.n[lane];
	first_rank = boundary_rank(pass, boundary_span, boundary_span.first);
	for (uint64_t i = boundary_span.first; i < boundary_span.end; i += N_CUTTERS) {
		/* Both halves of a warp continue together, even past the end. */
		const uint64_t mine = i + threadIdx.x / CUT_LANES;
		const uint64_t boundary = mine < boundary_span.end ? mine : boundary_span.end - 1;
		const uint32_t rank =
			(uint32_t)(boundary_rank(pass, boundary_span, boundary) - first_rank);
		const E *at =
			run_start + find_cut<uint32_t>(run_start, 0, n < rank ? n : rank, rank);
		const key_type<E> edge = find_edge<E>(run, (uint64_t)(at - (const E *)run.elements),
						      boundary == n_boundaries - 1);
		const uint64_t row =
			boundary_span.group.first_tile + boundary_span.group.index + boundary;

		if (mine == boundary && lane < FAN_IN)
			pass.cuts[row * FAN_IN + lane] = at;
		if (mine == boundary && lane == 0)
			pass.edges[row] = edge;
	}
}

template <class E> int launch_splitters(const pass<E> &pass, CUstream_st *stream)
{
	LAUNCH(split_runs<E>, (unsigned)pass.n_spans, splitting::n_threads, sizeof(split_memory<E>),
	       stream, pass);
	return (int)cudaGetLastError();
}

template int launch_splitters(const pass<uint32_t> &, CUstream_st *);
template int launch_splitters(const pass<uint64_t> &, CUstream_st *);
template int launch_splitters(const pass<uint128_t> &, CUstream_st *);
template int launch_splitters(const pass<pair_element> &, CUstream_st *);
