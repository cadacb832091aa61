/*
 * explain - what --explain says (see explain.h)
 */
#include "src/report/explain.h"

#include <inttypes.h>

#include "src/base/size.h"
#include "src/report/plan_text.h"

static void print_row(void *context, const char *name, const char *value)
{
	fprintf(context, "%-18s%s\n", name, value);
}

void plan_print(const struct plan *plan, FILE *stream)
{
	plan_text_for_each(plan, print_row, stream);
}

static void print_link(enum stage stage, uint64_t nbytes, double rate, bool is_bottleneck,
		       FILE *stream)
{
	char size[32], per_second[32];

	size_format(nbytes, size);
	fprintf(stream, "  %-10s %12s", stage_name(stage), size);
	if (rate > 0) {
		size_format((uint64_t)rate, per_second);
		fprintf(stream, " %12s/s %9.3f s%s", per_second, estimate_stage_s(nbytes, rate),
			is_bottleneck ? "  <- bottleneck" : "");
	} else {
		fprintf(stream, " %14s", "not measured");
	}
	fputc('\n', stream);
}

static void print_phase(const struct plan *plan, const struct stage_volumes *loads,
			const struct stage_rates *rates, enum phase phase, FILE *stream)
{
	enum stage bottleneck;
	const double s = estimate_phase_s(plan, loads, rates, phase, &bottleneck);

	if (!estimate_has_phase(loads, phase))
		return;
	fprintf(stream, "%s: about %.3f s\n", phase_name(phase), s);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (loads->nbytes[phase][stage])
			print_link(stage, loads->nbytes[phase][stage],
				   estimate_rate(plan, rates, phase, stage), stage == bottleneck,
				   stream);
}

void estimate_print(const struct plan *plan, const struct stage_volumes *loads,
		    const struct stage_rates *rates, FILE *stream)
{
	const char *per_input = plan->is_unbounded ? " for each GiB of input" : "";

	fprintf(stream, "\nbytes over each link%s%s, at measured rates; stages %s\n", per_input,
		plan->packs_on_device ? " without compression" : "",
		plan->sorts_on_cpu ? "share the processors" : "run concurrently");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		print_phase(plan, loads, rates, phase, stream);
	fprintf(stream, "total: %s %.3f s%s\n",
		estimate_is_complete(loads, rates) ? "about" : "more than",
		estimate_total_s(plan, loads, rates), per_input);
}

static void print_content(const struct input_content *content, FILE *stream)
{
	if (content->is_npy)
		fprintf(stream, "%-18snumpy (.npy)\n", "format");
	if (content->n_compressed)
		fprintf(stream, "%-18s%zu of %zu files (zstd)\n", "compressed",
			content->n_compressed, content->n_files);
}

void explain_print(const struct explanation *explanation, FILE *stream)
{
	print_content(&explanation->content, stream);
	plan_print(&explanation->plan, stream);
	if (explanation->rank_loads.n_ranks)
		explain_print_ranks(&explanation->rank_loads, &explanation->rank_rates, stream);
	else
		estimate_print(&explanation->plan, &explanation->loads, &explanation->rates,
			       stream);
}
