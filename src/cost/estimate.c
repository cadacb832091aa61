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
	if (plan->copies) {
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

static uint64_t at_most(uint64_t n, uint64_t most)
{
	return n < most ? n : most;
}

/* Of n records, those that sorted chunks have: none more than the limit. */
static uint64_t in_chunks(const struct plan *plan, uint64_t limit, uint64_t n)
{
	const uint64_t chunk = plan->chunk_records;

	if (!limit || limit >= chunk)
		return n;
	return n / chunk * limit + at_most(n % chunk, limit);
}

/*
 * Of so many records that are merged, the bytes that are counted. Elements are looked through for
 * equal ones once more; so is what is read of inputs, where equal ones may be neighbours.
 */
static uint64_t merged_nbytes(const struct plan_request *request, uint64_t n_records)
{
	const bool looks_again = request->unique &&
				 (layout_has_elements(request->layout) || request->n_input_runs);

	return n_records * estimate_merged_nbytes(request->layout) * (looks_again ? 2 : 1);
}

/* Codes that are stored as records are made of them, and made again, whenever they are stored. */
static void add_storing(const struct plan *plan, const struct layout *layout,
			uint64_t stored_nbytes, uint64_t nbytes[static N_STAGES])
{
	nbytes[STAGE_SPILL] += stored_nbytes;
	if (plan->shares_processors && layout_is_plain(layout) && !layout->stores_elements)
		nbytes[STAGE_DECODE] += stored_nbytes;
}

static void load_runs(const struct plan *plan, const struct plan_request *request, uint64_t n,
		      uint64_t coded_nbytes, uint64_t nbytes[static N_STAGES])
{
	const struct layout *layout = request->layout;
	const uint64_t stored_nbytes = plan->spilled_nbytes + plan->kept_nbytes;
	const uint64_t n_merged = in_chunks(plan, request->limit, plan->n_formed_records);

	nbytes[STAGE_READ] = plan->expected_nbytes;
	nbytes[STAGE_ENCODE] = coded_nbytes;
	nbytes[STAGE_SORT] = n * estimate_sorted_nbytes(layout);
	nbytes[STAGE_UPLOAD] = plan->copies ? plan->expected_nbytes : 0;
	add_merge(plan, 0, merged_nbytes(request, n_merged), nbytes);
	if (request->unique && layout_has_elements(layout)) /* of each chunk */
		nbytes[STAGE_MERGE] += n * estimate_merged_nbytes(layout);
	add_storing(plan, layout, stored_nbytes, nbytes);
}

static void load_passes(const struct plan *plan, const struct plan_request *request,
			uint64_t nbytes[static N_STAGES])
{
	const uint64_t n_merged = plan->passes_merged_nbytes / request->layout->item_nbytes;

	add_merge(plan, plan->passes_merged_nbytes, merged_nbytes(request, n_merged), nbytes);
	add_storing(plan, request->layout, plan->passes_nbytes, nbytes);
}

/* Of n records: what is stored, inputs that are merged, and what is still in chunks. */
static void load_merge(const struct plan *plan, const struct plan_request *request, uint64_t n,
		       uint64_t coded_nbytes, uint64_t nbytes[static N_STAGES])
{
	const struct layout *layout = request->layout;
	const uint64_t n_left = n - at_most(plan->n_formed_records, n);
	const uint64_t n_stored = plan->last_stored_nbytes / layout->item_nbytes;
	const uint64_t n_resident = plan->n_chunks && !plan->counted_nbytes ?
					    in_chunks(plan, request->limit, n_left) :
					    0;
	const uint64_t n_written = request->limit ? at_most(n, request->limit) : n;

	add_merge(plan, plan->last_stored_nbytes, merged_nbytes(request, n_stored + n_resident),
		  nbytes);
	nbytes[STAGE_DECODE] = coded_nbytes;
	nbytes[STAGE_WRITE] = n_written * layout->output_nbytes;
}

void estimate_loads(const struct plan *plan, const struct plan_request *request,
		    struct loads *ret_loads)
{
	const struct layout *layout = request->layout;
	const uint64_t n = plan->expected_nbytes / layout->record_nbytes;
	/* Records become elements, and these records; beside a device apart that is no cost. */
	const bool is_coded = plan->shares_processors && layout_has_elements(layout);
	const uint64_t coded_nbytes = is_coded ? plan->expected_nbytes : 0;
	uint64_t(*nbytes)[N_STAGES] = ret_loads->nbytes;

	*ret_loads = (struct loads){ 0 };
	if (plan->n_chunks)
		load_runs(plan, request, n, coded_nbytes, nbytes[PHASE_RUNS]);
	/* Pipes that are merged are stored as they come. */
	if (!plan->n_chunks && plan->spilled_nbytes) {
		nbytes[PHASE_RUNS][STAGE_READ] = plan->expected_nbytes;
		nbytes[PHASE_RUNS][STAGE_SPILL] = plan->spilled_nbytes;
	}
	if (plan->n_passes > 1)
		load_passes(plan, request, nbytes[PHASE_PASSES]);
	load_merge(plan, request, n, coded_nbytes, nbytes[PHASE_MERGE]);
}

/* Of the processors, the part that a stage has while it runs alone. */
static double part_of_processors(const struct plan *plan, enum stage stage)
{
	const uint32_t n_threads = stage == STAGE_READ                          ? plan->n_readers :
				   stage == STAGE_SPILL || stage == STAGE_WRITE ? plan->n_writers :
				   stage == STAGE_FETCH                         ? 1 :
										  plan->n_lanes;

	return n_threads < plan->n_lanes ? (double)n_threads / plan->n_lanes : 1;
}

static bool is_of_device(enum stage stage)
{
	return stage == STAGE_UPLOAD || stage == STAGE_MERGE || stage == STAGE_DECODE ||
	       stage == STAGE_DOWNLOAD;
}

double estimate_rate(const struct plan *plan, const struct link_rates *rates, enum phase phase,
		     enum stage stage)
{
	const bool is_by_one = phase == PHASE_MERGE && plan->n_ranges <= 1 && is_of_device(stage);

	return rates->rates[stage] / (is_by_one && rates->n_devices ? rates->n_devices : 1);
}

double estimate_stage_s(uint64_t nbytes, double rate)
{
	return nbytes && rate > 0 ? (double)nbytes / rate : 0;
}

double estimate_phase_s(const struct plan *plan, const struct loads *loads,
			const struct link_rates *rates, enum phase phase,
			enum stage *ret_bottleneck)
{
	double sum_s = 0, longest_s = 0;

	*ret_bottleneck = N_STAGES;
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const double s = estimate_stage_s(loads->nbytes[phase][stage],
						  estimate_rate(plan, rates, phase, stage));

		sum_s += s * part_of_processors(plan, stage);
		if (s > longest_s) {
			longest_s = s;
			*ret_bottleneck = stage;
		}
	}
	return plan->shares_processors && sum_s > longest_s ? sum_s : longest_s;
}

double estimate_s(const struct plan *plan, const struct loads *loads,
		  const struct link_rates *rates)
{
	enum stage bottleneck;
	double s = 0;

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += estimate_phase_s(plan, loads, rates, phase, &bottleneck);
	return s;
}

bool estimate_has_phase(const struct loads *loads, enum phase phase)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (loads->nbytes[phase][stage])
			return true;
	return false;
}

bool estimate_is_complete(const struct loads *loads, const struct link_rates *rates)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (loads->nbytes[phase][stage] && rates->rates[stage] <= 0)
				return false;
	return true;
}
