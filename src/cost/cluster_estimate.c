/*
 * cluster_estimate - what each of several ranks moves, how long that takes, and which limit is near
 * (see cluster_estimate.h)
 */
#include "src/cost/cluster_estimate.h"

#include <math.h>

#include "io/spill/block_writer.h"
#include "io/spill/run_file.h"

enum {
	INDEX_PART = 4,       /* of the memory, which the index of runs has at most (plan.h), */
	USUAL_INDEX_PART = 8, /* and without need */
	LEAST_BLOCK_NBYTES = 4 << 10,
	MOST_UNEVEN_PART = 100,  /* of a range, by which it may be longer than others */
	MOST_OVERHEAD_PART = 50, /* of what comes that are items: the rest */
	CUT_ROW_NBYTES = 48,     /* of a draw for a splitter (global_splitters.c): what is drawn, */
	CUT_SUM_NBYTES = 8,      /* and what is before it; in a round of each splitter so many, */
	CUT_MOST_DRAWS = 16,     /* and of all splitters */
	CUT_MOST_ROWS = 1024,
};

static const struct {
	const char *name;
	uint64_t assumed_per_s;
} links[N_RANK_LINKS] = {
	[RANK_DISK] = { "disk", UINT64_C(2000000000) },
	[RANK_NETWORK] = { "network", UINT64_C(3125000000) }, /* 25 Gbit/s */
	/* Two threads answer, of which each waits for the network half a millisecond at most. */
	[RANK_MESSAGES] = { "messages", 4000 },
	[RANK_PROCESSORS] = { "processors", 0 },
};

const char *rank_link_name(enum rank_link link)
{
	return links[link].name;
}

void rank_rates_assume(struct rank_rates *rates)
{
	for (enum rank_link link = 0; link < N_RANK_LINKS; link++) {
		rates->is_stated[link] = rates->per_s[link] > 0;
		if (!rates->is_stated[link])
			rates->per_s[link] = links[link].assumed_per_s;
	}
}

const char *rank_phase_name(enum rank_phase phase)
{
	static const char *const names[] = { "run generation", "final merge" };

	return names[phase];
}

const char *rank_phase_key(enum rank_phase phase)
{
	static const char *const names[] = { "run_generation", "final_merge" };

	return names[phase];
}

const char *rank_limit_key(enum rank_limit limit)
{
	static const char *const names[] = {
		[RANK_FAN_IN] = "runs",      [RANK_INDEX] = "index",
		[RANK_UNEVEN] = "imbalance", [RANK_OVERHEAD] = "overhead",
		[RANK_WAITING] = "messages",
	};

	return names[limit];
}

bool rank_rates_are_complete(const struct rank_rates *rates)
{
	for (enum rank_link link = 0; link < N_RANK_LINKS; link++)
		if (rates->per_s[link] == 0)
			return false;
	return true;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t quotient_up(uint64_t value, uint64_t by)
{
	return by ? value / by + (value % by != 0) : 0;
}

/* Of a value that all ranks have, what comes from others. */
static uint64_t of_others(uint64_t value, uint32_t n_ranks)
{
	return (uint64_t)((uint128_t)value * (n_ranks - 1) / n_ranks);
}

/* A block as it is stored. */
static uint64_t block_items(const struct plan *plan)
{
	return run_file_block_n_items(plan->block_nbytes, (uint32_t)plan->resident_nbytes);
}

/*
 * Windows take blocks in the order of their first keys, as many as they have room for; what they
 * take of one run are neighbours, and come in one message, or in groups of these if they are long.
 */
static void find_messages(const struct plan *plan, const struct plan_request *request,
			  uint64_t n_items, struct rank_loads *loads)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t block = block_items(plan), k = least_of(loads->n_merged, plan->fan_in);
	uint64_t memory_nbytes = plan->last_merge_nbytes, taken_items, n;
	struct window_plan windows;
	struct plan each;

	n = plan_ranges(plan, request, memory_nbytes, n_items, 0, (uint32_t)k, plan->n_ranges,
			&each);
	plan_windows(&each, request, n == 1 ? memory_nbytes : each.merge_nbytes, n_items / n, 0,
		     (uint32_t)k, &windows);
	/* Of each run that has a block in a window. */
	taken_items =
		quotient_up(windows.quota_records, least_of(k, windows.quota_records / block + 1));
	taken_items = taken_items < block ? block : taken_items;
	loads->message_nbytes =
		least_of(taken_items * item_nbytes, BLOCK_GROUP_NBYTES / block * block + block);
	loads->n_messages = quotient_up(loads->items_nbytes, loads->message_nbytes);
}

static uint32_t log2_up(uint64_t n)
{
	uint32_t bits = 0;

	while (bits < 63 && UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

/*
 * Of d places that are drawn two are next to the splitter, between which two of d + 2 parts are, on
 * average; of many splitters the unluckiest counts, and the last round finds nothing. Both
 * collectives of a round go up a tree of ranks and down.
 */
static void find_cut(const struct plan *plan, uint64_t n_items, struct rank_loads *loads)
{
	const uint64_t n_blocks = quotient_up(n_items, block_items(plan)) + loads->n_runs;
	const uint32_t n_ranks = loads->n_ranks;
	const uint32_t n_splitters = n_ranks - 1;
	uint32_t n_draws;
	double n_rounds;

	loads->n_cut_rounds = 0;
	loads->cut_nbytes = 0;
	if (n_splitters == 0)
		return;
	n_draws = (uint32_t)least_of(CUT_MOST_ROWS / n_splitters, CUT_MOST_DRAWS);
	n_draws += n_draws == 0;
	n_rounds = 1.3 * (log2_up(n_blocks) + log2_up(n_ranks)) / log2((n_draws + 2) / 2.0);
	loads->n_cut_rounds = (uint32_t)ceil(n_rounds) + 1;
	loads->cut_nbytes = (uint64_t)loads->n_cut_rounds * 2 * (CUT_ROW_NBYTES + CUT_SUM_NBYTES) *
			    n_draws * n_splitters;
}

static void find_wire(const struct plan *plan, const struct plan_request *request, uint64_t n_items,
		      struct rank_loads *loads)
{
	const uint32_t n_ranks = loads->n_ranks;
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t n_blocks = quotient_up(n_items, block_items(plan)) + loads->n_merged;

	loads->uneven_nbytes = least_of(loads->n_merged * block_items(plan), n_items) * item_nbytes;
	loads->items_nbytes = of_others(n_items * item_nbytes, n_ranks);
	/* Where a range begins and ends it reads all of the block, of each run. */
	loads->edges_nbytes = of_others(loads->n_merged * block_items(plan) * item_nbytes, n_ranks);
	loads->index_nbytes = of_others(n_blocks * sizeof(struct run_block), n_ranks);
	find_cut(plan, n_items, loads);
	loads->received_nbytes =
		loads->items_nbytes + loads->edges_nbytes + loads->index_nbytes + loads->cut_nbytes;
}

/* Resident runs are sampled, and cut exactly; a part of one is a message, or several if long. */
static void find_trade(const struct plan *plan, const struct plan_request *request,
		       uint64_t n_items, struct rank_loads *loads)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, n_items, (uint32_t)loads->n_runs, 0,
		     &windows);
	loads->uneven_nbytes =
		least_of(loads->n_merged * windows.resident_stride, n_items) * item_nbytes;
	loads->items_nbytes = of_others(n_items * item_nbytes, loads->n_ranks);
	loads->n_messages = of_others(loads->n_merged, loads->n_ranks);
	loads->message_nbytes = loads->n_messages ? loads->items_nbytes / loads->n_messages : 0;
	find_cut(plan, n_items, loads);
	loads->received_nbytes = loads->items_nbytes + loads->cut_nbytes;
}

static bool find_whether_trades(const struct plan *plan, const struct plan_request *request)
{
	const struct layout *layout = request->layout;
	const enum compression_mode mode = request->compression.mode;

	return plan->fits && !plan->copies && !request->keeps_index &&
	       (mode == COMPRESS_AUTO || mode == COMPRESS_NONE) &&
	       layout->resident_nbytes <= layout->item_nbytes &&
	       plan->n_chunks * request->n_ranks <= PLAN_MOST_TRADED_RUNS;
}

static void find_phases(struct rank_loads *loads)
{
	uint64_t *form = loads->nbytes[RANK_FORM], *merge = loads->nbytes[RANK_MERGE];
	const uint64_t stored_nbytes = loads->spilled_nbytes + loads->kept_nbytes;

	/* It is merged to runs of chunks, too, but that goes on beside the next being sorted. */
	form[RANK_DISK] = loads->read_nbytes + loads->spilled_nbytes;
	form[RANK_PROCESSORS] = loads->read_nbytes;
	merge[RANK_DISK] = loads->spilled_nbytes + 2 * loads->passes_nbytes + loads->written_nbytes;
	merge[RANK_NETWORK] = loads->received_nbytes;
	merge[RANK_MESSAGES] = loads->n_messages;
	merge[RANK_PROCESSORS] = loads->passes_nbytes + stored_nbytes;
	loads->disk_nbytes = form[RANK_DISK] + merge[RANK_DISK];
}

static void set_limit(struct rank_loads *loads, enum rank_limit which, uint64_t is, uint64_t limit)
{
	loads->limits[which] = (struct rank_limit_state){
		.is = is,
		.limit = limit,
		.part = limit ? (double)is / (double)limit : is > 0,
	};
}

/*
 * Runs that could be merged at once: blocks are as long as there is room for, and may be shorter,
 * down to a page, or until their index takes more than its usual part of the memory.
 */
static uint64_t most_merged(const struct plan *plan)
{
	const uint64_t index_nbytes = plan->full_index_nbytes ? plan->full_index_nbytes : 1;
	const double shorter = (double)plan->block_nbytes / LEAST_BLOCK_NBYTES,
		     more = (double)(plan->memory_nbytes / USUAL_INDEX_PART) / (double)index_nbytes;
	const double times = shorter < more ? shorter : more;

	return times > 1 ? (uint64_t)(times * plan->fan_in) : plan->fan_in;
}

static void find_limits(const struct plan *plan, const struct rank_rates *rates,
			struct rank_loads *loads)
{
	const uint64_t range_nbytes = loads->spilled_nbytes + loads->kept_nbytes;
	const double disk_s = rank_link_s(loads, rates, RANK_MERGE, RANK_DISK),
		     network_s = rank_link_s(loads, rates, RANK_MERGE, RANK_NETWORK);
	const double bytes_s = disk_s > network_s ? disk_s : network_s;

	set_limit(loads, RANK_FAN_IN, loads->n_merged,
		  loads->trades ? PLAN_MOST_TRADED_RUNS : most_merged(plan));
	set_limit(loads, RANK_INDEX, plan->full_index_nbytes,
		  plan->memory_nbytes / INDEX_PART + PLAN_BESIDE_NBYTES / 2);
	set_limit(loads, RANK_UNEVEN, loads->uneven_nbytes, range_nbytes / MOST_UNEVEN_PART);
	set_limit(loads, RANK_OVERHEAD, loads->received_nbytes - loads->items_nbytes,
		  loads->items_nbytes / MOST_OVERHEAD_PART);
	set_limit(loads, RANK_WAITING, loads->n_messages,
		  (uint64_t)(bytes_s * (double)rates->per_s[RANK_MESSAGES]));
}

void rank_loads_find(const struct plan *plan, const struct plan_request *request,
		     const struct rank_rates *rates, struct rank_loads *ret_loads)
{
	const struct layout *layout = request->layout;
	const uint64_t n = request->input_nbytes / layout->record_nbytes;
	const uint64_t n_items = (plan->spilled_nbytes + plan->kept_nbytes) / layout->item_nbytes;
	struct rank_loads *loads = ret_loads;

	*loads = (struct rank_loads){ .n_ranks = request->n_ranks ? request->n_ranks : 1 };
	loads->read_nbytes = request->input_nbytes;
	loads->n_output_records = request->limit ? least_of(n, request->limit) : n;
	loads->written_nbytes = loads->n_output_records * layout->output_nbytes;
	loads->spilled_nbytes = plan->spilled_nbytes;
	loads->kept_nbytes = plan->kept_nbytes;
	loads->passes_nbytes = plan->passes_nbytes;
	loads->n_runs = plan->n_spilled_runs + (request->n_ranks > 1);
	loads->trades = request->n_ranks > 1 && find_whether_trades(plan, request);
	if (loads->trades)
		loads->n_runs = plan->n_chunks;
	loads->n_merged = loads->n_runs * loads->n_ranks;
	if (loads->trades) {
		find_trade(plan, request, n_items, loads);
	} else if (loads->n_merged && n_items) {
		find_wire(plan, request, n_items, loads);
		find_messages(plan, request, n_items, loads);
	}
	find_phases(loads);
	find_limits(plan, rates, loads);
}

double rank_link_s(const struct rank_loads *loads, const struct rank_rates *rates,
		   enum rank_phase phase, enum rank_link link)
{
	const uint64_t per_s = rates->per_s[link];

	return per_s ? (double)loads->nbytes[phase][link] / (double)per_s : 0;
}

double rank_phase_s(const struct rank_loads *loads, const struct rank_rates *rates,
		    enum rank_phase phase, enum rank_link *ret_slowest)
{
	double longest_s = 0;

	*ret_slowest = RANK_DISK;
	for (enum rank_link link = 0; link < N_RANK_LINKS; link++) {
		const double s = rank_link_s(loads, rates, phase, link);

		if (s > longest_s) {
			longest_s = s;
			*ret_slowest = link;
		}
	}
	return longest_s;
}

enum rank_limit rank_nearest_limit(const struct rank_loads *loads)
{
	enum rank_limit nearest = 0;

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
		if (loads->limits[i].part > loads->limits[nearest].part)
			nearest = i;
	return nearest;
}
