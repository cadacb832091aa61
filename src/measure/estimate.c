/*
 * estimate - what a plan moves over each link, and how long that will take (see estimate.h)
 */
#include "src/measure/estimate.h"

#include "src/base/size.h"

/* Where a merge's bytes go on the way to the device and back, if it has memory of its own. */
static void add_merge(const struct plan *plan, uint64_t fetched_nbytes, uint64_t merged_nbytes,
		      uint64_t nbytes[static N_STAGES])
{
	nbytes[STAGE_FETCH] += fetched_nbytes;
	nbytes[STAGE_MERGE] += merged_nbytes;
	if (!plan->unified) {
		nbytes[STAGE_UPLOAD] += fetched_nbytes;
		nbytes[STAGE_DOWNLOAD] += merged_nbytes;
	}
}

/* Of what is stored, the bytes that a merge of it counts: those of sorted records. */
static uint64_t merged_nbytes(const struct layout *layout, uint64_t stored_nbytes)
{
	return stored_nbytes / layout->item_nbytes * layout->record_nbytes;
}

/* Codes that are stored as records are made of them, and made again, whenever they are stored. */
static void add_storing(const struct plan *plan, const struct layout *layout,
			uint64_t stored_nbytes, uint64_t nbytes[static N_STAGES])
{
	nbytes[STAGE_SPILL] += stored_nbytes;
	if (plan->unified && layout_is_plain(layout) && !layout->stores_elements)
		nbytes[STAGE_DECODE] += stored_nbytes;
}

void estimate_loads(const struct plan *plan, const struct layout *layout, struct loads *ret_loads)
{
	const uint64_t n = plan->expected_nbytes / layout->record_nbytes;
	const uint64_t spilled_nbytes = plan->spilled_nbytes;
	/* Records become elements, and these records; beside a device apart that is no cost. */
	const bool is_coded = plan->unified && layout_has_elements(layout);
	const uint64_t coded_nbytes = is_coded ? plan->expected_nbytes : 0;
	const uint64_t sorted_nbytes = plan->gathered_nbytes ? n * plan->resident_nbytes :
							       plan->expected_nbytes;
	uint64_t(*nbytes)[N_STAGES] = ret_loads->nbytes;

	*ret_loads = (struct loads){ 0 };
	if (plan->n_chunks) {
		nbytes[PHASE_RUNS][STAGE_READ] = plan->expected_nbytes;
		nbytes[PHASE_RUNS][STAGE_ENCODE] = coded_nbytes;
		nbytes[PHASE_RUNS][STAGE_SORT] = sorted_nbytes;
		nbytes[PHASE_RUNS][STAGE_UPLOAD] = plan->unified ? 0 : plan->expected_nbytes;
		add_merge(plan, 0, merged_nbytes(layout, spilled_nbytes), nbytes[PHASE_RUNS]);
		add_storing(plan, layout, spilled_nbytes, nbytes[PHASE_RUNS]);
	}
	if (plan->n_passes > 1) {
		add_merge(plan, plan->passes_nbytes, merged_nbytes(layout, plan->passes_nbytes),
			  nbytes[PHASE_PASSES]);
		add_storing(plan, layout, plan->passes_nbytes, nbytes[PHASE_PASSES]);
	}
	add_merge(plan, plan->n_chunks ? spilled_nbytes : plan->expected_nbytes, sorted_nbytes,
		  nbytes[PHASE_MERGE]);
	nbytes[PHASE_MERGE][STAGE_DECODE] = coded_nbytes;
	nbytes[PHASE_MERGE][STAGE_WRITE] = n * layout->output_nbytes;
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

static double stage_s(uint64_t nbytes, double rate)
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
		const double s = stage_s(loads->nbytes[phase][stage], rates->rates[stage]);

		sum_s += s * part_of_processors(plan, stage);
		if (s > longest_s) {
			longest_s = s;
			*ret_bottleneck = stage;
		}
	}
	return plan->unified && sum_s > longest_s ? sum_s : longest_s;
}

static void print_link(enum stage stage, uint64_t nbytes, double rate, bool is_bottleneck,
		       FILE *stream)
{
	char size[32], per_second[32];

	size_format(nbytes, size);
	fprintf(stream, "  %-10s %12s", stage_name(stage), size);
	if (rate > 0) {
		size_format((uint64_t)rate, per_second);
		fprintf(stream, " %12s/s %9.3f s%s", per_second, stage_s(nbytes, rate),
			is_bottleneck ? "  <- the longest" : "");
	} else {
		fprintf(stream, " %14s", "not measured");
	}
	fputc('\n', stream);
}

static double print_phase(const struct plan *plan, const struct loads *loads,
			  const struct link_rates *rates, enum phase phase, FILE *stream)
{
	enum stage bottleneck;
	const double s = estimate_phase_s(plan, loads, rates, phase, &bottleneck);
	bool begun = false;

	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (loads->nbytes[phase][stage] == 0)
			continue;
		if (!begun)
			fprintf(stream, "%s: about %.3f s\n", phase_name(phase), s);
		begun = true;
		print_link(stage, loads->nbytes[phase][stage], rates->rates[stage],
			   stage == bottleneck, stream);
	}
	return s;
}

/* Is there a rate for everything that is moved? */
static bool is_complete(const struct loads *loads, const struct link_rates *rates)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (loads->nbytes[phase][stage] && rates->rates[stage] <= 0)
				return false;
	return true;
}

void estimate_print(const struct plan *plan, const struct loads *loads,
		    const struct link_rates *rates, FILE *stream)
{
	const char *each = plan->is_endless ? " for each GiB of input" : "";
	double s = 0;

	fprintf(stream,
		"\nbytes over each link%s%s, at the rates that it has just shown; stages %s\n",
		each, plan->packs ? " if nothing shrinks" : "",
		plan->unified ? "share the processors" : "run at the same time");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += print_phase(plan, loads, rates, phase, stream);
	fprintf(stream, "in all: %s %.3f s%s\n", is_complete(loads, rates) ? "about" : "more than",
		s, each);
}
