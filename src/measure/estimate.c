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

void estimate_loads(const struct plan *plan, const struct layout *layout, struct loads *ret_loads)
{
	const uint64_t n = plan->input_nbytes / layout->record_nbytes;
	const uint64_t spilled_nbytes = plan->spilled_nbytes;
	/* Records that are only referred to are gone over before the sort and after the merge. */
	const uint64_t referred_nbytes = plan->gathered_nbytes ? plan->input_nbytes : 0;
	const uint64_t sorted_nbytes = plan->gathered_nbytes ? n * plan->resident_nbytes :
							       plan->input_nbytes;
	uint64_t(*nbytes)[N_STAGES] = ret_loads->nbytes;

	*ret_loads = (struct loads){ 0 };
	if (plan->input_nbytes == PLAN_SIZE_UNKNOWN)
		return;
	if (plan->n_chunks) {
		nbytes[PHASE_RUNS][STAGE_READ] = plan->input_nbytes;
		nbytes[PHASE_RUNS][STAGE_ENCODE] = referred_nbytes;
		nbytes[PHASE_RUNS][STAGE_SORT] = sorted_nbytes;
		nbytes[PHASE_RUNS][STAGE_UPLOAD] = plan->unified ? 0 : plan->input_nbytes;
		add_merge(plan, 0, spilled_nbytes, nbytes[PHASE_RUNS]);
		nbytes[PHASE_RUNS][STAGE_SPILL] = spilled_nbytes;
	}
	if (plan->n_passes > 1) {
		add_merge(plan, plan->passes_nbytes, plan->passes_nbytes, nbytes[PHASE_PASSES]);
		nbytes[PHASE_PASSES][STAGE_SPILL] = plan->passes_nbytes;
	}
	add_merge(plan, plan->n_chunks ? spilled_nbytes : plan->input_nbytes, sorted_nbytes,
		  nbytes[PHASE_MERGE]);
	nbytes[PHASE_MERGE][STAGE_DECODE] = referred_nbytes;
	nbytes[PHASE_MERGE][STAGE_WRITE] = n * layout->output_nbytes;
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

		sum_s += s;
		if (s > longest_s) {
			longest_s = s;
			*ret_bottleneck = stage;
		}
	}
	return plan->unified ? sum_s : longest_s;
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

void estimate_print(const struct plan *plan, const struct loads *loads,
		    const struct link_rates *rates, FILE *stream)
{
	double s = 0;

	if (plan->input_nbytes == PLAN_SIZE_UNKNOWN)
		return;
	fprintf(stream,
		"\nbytes over each link%s, at the rates that it has just shown; stages %s\n",
		plan->packs ? " if nothing shrinks" : "",
		plan->unified ? "share the processors" : "run at the same time");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += print_phase(plan, loads, rates, phase, stream);
	fprintf(stream, "in all: about %.3f s\n", s);
}
