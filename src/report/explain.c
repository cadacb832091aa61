/*
 * explain - what --explain says (see explain.h)
 */
#include "src/report/explain.h"

#include <inttypes.h>

#include "src/base/size.h"

static void print_size(FILE *stream, const char *name, uint64_t nbytes, const char *more)
{
	char size[32];

	size_format(nbytes, size);
	fprintf(stream, "%-18s%s%s\n", name, size, more);
}

static void print_runs(const struct plan *plan, FILE *stream)
{
	char size[32];

	if (plan->fits) {
		fprintf(stream, "%-18sall chunks stay in memory; nothing is spilled\n", "runs");
		return;
	}
	size_format(plan->spill_chunks * plan->chunk_records * plan->record_nbytes, size);
	if (plan->is_endless)
		fprintf(stream, "%-18sof %s each, spilled when memory is full\n", "runs", size);
	else
		fprintf(stream,
			"%-18s%" PRIu64 " of %s each are spilled, the rest stays in memory\n",
			"runs", plan->n_spilled_runs, size);
}

static void print_input(const struct plan *plan, FILE *stream)
{
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		print_size(stream, "input", plan->input_nbytes, "");
	else if (plan->is_endless)
		fprintf(stream, "%-18sof unknown size; --assume-size plans for one\n", "input");
	else
		print_size(stream, "input", plan->expected_nbytes,
			   " (--assume-size); it can be any");
}

/* Of an endless input, what holds as long as its runs can be merged at once. */
static void print_merges(const struct plan *plan, FILE *stream)
{
	const uint64_t run_nbytes = plan->spill_chunks * plan->chunk_records * plan->record_nbytes;
	char size[32];

	if (plan->is_endless) {
		size_format(run_nbytes * plan->fan_in, size);
		fprintf(stream, "%-18s1 up to %s of input\n", "merge passes", size);
	} else {
		fprintf(stream, "%-18s%u\n", "merge passes", plan->n_passes);
	}
	size_format_up(plan->most_temporary_nbytes, size);
	fprintf(stream, "%-18s%s%s\n", "temporary space", size,
		plan->is_endless ? " for each GiB of input" : "");
}

void plan_print(const struct plan *plan, FILE *stream)
{
	char size[32];

	fprintf(stream, "%-18s%s\n", "device", plan->device);
	print_input(plan, stream);
	fprintf(stream, "%-18s%u bytes, sorted as elements of %u bytes\n", "record",
		plan->record_nbytes, plan->element_nbytes);
	print_size(stream, "memory", plan->memory_nbytes, " at most (-S)");
	if (plan->side_nbytes)
		print_size(stream, "codecs", plan->side_nbytes, " of it");
	if (plan->index_nbytes)
		print_size(stream, "index of runs", plan->index_nbytes, " of it");
	if (plan->mapped_nbytes)
		print_size(stream, "mapped input", plan->mapped_nbytes,
			   " of it; records stay there until they are written");
	if (plan->copies) {
		print_size(stream, "device memory", plan->device_nbytes, " at most");
		print_size(stream, "host tier", plan->host_tier_nbytes,
			   " of spilled runs stay in memory");
		if (plan->packs)
			fprintf(stream, "%-18son the device, before they are downloaded\n",
				"runs are packed");
		size_format(plan->slot_nbytes, size);
		fprintf(stream, "%-18s%u of %s\n", "slots", plan->n_slots, size);
	}
	if (plan->n_chunks) {
		size_format(plan->chunk_nbytes, size);
		fprintf(stream, "%-18s%" PRIu64 " buffers of %s, %u sorted at a time\n", "chunks",
			plan->n_chunks, size, plan->n_lanes);
		print_runs(plan, stream);
	}
	size_format(plan->window_nbytes, size);
	fprintf(stream, "%-18s%u in flight, of %s or more\n", "windows", plan->n_windows, size);
	size_format(plan->block_nbytes, size);
	fprintf(stream, "%-18sat most %u stored runs at once, blocks of %s\n", "merge",
		plan->fan_in, size);
	print_merges(plan, stream);
	if (plan->n_ranges > 1)
		fprintf(stream, "%-18s%u of the output at most, merged side by side\n", "ranges",
			plan->n_ranges);
	fprintf(stream, "%-18s%u readers, %u writers\n", "threads", plan->n_readers,
		plan->n_writers);
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
		plan->shares_processors ? "share the processors" : "run at the same time");
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		s += print_phase(plan, loads, rates, phase, stream);
	fprintf(stream, "in all: %s %.3f s%s\n", is_complete(loads, rates) ? "about" : "more than",
		s, each);
}

void explain_print(const struct explanation *explanation, FILE *stream)
{
	plan_print(&explanation->plan, stream);
	estimate_print(&explanation->plan, &explanation->loads, &explanation->rates, stream);
}
