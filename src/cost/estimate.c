/*
 * estimate.c - what a planned sort moves over each link, and how long that takes (see estimate.h)
 */
#include "src/cost/estimate.h"

#include <math.h>

#include "io/spill/run_file.h"
#include "src/base/int_math.h"
#include "src/base/stats.h"

/* Return the quotient rounded up, or 0 if the divisor is 0. */
static uint64_t ceil_div(uint64_t value, uint64_t divisor)
{
	return divisor ? divide_up(value, divisor) : 0;
}

/* --- estimates --- */

double link_estimate_s(const struct link_estimate *link)
{
	return link->amount && link->per_s > 0 ? (double)link->amount / link->per_s : 0;
}

double phase_estimate_s(const struct phase_estimate *phase,
			const struct link_estimate **ret_bottleneck)
{
	double sum_s = 0, longest_s = 0;

	*ret_bottleneck = NULL;
	for (uint32_t i = 0; i < phase->n_links; i++) {
		const double s = link_estimate_s(&phase->links[i]);

		sum_s += s * phase->links[i].cpu_fraction;
		if (s > longest_s) {
			longest_s = s;
			*ret_bottleneck = &phase->links[i];
		}
	}
	return sum_s > longest_s ? sum_s : longest_s;
}

double estimate_s(const struct estimate *estimate)
{
	const struct link_estimate *bottleneck;
	double s = 0;

	for (uint32_t i = 0; i < estimate->n_phases; i++)
		s += phase_estimate_s(&estimate->phases[i], &bottleneck);
	return s;
}

bool estimate_is_complete(const struct estimate *estimate)
{
	for (uint32_t i = 0; i < estimate->n_phases; i++)
		for (uint32_t j = 0; j < estimate->phases[i].n_links; j++) {
			const struct link_estimate *link = &estimate->phases[i].links[j];

			if (link->amount && link->per_s <= 0)
				return false;
		}
	return true;
}

/* --- one process --- */

/* Count what a merge moves to the device and back if it has memory of its own. */
static void add_merge(const struct plan *plan, uint64_t fetched_nbytes, uint64_t merged_nbytes,
		      uint64_t nbytes[static N_STAGES])
{
	nbytes[STAGE_FETCH] += fetched_nbytes;
	nbytes[STAGE_MERGE] += merged_nbytes;
	if (plan->copies_to_device) {
		nbytes[STAGE_UPLOAD] += fetched_nbytes;
		nbytes[STAGE_DOWNLOAD] += merged_nbytes;
	}
}

uint64_t estimate_sorted_nbytes(const struct layout *layout)
{
	return layout_has_elements(layout) ? layout->element_nbytes : layout->record_nbytes;
}

uint64_t estimate_merged_nbytes(const struct layout *layout)
{
	return layout_has_elements(layout) ? layout->element_nbytes : layout->item_nbytes;
}

/* Return how many of n records are in sorted chunks, each of which is cut at the limit. */
static uint64_t limit_chunk_records(const struct plan *plan, uint64_t limit, uint64_t n)
{
	const uint64_t chunk = plan->chunk_records;

	if (!limit || limit >= chunk)
		return n;
	return n / chunk * limit + u64_min(n % chunk, limit);
}

/*
 * Return the bytes that a merge of n_records counts. With -u, elements are scanned once more for
 * equal ones, and so are sorted inputs, which may have equal neighbours.
 */
static uint64_t merge_work_nbytes(const struct plan_request *request, uint64_t n_records)
{
	const bool compares_twice = request->unique &&
				    (layout_has_elements(request->layout) || request->n_input_runs);

	return n_records * estimate_merged_nbytes(request->layout) * (compares_twice ? 2 : 1);
}

/* Count a spill. Encoded keys that are stored as records are decoded for it, and encoded again. */
static void add_spill(const struct plan *plan, const struct layout *layout, uint64_t stored_nbytes,
		      uint64_t nbytes[static N_STAGES])
{
	nbytes[STAGE_SPILL] += stored_nbytes;
	if (plan->sorts_on_cpu && layout_is_key_only(layout) && !layout->stores_elements)
		nbytes[STAGE_DECODE] += stored_nbytes;
}

static void add_run_generation(const struct plan *plan, const struct plan_request *request,
			       uint64_t n, uint64_t encoded_nbytes,
			       uint64_t nbytes[static N_STAGES])
{
	const struct layout *layout = request->layout;
	const uint64_t stored_nbytes = plan->spilled_nbytes + plan->spilled_to_memory_nbytes;
	const uint64_t n_merged = limit_chunk_records(plan, request->limit, plan->n_stored_records);

	nbytes[STAGE_READ] = plan->expected_nbytes;
	nbytes[STAGE_ENCODE] = encoded_nbytes;
	nbytes[STAGE_SORT] = n * estimate_sorted_nbytes(layout);
	nbytes[STAGE_UPLOAD] = plan->copies_to_device ? plan->expected_nbytes : 0;
	add_merge(plan, 0, merge_work_nbytes(request, n_merged), nbytes);
	if (request->unique && layout_has_elements(layout)) /* in each chunk */
		nbytes[STAGE_MERGE] += n * estimate_merged_nbytes(layout);
	add_spill(plan, layout, stored_nbytes, nbytes);
}

/* Of n records: stored runs, inputs that are merged, and chunks in memory. */
static void add_final_merge(const struct plan *plan, const struct plan_request *request, uint64_t n,
			    uint64_t encoded_nbytes, uint64_t nbytes[static N_STAGES])
{
	const struct layout *layout = request->layout;
	const uint64_t n_unstored = n - u64_min(plan->n_stored_records, n);
	const uint64_t n_stored = plan->final_merge_stored_nbytes / layout->item_nbytes;
	const uint64_t n_resident = plan->n_chunks && !plan->count_pass_nbytes ?
					    limit_chunk_records(plan, request->limit, n_unstored) :
					    0;
	const uint64_t n_written = request->limit ? u64_min(n, request->limit) : n;

	add_merge(plan, plan->final_merge_stored_nbytes,
		  merge_work_nbytes(request, n_stored + n_resident), nbytes);
	nbytes[STAGE_DECODE] = encoded_nbytes;
	nbytes[STAGE_WRITE] = n_written * layout->output_nbytes;
}

void estimate_volumes(const struct plan *plan, const struct plan_request *request,
		      struct stage_volumes *ret_volumes)
{
	const struct layout *layout = request->layout;
	const uint64_t n = plan->expected_nbytes / layout->record_nbytes;
	/*
	 * The CPU encodes records as elements and decodes them; on a device with its own memory
	 * this is free.
	 */
	const bool encodes = plan->sorts_on_cpu && layout_has_elements(layout);
	const uint64_t encoded_nbytes = encodes ? plan->expected_nbytes : 0;
	uint64_t(*nbytes)[N_STAGES] = ret_volumes->nbytes;

	*ret_volumes = (struct stage_volumes){ 0 };
	if (plan->n_chunks)
		add_run_generation(plan, request, n, encoded_nbytes, nbytes[PHASE_RUN_GENERATION]);
	/* -m first stores inputs that are pipes, as they are. */
	if (!plan->n_chunks && plan->spilled_nbytes) {
		nbytes[PHASE_RUN_GENERATION][STAGE_READ] = plan->expected_nbytes;
		nbytes[PHASE_RUN_GENERATION][STAGE_SPILL] = plan->spilled_nbytes;
	}
	if (plan->n_passes > 1) {
		add_merge(plan, plan->merge_pass_input_nbytes,
			  merge_work_nbytes(request,
					    plan->merge_pass_input_nbytes / layout->item_nbytes),
			  nbytes[PHASE_MERGE_PASSES]);
		add_spill(plan, layout, plan->merge_pass_nbytes, nbytes[PHASE_MERGE_PASSES]);
	}
	add_final_merge(plan, request, n, encoded_nbytes, nbytes[PHASE_FINAL_MERGE]);
}

/* Return the share of the CPUs that a stage occupies while it runs alone. */
static double cpu_fraction(const struct plan *plan, enum stage stage)
{
	const uint32_t n_threads = stage == STAGE_READ                          ? plan->n_readers :
				   stage == STAGE_SPILL || stage == STAGE_WRITE ? plan->n_writers :
				   stage == STAGE_FETCH                         ? 1 :
										  plan->n_queues;

	return n_threads < plan->n_queues ? (double)n_threads / plan->n_queues : 1;
}

/*
 * Return the rate of a stage in a phase. Only one of several devices merges the output if there is
 * only one partition.
 */
static double stage_rate(const struct plan *plan, const struct stage_rates *rates, enum phase phase,
			 enum stage stage)
{
	const bool is_device_stage = stage == STAGE_UPLOAD || stage == STAGE_MERGE ||
				     stage == STAGE_DECODE || stage == STAGE_DOWNLOAD;
	const bool uses_one_device = phase == PHASE_FINAL_MERGE && plan->n_partitions <= 1 &&
				     is_device_stage;

	return rates->bytes_per_s[stage] /
	       (uses_one_device && rates->n_devices ? rates->n_devices : 1);
}

void estimate_make(const struct plan *plan, const struct stage_volumes *volumes,
		   const struct stage_rates *rates, struct estimate *ret_estimate)
{
	struct estimate estimate = { 0 };

	for (enum phase i = 0; i < N_PHASES; i++) {
		struct phase_estimate *phase = &estimate.phases[estimate.n_phases];

		*phase = (struct phase_estimate){ .phase = i };
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (volumes->nbytes[i][stage])
				phase->links[phase->n_links++] = (struct link_estimate){
					.name = stage_name(stage),
					.amount = volumes->nbytes[i][stage],
					.per_s = stage_rate(plan, rates, i, stage),
					.cpu_fraction =
						plan->sorts_on_cpu ? cpu_fraction(plan, stage) : 0,
				};
		estimate.n_phases += phase->n_links > 0;
	}
	*ret_estimate = estimate;
}

/* --- a distributed sort --- */

enum {
	MAX_IMBALANCE_DIVISOR = 100, /* a partition is at most 1/100 larger than the mean */
	MAX_OVERHEAD_DIVISOR = 50,   /* overhead is at most 1/50 of the received items */
	SPLITTER_DRAW_NBYTES = 48,   /* sent for each draw of a splitter (cuts.c) */
	SPLITTER_RANK_NBYTES = 8,    /* the rest of a draw */
	SPLITTER_MAX_DRAWS = 16,     /* draws of a splitter in each round, and of all splitters: */
	SPLITTER_MAX_TOTAL_DRAWS = 1024,
};

static const struct {
	const char *name;
	uint64_t assumed_per_s;
} rank_resources[N_RANK_RESOURCES] = {
	[RANK_DISK] = { "disk", UINT64_C(2000000000) },
	[RANK_NETWORK] = { "network", UINT64_C(3125000000) }, /* 25 Gbit/s */
	/* Two threads serve requests, and each waits up to half a millisecond for the network. */
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

/* Return the portion of an amount that comes from other ranks, if all have equal portions. */
static uint64_t remote_portion(uint64_t value, uint32_t n_ranks)
{
	return equal_share_begin(value, n_ranks - 1, n_ranks);
}

/* Return the items of a stored block. */
static uint64_t items_per_block(const struct plan *plan)
{
	return run_file_block_n_items(plan->block_nbytes, (uint32_t)plan->resident_nbytes);
}

/*
 * Estimate messages of a merge. Windows take blocks in the order of their first keys, as many as
 * they have room for. Neighbouring blocks of a run come in one message, or in several groups.
 */
static void estimate_messages(const struct plan *plan, const struct plan_request *request,
			      uint64_t n_items, struct cluster_estimate *cluster)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t block = items_per_block(plan),
		       n_inputs = u64_min(cluster->n_merged_runs, plan->fan_in);
	uint64_t memory_nbytes = plan->final_merge_nbytes, message_items, n;
	struct window_plan windows;
	struct plan partition_plan;

	n = plan_partitions(plan, request, memory_nbytes, n_items, 0, (uint32_t)n_inputs,
			    plan->n_partitions, &partition_plan);
	plan_windows(&partition_plan, request, n == 1 ? memory_nbytes : partition_plan.merge_nbytes,
		     n_items / n, 0, (uint32_t)n_inputs, &windows);
	/* From each run that has a block in a window. */
	message_items = ceil_div(windows.quota_records,
				 u64_min(n_inputs, windows.quota_records / block + 1));
	message_items = message_items < block ? block : message_items;
	cluster->message_nbytes =
		u64_min(message_items * item_nbytes, BLOCK_GROUP_NBYTES / block * block + block);
	cluster->n_messages = ceil_div(cluster->items_nbytes, cluster->message_nbytes);
}

static uint32_t log2_up(uint64_t n)
{
	uint32_t bits = 0;

	while (bits < 63 && UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

/*
 * Estimate the search for splitters. Of d random draws the two nearest to a splitter enclose 2 of d
 * + 2 intervals on average. With many splitters the unluckiest counts, and the last round finds
 * nothing. Both collectives of a round pass a tree of ranks twice.
 */
static void estimate_splitter_search(const struct plan *plan, uint64_t n_items,
				     struct cluster_estimate *cluster)
{
	const uint64_t n_blocks = ceil_div(n_items, items_per_block(plan)) + cluster->n_runs;
	const uint32_t n_ranks = cluster->n_ranks;
	const uint32_t n_splitters = n_ranks - 1;
	uint32_t n_draws;
	double n_rounds;

	cluster->splitter_rounds = 0;
	cluster->splitter_nbytes = 0;
	if (n_splitters == 0)
		return;
	n_draws = (uint32_t)u64_min(SPLITTER_MAX_TOTAL_DRAWS / n_splitters, SPLITTER_MAX_DRAWS);
	n_draws += n_draws == 0;
	n_rounds = 1.3 * (log2_up(n_blocks) + log2_up(n_ranks)) / log2((n_draws + 2) / 2.0);
	cluster->splitter_rounds = (uint32_t)ceil(n_rounds) + 1;
	cluster->splitter_nbytes = (uint64_t)cluster->splitter_rounds * 2 *
				   (SPLITTER_DRAW_NBYTES + SPLITTER_RANK_NBYTES) * n_draws *
				   n_splitters;
}

static void estimate_remote_runs(const struct plan *plan, const struct plan_request *request,
				 uint64_t n_items, struct cluster_estimate *cluster)
{
	const uint32_t n_ranks = cluster->n_ranks;
	const uint64_t item_nbytes = request->layout->item_nbytes;
	const uint64_t n_blocks = ceil_div(n_items, items_per_block(plan)) + cluster->n_merged_runs;

	cluster->max_imbalance_nbytes =
		u64_min(cluster->n_merged_runs * items_per_block(plan), n_items) * item_nbytes;
	cluster->items_nbytes = remote_portion(n_items * item_nbytes, n_ranks);
	/* At both ends of its partition a rank reads the whole block, of each run. */
	cluster->boundary_nbytes = remote_portion(
		cluster->n_merged_runs * items_per_block(plan) * item_nbytes, n_ranks);
	cluster->index_nbytes = remote_portion(n_blocks * sizeof(struct run_block), n_ranks);
	estimate_splitter_search(plan, n_items, cluster);
	cluster->received_nbytes = cluster->items_nbytes + cluster->boundary_nbytes +
				   cluster->index_nbytes + cluster->splitter_nbytes;
}

/*
 * Estimate the exchange of runs in memory. They are sampled and cut exactly; a piece of a run is
 * one message, or several if it is long.
 */
static void estimate_all_to_all(const struct plan *plan, const struct plan_request *request,
				uint64_t n_items, struct cluster_estimate *cluster)
{
	const uint64_t item_nbytes = request->layout->item_nbytes;
	struct window_plan windows;

	plan_windows(plan, request, plan->merge_nbytes, n_items, (uint32_t)cluster->n_runs, 0,
		     &windows);
	cluster->max_imbalance_nbytes =
		u64_min(cluster->n_merged_runs * windows.resident_stride, n_items) * item_nbytes;
	cluster->items_nbytes = remote_portion(n_items * item_nbytes, cluster->n_ranks);
	cluster->n_messages = remote_portion(cluster->n_merged_runs, cluster->n_ranks);
	cluster->message_nbytes =
		cluster->n_messages ? cluster->items_nbytes / cluster->n_messages : 0;
	estimate_splitter_search(plan, n_items, cluster);
	cluster->received_nbytes = cluster->items_nbytes + cluster->splitter_nbytes;
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

static void add_rank_phase(struct estimate *estimate, enum phase id, const struct rank_rates *rates,
			   const uint64_t amounts[static N_RANK_RESOURCES])
{
	struct phase_estimate *phase = &estimate->phases[estimate->n_phases++];

	*phase = (struct phase_estimate){ .phase = id, .n_links = N_RANK_RESOURCES };
	for (enum rank_resource i = 0; i < N_RANK_RESOURCES; i++)
		phase->links[i] = (struct link_estimate){
			.name = rank_resource_name(i),
			.amount = amounts[i],
			.is_messages = i == RANK_MESSAGES,
			.per_s = (double)rates->per_s[i],
			.user_supplied = rates->user_supplied[i],
		};
}

/*
 * Run generation also merges chunks to runs, but concurrently with sorting the next chunks. The
 * final merge includes merge passes.
 */
static void add_rank_phases(struct cluster_estimate *cluster, const struct rank_rates *rates,
			    struct estimate *estimate)
{
	const uint64_t stored_nbytes = cluster->spilled_nbytes + cluster->spilled_to_memory_nbytes;
	const uint64_t run_generation[N_RANK_RESOURCES] = {
		[RANK_DISK] = cluster->read_nbytes + cluster->spilled_nbytes,
		[RANK_PROCESSORS] = cluster->read_nbytes,
	};
	const uint64_t final_merge[N_RANK_RESOURCES] = {
		[RANK_DISK] = cluster->spilled_nbytes + 2 * cluster->merge_pass_nbytes +
			      cluster->written_nbytes,
		[RANK_NETWORK] = cluster->received_nbytes,
		[RANK_MESSAGES] = cluster->n_messages,
		[RANK_PROCESSORS] = cluster->merge_pass_nbytes + stored_nbytes,
	};

	*estimate = (struct estimate){ 0 };
	add_rank_phase(estimate, PHASE_RUN_GENERATION, rates, run_generation);
	add_rank_phase(estimate, PHASE_FINAL_MERGE, rates, final_merge);
	cluster->disk_nbytes = run_generation[RANK_DISK] + final_merge[RANK_DISK];
}

static void set_rank_limit(struct cluster_estimate *cluster, enum rank_limit kind, uint64_t value,
			   uint64_t limit)
{
	cluster->limits[kind] = (struct rank_limit_state){
		.value = value,
		.limit = limit,
		.ratio = limit ? (double)value / (double)limit : value > 0,
	};
}

/*
 * Return how many runs can be merged at once. Blocks could be shorter than planned: down to a page,
 * or until their index takes more than its usual share of the memory.
 */
static uint64_t max_merged_runs(const struct plan *plan)
{
	const uint64_t index_nbytes = plan->required_index_nbytes ? plan->required_index_nbytes : 1;
	const double block_factor = (double)plan->block_nbytes / PLAN_MIN_BLOCK_NBYTES,
		     index_factor = (double)(plan->memory_nbytes / PLAN_DEFAULT_INDEX_DIVISOR) /
				    (double)index_nbytes;
	const double factor = block_factor < index_factor ? block_factor : index_factor;

	return factor > 1 ? (uint64_t)(factor * plan->fan_in) : plan->fan_in;
}

static void estimate_limits(const struct plan *plan, const struct estimate *estimate,
			    struct cluster_estimate *cluster)
{
	const uint64_t partition_nbytes =
		cluster->spilled_nbytes + cluster->spilled_to_memory_nbytes;
	const struct link_estimate *links = estimate->phases[estimate->n_phases - 1].links;
	const double disk_s = link_estimate_s(&links[RANK_DISK]),
		     network_s = link_estimate_s(&links[RANK_NETWORK]);
	const double bytes_s = disk_s > network_s ? disk_s : network_s;

	set_rank_limit(cluster, RANK_FAN_IN, cluster->n_merged_runs,
		       cluster->in_memory_exchange ? PLAN_MAX_ALL_TO_ALL_RUNS :
						     max_merged_runs(plan));
	set_rank_limit(cluster, RANK_INDEX, plan->required_index_nbytes,
		       plan_max_index_nbytes(plan));
	set_rank_limit(cluster, RANK_IMBALANCE, cluster->max_imbalance_nbytes,
		       partition_nbytes / MAX_IMBALANCE_DIVISOR);
	set_rank_limit(cluster, RANK_OVERHEAD, cluster->received_nbytes - cluster->items_nbytes,
		       cluster->items_nbytes / MAX_OVERHEAD_DIVISOR);
	set_rank_limit(cluster, RANK_MESSAGE_RATE, cluster->n_messages,
		       (uint64_t)(bytes_s * links[RANK_MESSAGES].per_s));
}

void cluster_estimate_make(const struct plan *plan, const struct plan_request *request,
			   const struct rank_rates *rates, struct estimate *ret_estimate,
			   struct cluster_estimate *ret_cluster)
{
	const struct layout *layout = request->layout;
	const uint64_t n = request->input_nbytes / layout->record_nbytes;
	const uint64_t n_items =
		(plan->spilled_nbytes + plan->spilled_to_memory_nbytes) / layout->item_nbytes;
	struct cluster_estimate *cluster = ret_cluster;

	*cluster = (struct cluster_estimate){ .n_ranks = request->n_ranks ? request->n_ranks : 1 };
	cluster->read_nbytes = request->input_nbytes;
	cluster->n_output_records = request->limit ? u64_min(n, request->limit) : n;
	cluster->written_nbytes = cluster->n_output_records * layout->output_nbytes;
	cluster->spilled_nbytes = plan->spilled_nbytes;
	cluster->spilled_to_memory_nbytes = plan->spilled_to_memory_nbytes;
	cluster->merge_pass_nbytes = plan->merge_pass_nbytes;
	cluster->n_runs = plan->n_spilled_runs + (request->n_ranks > 1);
	cluster->in_memory_exchange = request->n_ranks > 1 &&
				      fits_in_memory_exchange(plan, request);
	if (cluster->in_memory_exchange)
		cluster->n_runs = plan->n_chunks;
	cluster->n_merged_runs = cluster->n_runs * cluster->n_ranks;
	if (cluster->in_memory_exchange) {
		estimate_all_to_all(plan, request, n_items, cluster);
	} else if (cluster->n_merged_runs && n_items) {
		estimate_remote_runs(plan, request, n_items, cluster);
		estimate_messages(plan, request, n_items, cluster);
	}
	add_rank_phases(cluster, rates, ret_estimate);
	estimate_limits(plan, ret_estimate, cluster);
}

enum rank_limit rank_limiting_factor(const struct cluster_estimate *cluster)
{
	enum rank_limit nearest = 0;

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
		if (cluster->limits[i].ratio > cluster->limits[nearest].ratio)
			nearest = i;
	return nearest;
}
