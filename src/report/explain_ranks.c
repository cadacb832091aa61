/*
 * explain_ranks - what --explain says of several ranks (see explain.h)
 *
 *	each of 1000 ranks, without compression
 *	  reads           931.3 GiB of the input
 *	  ...
 *	limits: the limiting factor
 *	  runs             34.2 %  50000 of 146000 that can be merged at once
 */
#include "src/report/explain.h"

#include <inttypes.h>

#include "src/base/size.h"

/* From here on a limit is called near. */
static const double limit_warning_ratio = 0.8;

struct size_text {
	char text[32];
};

static struct size_text format_size(uint64_t nbytes)
{
	struct size_text result;

	size_format(nbytes, result.text);
	return result;
}

static void print_rank_load(const struct cluster_estimate *loads, FILE *stream)
{
	fprintf(stream, "\neach of %" PRIu32 " ranks, without compression\n", loads->n_ranks);
	fprintf(stream, "  %-16s%s of the input\n", "reads", format_size(loads->read_nbytes).text);
	if (loads->in_memory_exchange)
		fprintf(stream, "  %-16s%" PRIu64 " runs in memory, none on disk\n", "keeps",
			loads->n_runs);
	else
		fprintf(stream, "  %-16s%" PRIu64 " runs: %s on disk, %s in memory\n", "stores",
			loads->n_runs, format_size(loads->spilled_nbytes).text,
			format_size(loads->spilled_to_memory_nbytes).text);
	fprintf(stream, "  %-16sin about %" PRIu32 " rounds with all ranks\n", "finds splitters",
		loads->splitter_rounds);
	fprintf(stream, "  %-16s%s, including %s of records, in %" PRIu64 " messages of %s\n",
		"receives", format_size(loads->received_nbytes).text,
		format_size(loads->items_nbytes).text, loads->n_messages,
		format_size(loads->message_nbytes).text);
	fprintf(stream, "  %-16sas much\n", "sends");
	fprintf(stream, "  %-16s%" PRIu64 " runs, its partition of the runs of all ranks\n",
		"merges", loads->n_merged_runs);
	if (loads->merge_pass_nbytes)
		fprintf(stream, "  %-16s%s in merge passes, to disk and back\n", "moves",
			format_size(loads->merge_pass_nbytes).text);
	fprintf(stream, "  %-16s%s, %" PRIu64 " records; imbalance at most %s\n", "writes",
		format_size(loads->written_nbytes).text, loads->n_output_records,
		format_size(loads->max_imbalance_nbytes).text);
}

static double ratio_of(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void print_rank_totals(const struct cluster_estimate *loads, FILE *stream)
{
	const uint64_t n = loads->n_ranks;

	fprintf(stream, "total\n  %-16s%s, %.3f x the input\n", "disk",
		format_size(loads->disk_nbytes * n).text,
		ratio_of(loads->disk_nbytes, loads->read_nbytes));
	fprintf(stream, "  %-16s%s, %.4f x the exchanged records\n", "network",
		format_size(loads->received_nbytes * n).text,
		ratio_of(loads->received_nbytes, loads->items_nbytes));
}

static void print_rate(const struct rank_rates *rates, enum rank_resource link, FILE *stream)
{
	const uint64_t per_s = rates->per_s[link];

	fprintf(stream, "%s %s", link ? "," : "", rank_resource_name(link));
	if (per_s == 0)
		fputs(" ignored", stream);
	else if (link == RANK_MESSAGES)
		fprintf(stream, " %" PRIu64 "/s", per_s);
	else
		fprintf(stream, " %s/s", format_size(per_s).text);
	if (per_s && !rates->user_supplied[link])
		fputs(" (assumed)", stream);
}

static void print_link(const struct cluster_estimate *loads, const struct rank_rates *rates,
		       enum rank_phase phase, enum rank_resource link, bool is_slowest,
		       FILE *stream)
{
	const uint64_t n = loads->nbytes[phase][link];

	fprintf(stream, "  %-12s", rank_resource_name(link));
	if (link == RANK_MESSAGES)
		fprintf(stream, "%12" PRIu64, n);
	else
		fprintf(stream, "%12s", format_size(n).text);
	fprintf(stream, " %12.1f s%s\n", rank_resource_s(loads, rates, phase, link),
		is_slowest ? "  <- bottleneck" : "");
}

static void print_times(const struct cluster_estimate *loads, const struct rank_rates *rates,
			FILE *stream)
{
	double sum_s = 0;

	fputs("\nrates of each rank:", stream);
	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++)
		print_rate(rates, link, stream);
	fputs("; see --assume-rates\n", stream);
	for (enum rank_phase phase = 0; phase < N_RANK_PHASES; phase++) {
		enum rank_resource slowest;
		const double s = rank_phase_s(loads, rates, phase, &slowest);

		fprintf(stream, "%s: about %.1f s\n", rank_phase_name(phase), s);
		for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++)
			if (loads->nbytes[phase][link] && rates->per_s[link])
				print_link(loads, rates, phase, link, link == slowest, stream);
		sum_s += s;
	}
	fprintf(stream, "total: about %.1f s\n", sum_s);
}

/* What is counted, and what it may come to. */
static const struct {
	const char *name;
	bool is_count;
	const char *basis;
} limits[N_RANK_LIMITS] = {
	[RANK_FAN_IN] = { "runs", true, "that can be merged at once" },
	[RANK_INDEX] = { "index of runs", false, "of memory for the index" },
	[RANK_IMBALANCE] = { "imbalance", false, "one percent of a partition" },
	[RANK_OVERHEAD] = { "overhead", false, "two percent of the received records" },
	[RANK_MESSAGE_RATE] = { "messages", true, "in the transfer time of the bytes" },
};

static void print_limit(const struct cluster_estimate *loads, enum rank_limit limit, FILE *stream)
{
	const struct rank_limit_state *state = &loads->limits[limit];
	const char *warning = state->ratio > 1                   ? ": exceeded" :
			      state->ratio > limit_warning_ratio ? ": close" :
								   "";

	fprintf(stream, "  %-16s%8.1f %%  ", limits[limit].name, 100 * state->ratio);
	if (limits[limit].is_count)
		fprintf(stream, "%" PRIu64 " of %" PRIu64 " ", state->value, state->limit);
	else
		fprintf(stream, "%s of %s, ", format_size(state->value).text,
			format_size(state->limit).text);
	fprintf(stream, "%s%s%s\n", limits[limit].basis, warning,
		limit == rank_limiting_factor(loads) ? "  <- limiting factor" : "");
}

void explain_print_ranks(const struct cluster_estimate *loads, const struct rank_rates *rates,
			 FILE *stream)
{
	print_rank_load(loads, stream);
	print_rank_totals(loads, stream);
	print_times(loads, rates, stream);
	fputs("\nlimits\n", stream);
	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
		print_limit(loads, i, stream);
}
