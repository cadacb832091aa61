/*
 * splitters - exact cuts of up to 16 sorted runs at every tile boundary
 *
 * The first `rank` elements of the stable merge of k runs are the first c[i] elements of each run
 * i, with the c[i] summing to rank. Half a warp finds them, one lane for each run. Every lane
 * keeps lo <= c <= hi for its run:
 *
 *	1. take an element of the run with the widest range as the pivot;
 *	2. each lane searches its range for the pivot (co_rank_pivot), and the sum s of what lies
 *	   before it is the pivot's place in the merge;
 *	3. if s < rank, the pivot and all before it belong to the first `rank`, and each c is at
 *	   most rank - s - 1 further; else what comes after it does not, and each c is at most
 *	   s - rank less.
 *
 * Step 3 is why few rounds suffice: the ranges shrink to the pivot's distance from rank. The pivot
 * is taken where rank would be if the runs were alike, which leaves a distance of about the root
 * of the range; every other time it is the middle, so that the widest range is halved whatever the
 * data. Ties are decided by the run's number, so the cut is exact and the merge stable for any
 * data, all equal included.
 *
 * All lanes of a warp go round together until both halves are done: collectives stay convergent.
 */
#include "kernels/pass.cuh"

static constexpr unsigned CUT_LANES = 16; /* for one boundary */
static constexpr unsigned CUT_THREADS = 128;

static_assert(FAN_IN <= CUT_LANES, "one lane for each run");

/* One lane's run and what is known of its cut. */
template <class E> struct cut_range {
	const E *run;
	uint64_t lo, hi;
};

/* The lane with the widest range. Widths count up to 2^28: what is wider is wide enough. */
__device__ __forceinline__ unsigned widest_lane(uint64_t width, unsigned lane)
{
	const uint32_t most = 1u << 28, capped = width < most ? (uint32_t)width : most - 1;

	return lanes_max(capped * CUT_LANES + lane, CUT_LANES) % CUT_LANES;
}

/* Where in the widest range to take the pivot: at the fraction missing, or in the middle. */
__device__ __forceinline__ uint64_t pivot_offset(uint64_t width, uint64_t missing, uint64_t open,
						 bool middle)
{
	const uint64_t guess = (uint64_t)((float)width * ((float)missing / (float)open));

	if (middle || guess >= width)
		return middle ? width / 2 : width - 1;
	return guess;
}

template <class E>
__device__ __forceinline__ uint64_t find_cut(cut_range<E> range, unsigned lane, uint64_t rank)
{
	uint64_t sum_lo = lanes_sum(range.lo, CUT_LANES), sum_hi = lanes_sum(range.hi, CUT_LANES);

	for (bool middle = false;; middle = !middle) {
		const bool done = sum_lo == rank || sum_hi == rank;
		const uint64_t width = range.hi - range.lo;
		const unsigned owner = widest_lane(width, lane);
		uint64_t pivot_at = 0, n_before, place;
		E pivot = 0;

		if (!__any_sync(ALL_LANES, !done))
			break;
		if (lane == owner && !done) {
			pivot_at = range.lo +
				   pivot_offset(width, rank - sum_lo, sum_hi - sum_lo, middle);
			pivot = range.run[pivot_at];
		}
		pivot = lane_broadcast(pivot, owner, CUT_LANES);
		if (lane == owner || done)
			n_before = pivot_at;
		else
			n_before = co_rank_pivot(range.run, range.lo, range.hi, pivot, lane < owner,
						 less_than());
		place = lanes_sum(n_before, CUT_LANES);
		if (!done && place < rank) {
			const uint64_t reach = rank - place - 1;

			range.lo = n_before + (lane == owner);
			range.hi = range.hi - range.lo > reach ? range.lo + reach : range.hi;
		} else if (!done) {
			const uint64_t reach = place - rank;

			range.hi = n_before;
			range.lo = range.hi - range.lo > reach ? range.hi - reach : range.lo;
		}
		sum_lo = lanes_sum(range.lo, CUT_LANES);
		sum_hi = lanes_sum(range.hi, CUT_LANES);
	}
	return sum_lo == rank ? range.lo : range.hi;
}

/* Are the lanes' runs, one after the other, sorted already? */
template <class E>
__device__ __forceinline__ bool runs_are_in_order(kernel_slice run, unsigned lane)
{
	const E *elements = (const E *)run.elements;
	E greatest = run.n ? elements[run.n - 1] : 0, before = 0;
	bool disorder;

	for (unsigned distance = 1; distance < CUT_LANES; distance *= 2) {
		const E other = lane_broadcast(greatest, lane >= distance ? lane - distance : lane,
					       CUT_LANES);

		greatest = greatest < other ? other : greatest;
	}
	before = lane_broadcast(greatest, lane ? lane - 1 : 0, CUT_LANES);
	disorder = lane && run.n && elements[0] < before;
	return lanes_sum((uint32_t)disorder, CUT_LANES) == 0;
}

/* The first key after the cut, for narrowing; after the last cut of a group its greatest key. */
template <class E> __device__ __forceinline__ E find_edge(kernel_slice run, uint64_t cut, bool last)
{
	const E *elements = (const E *)run.elements;

	if (last)
		return lanes_max(run.n ? elements[run.n - 1] : (E)0, CUT_LANES);
	return lanes_min(cut < run.n ? elements[cut] : (E) ~(E)0, CUT_LANES);
}

template <class E> __global__ void __launch_bounds__(CUT_THREADS) split(pass<E> pass)
{
	const unsigned lane = threadIdx.x % CUT_LANES;
	uint64_t boundary = ((uint64_t)blockIdx.x * CUT_THREADS + threadIdx.x) / CUT_LANES;
	const bool real = boundary < pass.n_boundaries();
	group_view group;
	kernel_slice run = { nullptr, 0 };
	uint64_t tile, rank, cut;
	bool last;
	E edge;

	if (pass.state && !pass.state->disordered)
		return;
	boundary = real ? boundary : 0;
	group = group_of_boundary(pass, boundary);
	tile = boundary - group.index - group.first_tile;
	last = tile * pass.tile_n >= group.n;
	rank = last ? group.n : tile * pass.tile_n;
	if (lane < pass.fan_in)
		run = view_run(pass, group.index * pass.fan_in + lane);

	if (pass.state && __any_sync(ALL_LANES, tile == 0) && !runs_are_in_order<E>(run, lane) &&
	    tile == 0 && lane == 0)
		atomicExch(&pass.state->merged[pass.index], 1u);

	cut = find_cut(cut_range<E>{ (const E *)run.elements, 0, run.n < rank ? run.n : rank },
		       lane, rank);
	edge = find_edge<E>(run, cut, last);
	if (!real)
		return;
	if (lane < FAN_IN)
		pass.cuts[boundary * FAN_IN + lane] = (const E *)run.elements + cut;
	if (lane == 0)
		pass.edges[boundary] = edge;
}

template <class E> int launch_split(const pass<E> &pass, CUstream_st *stream)
{
	LAUNCH(split<E>, (unsigned)divide_up(pass.n_boundaries() * CUT_LANES, CUT_THREADS),
	       CUT_THREADS, 0, stream, pass);
	return (int)cudaGetLastError();
}

template int launch_split(const pass<uint32_t> &, CUstream_st *);
template int launch_split(const pass<uint64_t> &, CUstream_st *);
template int launch_split(const pass<uint128_t> &, CUstream_st *);
