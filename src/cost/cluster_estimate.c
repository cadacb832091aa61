/*
 * cluster_estimate - what each of several ranks moves, how long that takes, and which limit is near
 * (see cluster_estimate.h)
 */
#include "src/cost/cluster_estimate.h"

#include <math.h>

#include "io/spill/run_file.h"

enum {
	INDEX_DIVISOR = 4, /* of the memory, which the index of runs has at most (plan.h), */
	DEFAULT_INDEX_DIVISOR = 8, /* and without need */
	MIN_BLOCK_NBYTES = 4 << 10,
	MAX_IMBALANCE_DIVISOR = 100, /* of a range, by which it may be longer than others */
	MAX_OVERHEAD_DIVISOR = 50,   /* of what comes that are items: the rest */
	SPLITTER_DRAW_NBYTES =
		48, /* of a draw for a splitter (global_splitters.c): what is drawn, */
	SPLITTER_RANK_NBYTES = 8, /* and what is before it; in a round of each splitter so many, */
	SPLITTER_MAX_DRAWS = 16,  /* and of all splitters */
	SPLITTER_MAX_TOTAL_DRAWS = 1024,
};

static const struct {
	const char *name;
	uint64_t assumed_per_s;
} rank_resources[N_RANK_RESOURCES] = {
	[RANK_DISK] = { "disk", UINT64_C(2000000000) },
	[RANK_NETWORK] = { "network", UINT64_C(3125000000) }, /* 25 Gbit/s */
	/* Two threads answer, of which each waits for the network half a millisecond at most. */
	[RANK_MESSAGES] = { "messages", 4000 },
	[RANK_PROCESSORS] = { "processors", 0 },
};

const char *rank_resource_name(enum rank_resource resource)
{
	return rank_resources[resource].name;
}

void rank_rates_set_defaults(struct rank_rates *rates)
{
	for (enum rank_resource resource = 0; resource < N_RANK_RESOURCES; resource++) {
		rates->user_supplied[resource] = rates->per_s[resource] > 0;
		if (!rates->user_supplied[resource])
			rates->per_s[resource] = rank_resources[resource].assumed_per_s;
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
		[RANK_FAN_IN] = "runs",           [RANK_INDEX] = "index",
		[RANK_IMBALANCE] = "imbalance",   [RANK_OVERHEAD] = "overhead",
		[RANK_MESSAGE_RATE] = "messages",
	};

	return names[limit];
}

bool rank_rates_is_complete(const struct rank_rates *rates)
{
	for (enum rank_resource resource = 0; resource < N_RANK_RESOURCES; resource++)
		if (rates->per_s[resource] == 0)
			return false;
	return true;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t ceil_div(uint64_t value, uint64_t divisor)
{
	return divisor ? value / divisor + (value % divisor != 0) : 0;
}

/* Of a value that all ranks have, what comes from others. */
static uint64_t remote_portion(uint64_t value, uint32_t n_ranks)
{
	return (uint64_t)((uint128_t)value * (n_ranks - 1) / n_ranks);
}

/* A block as it is stored. */
static uint64_t items_per_block(const struct plan *plan)
{
	return run_file_block_n_items(plan->block_nbytes, (uint32_t)plan->resident_nbytes);
}

/*
 * Windows take blocks in the order of their first keys, as many as they have room for; what they
 * take of one run are neighbours, and come in one message, or in groups of these if they are long.
 */
static void estimate_messages(const struct plan *plan, const struct plan_request *request,
			      uint64_t n_items, struct cluster_estimate *estimate)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t block = items_per_block(plan),
		       n_inputs = min_of(estimate->n_merged_runs, plan->fan_in);
	uint64_t memory_nbytes = plan->final_merge_nbytes, message_items, n;
	struct window_plan windows;
	struct plan partition_plan;

	n = plan_partitions(plan, request, memory_nbytes, n_items, 0, (uint32_t)n_inputs,
			    plan->n_partitions, &partition_plan);
	plan_windows(&partition_plan, request, n == 1 ? memory_nbytes : partition_plan.merge_nbytes,
		     n_items / n, 0, (uint32_t)n_inputs, &windows);
	/* Of each run that has a block in a window. */
	message_items = ceil_div(windows.quota_records,
				 min_of(n_inputs, windows.quota_records / block + 1));
	message_items = message_items < block ? block : message_items;
	estimate->message_nbytes =
		min_of(message_items * item_nbytes, BLOCK_GROUP_NBYTES / block * block + block);
	estimate->n_messages = ceil_div(estimate->items_nbytes, estimate->message_nbytes);
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
static void estimate_splitter_search(const struct plan *plan, uint64_t n_items,
				     struct cluster_estimate *estimate)
{
	const uint64_t n_blocks = ceil_div(n_items, items_per_block(plan)) + estimate->n_runs;
	const uint32_t n_ranks = estimate->n_ranks;
	const uint32_t n_splitters = n_ranks - 1;
	uint32_t n_draws;
	double n_rounds;

	estimate->splitter_rounds = 0;
	estimate->splitter_nbytes = 0;
	if (n_splitters == 0)
		return;
	n_draws = (uint32_t)min_of(SPLITTER_MAX_TOTAL_DRAWS / n_splitters, SPLITTER_MAX_DRAWS);
	n_draws += n_draws == 0;
	n_rounds = 1.3 * (log2_up(n_blocks) + log2_up(n_ranks)) / log2((n_draws + 2) / 2.0);
	estimate->splitter_rounds = (uint32_t)ceil(n_rounds) + 1;
	estimate->splitter_nbytes = (uint64_t)estimate->splitter_rounds * 2 *
				    (SPLITTER_DRAW_NBYTES + SPLITTER_RANK_NBYTES) * n_draws *
				    n_splitters;
}

static void estimate_remote_runs(const struct plan *plan, const struct plan_request *request,
				 uint64_t n_items, struct cluster_estimate *estimate)
{
	const uint32_t n_ranks = estimate->n_ranks;
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t n_blocks =
		ceil_div(n_items, items_per_block(plan)) + estimate->n_merged_runs;

	estimate->max_imbalance_nbytes =
		min_of(estimate->n_merged_runs * items_per_block(plan), n_items) * item_nbytes;
	estimate->items_nbytes = remote_portion(n_items * item_nbytes, n_ranks);
	/* Where a range begins and ends it reads all of the block, of each run. */
	estimate->boundary_nbytes = remote_portion(
		estimate->n_merged_runs * items_per_block(plan) * item_nbytes, n_ranks);
	estimate->index_nbytes = remote_portion(n_blocks * sizeof(struct run_block), n_ranks);
	estimate_splitter_search(plan, n_items, estimate);
	estimate->received_nbytes = estimate->items_nbytes + estimate->boundary_nbytes +
				    estimate->index_nbytes + estimate->splitter_nbytes;
}

/* Resident runs are sampled, and cut exactly; a part of one is a message, or several if long. */
static void estimate_all_to_all(const struct plan *plan, const struct plan_request *request,
				uint64_t n_items, struct cluster_estimate *estimate)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, n_items, (uint32_t)estimate->n_runs, 0,
		     &windows);
	estimate->max_imbalance_nbytes =
		min_of(estimate->n_merged_runs * windows.resident_stride, n_items) * item_nbytes;
	estimate->items_nbytes = remote_portion(n_items * item_nbytes, estimate->n_ranks);
	estimate->n_messages = remote_portion(estimate->n_merged_runs, estimate->n_ranks);
	estimate->message_nbytes =
		estimate->n_messages ? estimate->items_nbytes / estimate->n_messages : 0;
	estimate_splitter_search(plan, n_items, estimate);
	estimate->received_nbytes = estimate->items_nbytes + estimate->splitter_nbytes;
}

static bool fits_in_memory_exchange(const struct plan *plan, const struct plan_request *request)
{
	const struct layout *layout = request->layout;
	const enum compression_mode mode = request->compression.mode;

	return plan->fits_in_memory && !plan->copies_to_device &&
	       !request->keeps_checkpoint_index &&
	       (mode == COMPRESS_AUTO || mode == COMPRESS_NONE) &&
	       layout->resident_nbytes <= layout->item_nbytes &&
	       plan->n_chunks * request->n_ranks <= PLAN_MAX_ALL_TO_ALL_RUNS;
}

static void estimate_rank_phases(struct cluster_estimate *estimate)
{
	uint64_t *run_generation = estimate->nbytes[RANK_RUN_GENERATION],
		 *final_merge = estimate->nbytes[RANK_MERGE];
	const uint64_t stored_nbytes =
		estimate->spilled_nbytes + estimate->spilled_to_memory_nbytes;

	/* It is merged to runs of chunks, too, but that goes on beside the next being sorted. */
	run_generation[RANK_DISK] = estimate->read_nbytes + estimate->spilled_nbytes;
	run_generation[RANK_PROCESSORS] = estimate->read_nbytes;
	final_merge[RANK_DISK] = estimate->spilled_nbytes + 2 * estimate->merge_pass_nbytes +
				 estimate->written_nbytes;
	final_merge[RANK_NETWORK] = estimate->received_nbytes;
	final_merge[RANK_MESSAGES] = estimate->n_messages;
	final_merge[RANK_PROCESSORS] = estimate->merge_pass_nbytes + stored_nbytes;
	estimate->disk_nbytes = run_generation[RANK_DISK] + final_merge[RANK_DISK];
}

static void set_rank_limit(struct cluster_estimate *estimate, enum rank_limit kind, uint64_t value,
			   uint64_t limit)
{
	estimate->limits[kind] = (struct rank_limit_state){
		.value = value,
		.limit = limit,
		.ratio = limit ? (double)value / (double)limit : value > 0,
	};
}

/*
 * Runs that could be merged at once: blocks are as long as there is room for, and may be shorter,
 * down to a page, or until their index takes more than its usual part of the memory.
 */
static uint64_t max_merged_runs(const struct plan *plan)
{
	const uint64_t index_nbytes = plan->required_index_nbytes ? plan->required_index_nbytes : 1;
	const double block_factor = (double)plan->block_nbytes / MIN_BLOCK_NBYTES,
		     index_factor = (double)(plan->memory_nbytes / DEFAULT_INDEX_DIVISOR) /
				    (double)index_nbytes;
	const double factor = block_factor < index_factor ? block_factor : index_factor;

	return factor > 1 ? (uint64_t)(factor * plan->fan_in) : plan->fan_in;
}

static void estimate_limits(const struct plan *plan, const struct rank_rates *rates,
			    struct cluster_estimate *estimate)
{
	const uint64_t partition_nbytes =
		estimate->spilled_nbytes + estimate->spilled_to_memory_nbytes;
	const double disk_s = rank_resource_s(estimate, rates, RANK_MERGE, RANK_DISK),
		     network_s = rank_resource_s(estimate, rates, RANK_MERGE, RANK_NETWORK);
	const double bytes_s = disk_s > network_s ? disk_s : network_s;

	set_rank_limit(estimate, RANK_FAN_IN, estimate->n_merged_runs,
		       estimate->in_memory_exchange ? PLAN_MAX_ALL_TO_ALL_RUNS :
						      max_merged_runs(plan));
	set_rank_limit(estimate, RANK_INDEX, plan->required_index_nbytes,
		       plan->memory_nbytes / INDEX_DIVISOR + PLAN_OVERHEAD_NBYTES / 2);
	set_rank_limit(estimate, RANK_IMBALANCE, estimate->max_imbalance_nbytes,
		       partition_nbytes / MAX_IMBALANCE_DIVISOR);
	set_rank_limit(estimate, RANK_OVERHEAD, estimate->received_nbytes - estimate->items_nbytes,
		       estimate->items_nbytes / MAX_OVERHEAD_DIVISOR);
	set_rank_limit(estimate, RANK_MESSAGE_RATE, estimate->n_messages,
		       (uint64_t)(bytes_s * (double)rates->per_s[RANK_MESSAGES]));
}

void cluster_estimate_make(const struct plan *plan, const struct plan_request *request,
			   const struct rank_rates *rates, struct cluster_estimate *ret_estimate)
{
	const struct layout *layout = request->layout;
	const uint64_t n = request->input_nbytes / layout->record_nbytes;
	const uint64_t n_items =
		(plan->spilled_nbytes + plan->spilled_to_memory_nbytes) / layout->item_nbytes;
	struct cluster_estimate *estimate = ret_estimate;

	*estimate = (struct cluster_estimate){ .n_ranks = request->n_ranks ? request->n_ranks : 1 };
	estimate->read_nbytes = request->input_nbytes;
	estimate->n_output_records = request->limit ? min_of(n, request->limit) : n;
	estimate->written_nbytes = estimate->n_output_records * layout->output_nbytes;
	estimate->spilled_nbytes = plan->spilled_nbytes;
	estimate->spilled_to_memory_nbytes = plan->spilled_to_memory_nbytes;
	estimate->merge_pass_nbytes = plan->merge_pass_nbytes;
	estimate->n_runs = plan->n_spilled_runs + (request->n_ranks > 1);
	estimate->in_memory_exchange = request->n_ranks > 1 &&
				       fits_in_memory_exchange(plan, request);
	if (estimate->in_memory_exchange)
		estimate->n_runs = plan->n_chunks;
	estimate->n_merged_runs = estimate->n_runs * estimate->n_ranks;
	if (estimate->in_memory_exchange) {
		estimate_all_to_all(plan, request, n_items, estimate);
	} else if (estimate->n_merged_runs && n_items) {
		estimate_remote_runs(plan, request, n_items, estimate);
		estimate_messages(plan, request, n_items, estimate);
	}
	estimate_rank_phases(estimate);
	estimate_limits(plan, rates, estimate);
}

double rank_resource_s(const struct cluster_estimate *estimate, const struct rank_rates *rates,
		       enum rank_phase phase, enum rank_resource resource)
{
	const uint64_t per_s = rates->per_s[resource];

	return per_s ? (double)estimate->nbytes[phase][resource] / (double)per_s : 0;
}

double rank_phase_s(const struct cluster_estimate *estimate, const struct rank_rates *rates,
		    enum rank_phase phase, enum rank_resource *ret_slowest)
{
	double longest_s = 0;

	*ret_slowest = RANK_DISK;
	for (enum rank_resource resource = 0; resource < N_RANK_RESOURCES; resource++) {
		const double s = rank_resource_s(estimate, rates, phase, resource);

		if (s > longest_s) {
			longest_s = s;
			*ret_slowest = resource;
		}
	}
	return longest_s;
}

enum rank_limit rank_limiting_factor(const struct cluster_estimate *estimate)
{
	enum rank_limit nearest = 0;

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
		if (estimate->limits[i].ratio > estimate->limits[nearest].ratio)
			nearest = i;
	return nearest;
}
