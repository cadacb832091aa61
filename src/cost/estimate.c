/*
 * estimate - what a plan moves over each link, and how long that will take (see estimate.h)
 */
#include "src/cost/estimate.h"

/* Where a merge's bytes go on the way to the device and back, if it has memory of its own. */
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

static uint64_t u64_min(uint64_t n, uint64_t max)
{
	return n < max ? n : max;
}

/* Of n records, those that sorted chunks have: none more than the limit. */
static uint64_t limit_chunk_records(const struct plan *plan, uint64_t limit, uint64_t n)
{
	const uint64_t chunk = plan->chunk_records;

	if (!limit || limit >= chunk)
		return n;
	return n / chunk * limit + u64_min(n % chunk, limit);
}

/*
 * Of so many records that are merged, the bytes that are counted. Elements are looked through for
 * equal ones once more; so is what is read of inputs, where equal ones may be neighbours.
 */
static uint64_t merge_work_nbytes(const struct plan_request *request, uint64_t n_records)
{
	const bool compares_twice = request->unique &&
				    (layout_has_elements(request->layout) || request->n_input_runs);

	return n_records * estimate_merged_nbytes(request->layout) * (compares_twice ? 2 : 1);
}

/* Codes that are stored as records are made of them, and made again, whenever they are stored. */
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
	if (request->unique && layout_has_elements(layout)) /* of each chunk */
		nbytes[STAGE_MERGE] += n * estimate_merged_nbytes(layout);
	add_spill(plan, layout, stored_nbytes, nbytes);
}

static void add_merge_passes(const struct plan *plan, const struct plan_request *request,
			     uint64_t nbytes[static N_STAGES])
{
	const uint64_t n_merged = plan->merge_pass_input_nbytes / request->layout->item_nbytes;

	add_merge(plan, plan->merge_pass_input_nbytes, merge_work_nbytes(request, n_merged),
		  nbytes);
	add_spill(plan, request->layout, plan->merge_pass_nbytes, nbytes);
}

/* Of n records: what is stored, inputs that are merged, and what is still in chunks. */
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
	/* Records become elements, and these records; beside a device apart that is no cost. */
	const bool encodes = plan->sorts_on_cpu && layout_has_elements(layout);
	const uint64_t encoded_nbytes = encodes ? plan->expected_nbytes : 0;
	uint64_t(*nbytes)[N_STAGES] = ret_volumes->nbytes;

	*ret_volumes = (struct stage_volumes){ 0 };
	if (plan->n_chunks)
		add_run_generation(plan, request, n, encoded_nbytes, nbytes[PHASE_RUN_GENERATION]);
	/* Pipes that are merged are stored as they come. */
	if (!plan->n_chunks && plan->spilled_nbytes) {
		nbytes[PHASE_RUN_GENERATION][STAGE_READ] = plan->expected_nbytes;
		nbytes[PHASE_RUN_GENERATION][STAGE_SPILL] = plan->spilled_nbytes;
	}
	if (plan->n_passes > 1)
		add_merge_passes(plan, request, nbytes[PHASE_MERGE_PASSES]);
	add_final_merge(plan, request, n, encoded_nbytes, nbytes[PHASE_FINAL_MERGE]);
}

/* Of the processors, the part that a stage has while it runs alone. */
static double cpu_fraction(const struct plan *plan, enum stage stage)
{
	const uint32_t n_threads = stage == STAGE_READ                          ? plan->n_readers :
				   stage == STAGE_SPILL || stage == STAGE_WRITE ? plan->n_writers :
				   stage == STAGE_FETCH                         ? 1 :
										  plan->n_queues;

	return n_threads < plan->n_queues ? (double)n_threads / plan->n_queues : 1;
}

static bool is_device_stage(enum stage stage)
{
	return stage == STAGE_UPLOAD || stage == STAGE_MERGE || stage == STAGE_DECODE ||
	       stage == STAGE_DOWNLOAD;
}

double estimate_rate(const struct plan *plan, const struct stage_rates *rates, enum phase phase,
		     enum stage stage)
{
	const bool uses_one_device = phase == PHASE_FINAL_MERGE && plan->n_partitions <= 1 &&
				     is_device_stage(stage);

	return rates->bytes_per_s[stage] /
	       (uses_one_device && rates->n_devices ? rates->n_devices : 1);
}

double estimate_stage_s(uint64_t nbytes, double rate)
{
	return nbytes && rate > 0 ? (double)nbytes / rate : 0;
}

double estimate_phase_s(const struct plan *plan, const struct stage_volumes *volumes,
			const struct stage_rates *rates, enum phase phase,
			enum stage *ret_bottleneck)
{
	double sum_s = 0, longest_s = 0;

	*ret_bottleneck = N_STAGES;
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const double s = estimate_stage_s(volumes->nbytes[phase][stage],
						  estimate_rate(plan, rates, phase, stage));

		sum_s += s * cpu_fraction(plan, stage);
		if (s > longest_s) {
			longest_s = s;
			*ret_bottleneck = stage;
		}
	}
	return plan->sorts_on_cpu && sum_s > longest_s ? sum_s : longest_s;
}

double estimate_total_s(const struct plan *plan, const struct stage_volumes *volumes,
			const struct stage_rates *rates)
{
	enum stage bottleneck;
	double s = 0;

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += estimate_phase_s(plan, volumes, rates, phase, &bottleneck);
	return s;
}

bool estimate_has_phase(const struct stage_volumes *volumes, enum phase phase)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (volumes->nbytes[phase][stage])
			return true;
	return false;
}

bool estimate_is_complete(const struct stage_volumes *volumes, const struct stage_rates *rates)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (volumes->nbytes[phase][stage] && rates->bytes_per_s[stage] <= 0)
				return false;
	return true;
}
