/*
 * explain.c - what --explain and --debug print before anything is sorted (see explain.h)
 *
 * The plan is a list of names and values, which the HTML report shows as well. The estimate is a
 * table of bytes, rates and times: of the stages of one process, or of each rank:
 *
 *	each of 1000 ranks, without compression
 *	  reads           931.3 GiB of the input
 *	  ...
 *	limits
 *	  runs             34.2 %  50000 of 146000 that can be merged at once  <- limiting factor
 */
#include "src/report/explain.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/report/format.h"

/* --- the plan --- */

/* Receives the rows. */
struct plan_row_sink {
	plan_text_callback *callback;
	void *context;
};

__attribute__((format(printf, 3, 4))) static void
emit_row(const struct plan_row_sink *sink, const char *name, const char *format, ...)
{
	char value[256];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof value, format, args);
	va_end(args);
	sink->callback(sink->context, name, value);
}

static void emit_size(const struct plan_row_sink *sink, const char *name, uint64_t nbytes,
		      const char *suffix)
{
	emit_row(sink, name, "%s%s", size_format(nbytes).text, suffix);
}

/* Return whether all records have the same length. Lines do not. */
static bool has_fixed_records(const struct plan *plan)
{
	return plan->record_nbytes > 0;
}

/* Return the input of a chunk, which is an estimate if records differ in length. */
static uint64_t chunk_input_nbytes(const struct plan *plan)
{
	return has_fixed_records(plan) ? plan->chunk_records * plan->record_nbytes :
					 plan->chunk_nbytes;
}

/* With elements, a buffer is shorter than the input that it is for. */
static void emit_chunks(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t nbytes = chunk_input_nbytes(plan);
	char records[64] = "";

	if (!has_fixed_records(plan)) {
		emit_row(sink, "chunks", "about %s of text", size_format(nbytes).text);
		return;
	}
	if (nbytes != plan->chunk_nbytes)
		snprintf(records, sizeof records, " for %s of the%s input",
			 size_format(nbytes).text, plan->mapped_nbytes ? " mapped" : "");
	emit_row(sink, "chunks", "%" PRIu64 " buffer%s of %s%s, %u sorted concurrently",
		 plan->n_chunks, plural_ending(plan->n_chunks),
		 size_format(plan->chunk_nbytes).text, records, plan->n_devices * plan->n_queues);
}

/* Return whether the size of the input is unknown, without --assume-size. */
static bool is_size_unknown(const struct plan *plan)
{
	return plan->input_nbytes == PLAN_SIZE_UNKNOWN && !plan->expected_nbytes;
}

/* Return whether nothing is spilled. The plan may have memory for runs that are not needed. */
static bool stays_in_memory(const struct plan *plan)
{
	return plan->fits_in_memory || (plan->n_ranks <= 1 && !plan->is_unbounded &&
					!is_size_unknown(plan) && plan->n_spilled_runs == 0);
}

static void emit_runs(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t nbytes = plan->chunks_per_run * chunk_input_nbytes(plan);

	if (stays_in_memory(plan))
		emit_row(sink, "runs", "all chunks stay in memory; nothing is spilled");
	else if (nbytes == 0 && is_size_unknown(plan))
		emit_row(sink, "runs", "spilled when memory is full");
	else if (nbytes == 0)
		emit_row(sink, "runs", "%" PRIu64 " %s %s", plan->n_spilled_runs,
			 plan->n_spilled_runs == 1 ? "is" : "are",
			 plan->max_temp_nbytes ? "spilled" : "stored in memory");
	else if (plan->is_unbounded || is_size_unknown(plan))
		emit_row(sink, "runs", "of %s each, spilled when memory is full",
			 size_format(nbytes).text);
	else
		emit_row(sink, "runs", "%" PRIu64 " of %s each are spilled, the rest %s",
			 plan->n_spilled_runs, size_format(nbytes).text,
			 plan->n_ranks > 1 && !plan->keep_last_run_in_memory ? "is spilled last" :
									       "stays in memory");
}

static void emit_input(const struct plan_row_sink *sink, const struct plan *plan)
{
	char suffix[64] = "";

	if (plan->n_ranks > 1)
		snprintf(suffix, sizeof suffix,
			 has_fixed_records(plan) ? " for each of %" PRIu32 " ranks" :
						   "; memory and runs are those of each of %" PRIu32
						   " ranks",
			 plan->n_ranks);
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		emit_size(sink, "input", plan->input_nbytes, suffix);
	else if (plan->is_unbounded)
		emit_row(sink, "input", "unknown size; use --assume-size to plan for one");
	else if (is_size_unknown(plan))
		emit_row(sink, "input", "unknown size");
	else
		emit_size(sink, "input", plan->expected_nbytes, " (--assume-size)");
}

/* For an unbounded input: the size up to which one pass is enough. */
static void emit_passes(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t run_nbytes = plan->chunks_per_run * chunk_input_nbytes(plan);

	if (plan->is_unbounded && plan->n_chunks)
		emit_row(sink, "merge passes", "1 up to %s of input",
			 size_format(run_nbytes * plan->fan_in).text);
	else
		emit_row(sink, "merge passes", "%u", plan->n_passes);
	emit_row(sink, "temporary space", "%s%s", size_format_up(plan->max_temp_nbytes).text,
		 plan->is_unbounded ? " for each GiB of input" : "");
}

/* Print the memory that holds no records, and the mapped input. */
static void emit_memory(const struct plan_row_sink *sink, const struct plan *plan)
{
	emit_size(sink, "memory", plan->memory_nbytes + plan->exchange_nbytes, " limit (-S)");
	if (plan->exchange_nbytes)
		emit_size(sink, "exchange", plan->exchange_nbytes,
			  " of it, for the exchange between ranks");
	if (plan->codec_nbytes)
		emit_size(sink, "codecs", plan->codec_nbytes, " of it");
	if (plan->index_nbytes)
		emit_size(sink, "index of runs", plan->index_nbytes, " of it");
	if (plan->mapped_nbytes)
		emit_size(sink, "mapped input", plan->mapped_nbytes,
			  " of it; records are sorted in place");
}

/* Print a device with its own memory. */
static void emit_device(const struct plan_row_sink *sink, const struct plan *plan)
{
	if (plan->n_devices > 1)
		emit_row(sink, "device memory", "limit %s per device, %s in total",
			 size_format(plan->device_nbytes).text,
			 size_format(plan->n_devices * plan->device_nbytes).text);
	else
		emit_row(sink, "device memory", "limit %s", size_format(plan->device_nbytes).text);
	emit_size(sink, "host spill", plan->host_spill_nbytes,
		  " of spilled runs stay in host memory");
	if (plan->packs_on_device)
		emit_row(sink, "compression", "runs are compressed on the device");
	emit_row(sink, "slots", "%u of %s", plan->n_slots, size_format(plan->slot_nbytes).text);
}

static void emit_merge(const struct plan_row_sink *sink, const struct plan *plan)
{
	if (plan->n_windows)
		emit_row(sink, "windows", "%u in flight, of %s or more", plan->n_windows,
			 size_format(plan->window_nbytes).text);
	if (plan->n_windows || plan->n_spilled_runs)
		emit_row(sink, "merge", "fan-in %u, blocks of %s", plan->fan_in,
			 size_format(plan->block_nbytes).text);
	if (!is_size_unknown(plan))
		emit_passes(sink, plan);
	if (plan->n_partitions == 0)
		return;
	if (plan->n_expected_partitions > plan->n_partitions)
		emit_row(sink, "partitions", "%u in total, %u merged in parallel",
			 plan->n_expected_partitions, plan->n_partitions);
	else if (plan->n_expected_partitions > 1)
		emit_row(sink, "partitions", "%u at most, merged in parallel",
			 plan->n_expected_partitions);
}

void plan_text_for_each(const struct plan *plan, plan_text_callback *callback, void *context)
{
	const struct plan_row_sink sink = { callback, context };

	emit_row(&sink, "device", "%s", plan->device);
	emit_input(&sink, plan);
	if (has_fixed_records(plan))
		emit_row(&sink, "record", "%u byte%s, sorted as elements of %u bytes",
			 plan->record_nbytes, plural_ending(plan->record_nbytes),
			 plan->element_nbytes);
	emit_memory(&sink, plan);
	if (plan->copies_to_device)
		emit_device(&sink, plan);
	if (plan->n_chunks && plan->chunk_nbytes)
		emit_chunks(&sink, plan);
	if (plan->n_chunks)
		emit_runs(&sink, plan);
	emit_merge(&sink, plan);
	if (plan->n_readers)
		emit_row(&sink, "threads", "%u readers, %u writers", plan->n_readers,
			 plan->n_writers);
}

/* --- the estimate --- */

static void print_plan_row(void *context, const char *name, const char *value)
{
	fprintf(context, "%-18s%s\n", name, value);
}

/* Print amount, rate and time of a stage. */
static void print_stage(const struct link_estimate *stage, bool is_bottleneck, FILE *stream)
{
	fprintf(stream, "  %-10s %12s", stage->name, size_format(stage->amount).text);
	if (stage->per_s > 0)
		fprintf(stream, " %12s/s %9.3f s%s", size_format((uint64_t)stage->per_s).text,
			link_estimate_s(stage), is_bottleneck ? "  <- bottleneck" : "");
	else
		fprintf(stream, " %14s", "not measured");
	fputc('\n', stream);
}

/* Print the table of bytes and times of each stage. */
static void print_estimate(const struct plan *plan, const struct estimate *estimate, FILE *stream)
{
	const char *per_input = plan->is_unbounded ? " for each GiB of input" : "";

	fprintf(stream, "\nbytes through each stage%s%s, at measured rates; stages %s\n", per_input,
		plan->packs_on_device ? " without compression" : "",
		plan->sorts_on_cpu ? "share the processors" : "run concurrently");
	for (uint32_t i = 0; i < estimate->n_phases; i++) {
		const struct phase_estimate *phase = &estimate->phases[i];
		const struct link_estimate *bottleneck;
		const double s = phase_estimate_s(phase, &bottleneck);

		fprintf(stream, "%s: about %.3f s\n", phase_name(phase->phase), s);
		for (uint32_t j = 0; j < phase->n_links; j++)
			print_stage(&phase->links[j], &phase->links[j] == bottleneck, stream);
	}
	fprintf(stream, "total: %s %.3f s%s\n",
		estimate_is_complete(estimate) ? "about" : "more than", estimate_s(estimate),
		per_input);
}

/* --- the estimate of several ranks --- */

/* Above this ratio a limit is reported as close. */
static const double limit_warning_ratio = 0.8;

static void print_rank_load(const struct cluster_estimate *cluster, FILE *stream)
{
	fprintf(stream, "\neach of %" PRIu32 " ranks, without compression\n", cluster->n_ranks);
	fprintf(stream, "  %-16s%s of the input\n", "reads",
		size_format(cluster->read_nbytes).text);
	if (cluster->in_memory_exchange)
		fprintf(stream, "  %-16s%" PRIu64 " runs in memory, none on disk\n", "keeps",
			cluster->n_runs);
	else
		fprintf(stream, "  %-16s%" PRIu64 " run%s: %s on disk, %s in memory\n", "stores",
			cluster->n_runs, plural_ending(cluster->n_runs),
			size_format(cluster->spilled_nbytes).text,
			size_format(cluster->spilled_to_memory_nbytes).text);
	fprintf(stream, "  %-16sin about %" PRIu32 " rounds with all ranks\n", "finds splitters",
		cluster->splitter_rounds);
	fprintf(stream, "  %-16s%s, including %s of records, in %" PRIu64 " message%s of %s\n",
		"receives", size_format(cluster->received_nbytes).text,
		size_format(cluster->items_nbytes).text, cluster->n_messages,
		plural_ending(cluster->n_messages), size_format(cluster->message_nbytes).text);
	fprintf(stream, "  %-16sas much\n", "sends");
	fprintf(stream, "  %-16s%" PRIu64 " run%s, its partition of the runs of all ranks\n",
		"merges", cluster->n_merged_runs, plural_ending(cluster->n_merged_runs));
	if (cluster->merge_pass_nbytes)
		fprintf(stream, "  %-16s%s in merge passes, to disk and back\n", "moves",
			size_format(cluster->merge_pass_nbytes).text);
	fprintf(stream, "  %-16s%s, %" PRIu64 " records; imbalance at most %s\n", "writes",
		size_format(cluster->written_nbytes).text, cluster->n_output_records,
		size_format(cluster->max_imbalance_nbytes).text);
}

static double ratio_of(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void print_rank_totals(const struct cluster_estimate *cluster, FILE *stream)
{
	const uint64_t n = cluster->n_ranks;

	fprintf(stream, "total\n  %-16s%s, %.3f x the input\n", "disk",
		size_format(cluster->disk_nbytes * n).text,
		ratio_of(cluster->disk_nbytes, cluster->read_nbytes));
	fprintf(stream, "  %-16s%s, %.4f x the exchanged records\n", "network",
		size_format(cluster->received_nbytes * n).text,
		ratio_of(cluster->received_nbytes, cluster->items_nbytes));
}

static void print_rank_link(const struct link_estimate *link, bool is_bottleneck, FILE *stream)
{
	fprintf(stream, "  %-12s", link->name);
	if (link->is_messages)
		fprintf(stream, "%12" PRIu64, link->amount);
	else
		fprintf(stream, "%12s", size_format(link->amount).text);
	fprintf(stream, " %12.1f s%s\n", link_estimate_s(link),
		is_bottleneck ? "  <- bottleneck" : "");
}

static void print_rank_times(const struct estimate *estimate, FILE *stream)
{
	fputs("\nrates of each rank:", stream);
	for (uint32_t j = 0; j < estimate->phases[0].n_links; j++) {
		const struct link_estimate *link = &estimate->phases[0].links[j];

		fprintf(stream, "%s %s", j == 0 ? "" : ",", link->name);
		if (link->per_s <= 0)
			fputs(" ignored", stream);
		else if (link->is_messages)
			fprintf(stream, " %.0f/s", link->per_s);
		else
			fprintf(stream, " %s/s", size_format((uint64_t)link->per_s).text);
		if (link->per_s > 0 && !link->user_supplied)
			fputs(" (assumed)", stream);
	}
	fputs("; see --assume-rates\n", stream);
	for (uint32_t i = 0; i < estimate->n_phases; i++) {
		const struct phase_estimate *phase = &estimate->phases[i];
		const struct link_estimate *bottleneck;
		const double s = phase_estimate_s(phase, &bottleneck);

		fprintf(stream, "%s: about %.1f s\n", phase_name(phase->phase), s);
		for (uint32_t j = 0; j < phase->n_links; j++)
			if (phase->links[j].amount && phase->links[j].per_s > 0)
				print_rank_link(&phase->links[j], &phase->links[j] == bottleneck,
						stream);
	}
	fprintf(stream, "total: about %.1f s\n", estimate_s(estimate));
}

/* How limits are printed; key: in JSON. */
static const struct {
	const char *name, *key;
	bool is_count;
	const char *basis;
} limits[N_RANK_LIMITS] = {
	[RANK_FAN_IN] = { "runs", "runs", true, "that can be merged at once" },
	[RANK_INDEX] = { "index of runs", "index", false, "of memory for the index" },
	[RANK_IMBALANCE] = { "imbalance", "imbalance", false, "one percent of a partition" },
	[RANK_OVERHEAD] = { "overhead", "overhead", false, "two percent of the received records" },
	[RANK_MESSAGE_RATE] = { "messages", "messages", true, "in the transfer time of the bytes" },
};

static void print_limit(const struct cluster_estimate *cluster, enum rank_limit limit, FILE *stream)
{
	const struct rank_limit_state *state = &cluster->limits[limit];
	const char *warning = state->ratio > 1                   ? ": exceeded" :
			      state->ratio > limit_warning_ratio ? ": close" :
								   "";

	fprintf(stream, "  %-16s%8.1f %%  ", limits[limit].name, 100 * state->ratio);
	if (limits[limit].is_count)
		fprintf(stream, "%" PRIu64 " of %" PRIu64 " ", state->value, state->limit);
	else
		fprintf(stream, "%s of %s, ", size_format(state->value).text,
			size_format(state->limit).text);
	fprintf(stream, "%s%s%s\n", limits[limit].basis, warning,
		limit == rank_limiting_factor(cluster) ? "  <- limiting factor" : "");
}

/* Print what limits of the process allow, if any matter, and what counts as memory. */
static void print_memory(const struct memory_estimate *memory, FILE *stream)
{
	const bool is_exceeded = memory->needed_nbytes > memory->allowed_nbytes;

	if (is_exceeded)
		fprintf(stream, "%-18s%s; up to %s are needed\n", "allowed memory",
			size_format(memory->allowed_nbytes).text,
			size_format(memory->needed_nbytes).text);
	if (memory->temp_dir)
		fprintf(stream, "%-18s%s is in memory (tmpfs); its files count as memory\n",
			"temporary files", memory->temp_dir);
}

/* Print the space that is missing. */
static void print_shortage(const char *name, const struct disk_space *space, FILE *stream)
{
	if (space->is_needed_known && space->is_available_known &&
	    space->available_nbytes < space->needed_nbytes)
		fprintf(stream, "%-18sonly %s are available\n", name,
			size_format_down(space->available_nbytes).text);
}

static void print_spaces(const struct explanation *explanation, FILE *stream)
{
	const struct disk_space *output = &explanation->output_space;

	print_shortage("temporary space", &explanation->temp_space, stream);
	if (output->is_needed_known)
		fprintf(stream, "%-18s%s%s\n", "output",
			explanation->output_may_be_smaller ? "at most " : "",
			size_format(output->needed_nbytes).text);
	print_shortage("output", output, stream);
}

void explain_print(const struct explanation *explanation, FILE *stream)
{
	const struct cluster_estimate *cluster = &explanation->cluster;
	const struct input_content *content = &explanation->content;

	if (content->is_npy)
		fprintf(stream, "%-18snumpy (.npy)\n", "format");
	if (content->n_compressed)
		fprintf(stream, "%-18s%zu of %zu files\n", "compressed", content->n_compressed,
			content->n_files);
	plan_text_for_each(&explanation->plan, print_plan_row, stream);
	print_memory(&explanation->memory, stream);
	if (cluster->n_ranks) {
		print_rank_load(cluster, stream);
		print_rank_totals(cluster, stream);
		print_rank_times(&explanation->estimate, stream);
		fputs("\nlimits\n", stream);
		for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
			print_limit(cluster, i, stream);
	} else if (explanation->estimate.n_phases) {
		print_estimate(&explanation->plan, &explanation->estimate, stream);
	} else {
		print_spaces(explanation, stream);
	}
}

/* --- JSON --- */

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known ? json_number(number) : json_null();
}

/* Return null for a number that a plan of lines does not have. */
static json_t *count_or_null(uint64_t number)
{
	return number_or_null(number > 0, number);
}

static json_t *positive_or_null(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

/* is_estimate: the needed space cannot be compared with the available one. */
static json_t *space_to_json(const struct disk_space *space, bool is_estimate)
{
	const bool is_known = space->is_needed_known && space->is_available_known && !is_estimate;
	const bool is_sufficient = space->needed_nbytes <= space->available_nbytes;

	return JSON_OBJECT({ "needed_bytes",
			     number_or_null(space->is_needed_known, space->needed_nbytes) },
			   { "available_bytes",
			     number_or_null(space->is_available_known, space->available_nbytes) },
			   { "sufficient", is_known ? json_boolean(is_sufficient) : json_null() });
}

static json_t *input_to_json(const struct explanation *explanation)
{
	const struct plan *plan = &explanation->plan;
	const struct input_content *content = &explanation->content;
	const struct cluster_estimate *ranks = &explanation->cluster;
	const uint64_t nbytes = ranks->n_ranks ? ranks->total_input_nbytes : plan->expected_nbytes;
	const bool is_assumed = ranks->n_ranks ? explanation->is_size_assumed :
						 plan->input_nbytes == PLAN_SIZE_UNKNOWN;

	return JSON_OBJECT({ "files", json_number(content->n_files) },
			   { "bytes", number_or_null(!is_assumed, nbytes) },
			   { "records", number_or_null(!is_assumed && has_fixed_records(plan),
						       nbytes / u64_max(plan->record_nbytes, 1)) },
			   { "assumed_bytes",
			     number_or_null(is_assumed && !plan->is_unbounded && nbytes, nbytes) },
			   { "format", json_string(!has_fixed_records(plan) ? "lines" :
						   content->is_npy          ? "npy" :
									      "raw") },
			   { "compressed_files", json_number(content->n_compressed) },
			   { "unprobed_files", json_number(content->n_unprobed) });
}

static json_t *memory_to_json(const struct explanation *explanation)
{
	const struct memory_estimate *memory = &explanation->memory;
	const struct plan *plan = &explanation->plan;
	const bool has_device_memory = plan->copies_to_device;

	return JSON_OBJECT(
		{ "limit_bytes", json_number(plan->memory_nbytes + plan->exchange_nbytes) },
		{ "exchange_bytes", json_number(plan->exchange_nbytes) },
		{ "needed_bytes", json_number(plan->total_nbytes) },
		{ "allowed_bytes",
		  number_or_null(memory->allowed_nbytes != UINT64_MAX, memory->allowed_nbytes) },
		{ "sufficient", json_boolean(memory->needed_nbytes <= memory->allowed_nbytes) },
		{ "temporary_in_memory", json_boolean(memory->temp_dir != NULL) },
		{ "codec_bytes", json_number(plan->codec_nbytes) },
		{ "index_bytes", json_number(plan->index_nbytes) },
		{ "mapped_bytes", json_number(plan->mapped_nbytes) },
		{ "devices", count_or_null(plan->n_devices) },
		{ "device_bytes", number_or_null(has_device_memory, plan->device_nbytes) },
		{ "all_devices_bytes",
		  number_or_null(has_device_memory, plan->n_devices * plan->device_nbytes) },
		{ "host_spill_bytes", number_or_null(has_device_memory, plan->host_spill_nbytes) });
}

static void put_run_plan(const struct plan *plan, json_t **object)
{
	const uint64_t chunk_nbytes = chunk_input_nbytes(plan);
	const bool is_known = !is_size_unknown(plan);

	json_put(object, "chunks", number_or_null(is_known, plan->n_chunks));
	json_put(object, "chunk_bytes", number_or_null(is_known, chunk_nbytes));
	json_put(object, "chunk_buffer_bytes",
		 number_or_null(has_fixed_records(plan), plan->chunk_nbytes));
	json_put(object, "queues", count_or_null((uint64_t)plan->n_devices * plan->n_queues));
	json_put(object, "fits_in_memory",
		 is_known ? json_boolean(stays_in_memory(plan)) : json_null());
	json_put(object, "run_bytes",
		 number_or_null(has_fixed_records(plan), plan->chunks_per_run * chunk_nbytes));
	json_put(object, "device_compression", json_boolean(plan->packs_on_device));
}

static json_t *plan_to_json(const struct plan *plan)
{
	const bool is_known = !plan->is_unbounded && !is_size_unknown(plan);
	json_t *object = json_object();

	if (plan->n_chunks)
		put_run_plan(plan, &object);
	json_put(&object, "runs_spilled", number_or_null(is_known, plan->n_spilled_runs));
	json_put(&object, "windows", count_or_null(plan->n_windows));
	json_put(&object, "window_bytes", count_or_null(plan->window_nbytes));
	json_put(&object, "block_bytes", json_number(plan->block_nbytes));
	json_put(&object, "fan_in", count_or_null(plan->fan_in));
	json_put(&object, "passes", number_or_null(is_known, plan->n_passes));
	json_put(&object, "partitions", json_number(plan->n_expected_partitions));
	json_put(&object, "concurrent_partitions", count_or_null(plan_concurrent_partitions(plan)));
	json_put(&object, "readers", count_or_null(plan->n_readers));
	json_put(&object, "writers", count_or_null(plan->n_writers));
	return object;
}

static json_t *stage_to_json(const struct link_estimate *stage)
{
	return JSON_OBJECT({ "name", json_string(stage->name) },
			   { "bytes", json_number(stage->amount) },
			   { "bytes_per_s", positive_or_null(stage->per_s) },
			   { "expected_s", positive_or_null(link_estimate_s(stage)) });
}

static json_t *rank_link_to_json(const struct link_estimate *link)
{
	return JSON_OBJECT({ "name", json_string(link->name) },
			   { "amount", json_number(link->amount) },
			   { "per_s", number_or_null(link->per_s > 0, (uint64_t)link->per_s) },
			   { "user_supplied", json_boolean(link->user_supplied) },
			   { "expected_s", positive_or_null(link_estimate_s(link)) });
}

/* Return the phases; their links are called stages in one process. */
static json_t *phases_to_json(const struct estimate *estimate, bool has_ranks)
{
	json_t *phases = json_array();

	for (uint32_t i = 0; i < estimate->n_phases; i++) {
		const struct phase_estimate *phase = &estimate->phases[i];
		const struct link_estimate *bottleneck;
		const double s = phase_estimate_s(phase, &bottleneck);
		json_t *object = json_object(), *links = json_array();

		for (uint32_t j = 0; j < phase->n_links; j++)
			json_append(&links, has_ranks ? rank_link_to_json(&phase->links[j]) :
							stage_to_json(&phase->links[j]));
		json_put(&object, "name", json_string(phase_key(phase->phase)));
		json_put(&object, "expected_s", json_real(s));
		json_put(&object, "bottleneck",
			 bottleneck ? json_string(bottleneck->name) : json_null());
		json_put(&object, has_ranks ? "links" : "stages", links);
		json_append(&phases, object);
	}
	return phases;
}

static json_t *rank_load_to_json(const struct cluster_estimate *cluster)
{
	return JSON_OBJECT({ "read_bytes", json_number(cluster->read_nbytes) },
			   { "spilled_bytes", json_number(cluster->spilled_nbytes) },
			   { "spilled_to_memory_bytes",
			     json_number(cluster->spilled_to_memory_nbytes) },
			   { "merge_pass_bytes", json_number(cluster->merge_pass_nbytes) },
			   { "in_memory_exchange", json_boolean(cluster->in_memory_exchange) },
			   { "written_bytes", json_number(cluster->written_nbytes) },
			   { "written_records", json_number(cluster->n_output_records) },
			   { "max_imbalance_bytes", json_number(cluster->max_imbalance_nbytes) },
			   { "disk_bytes", json_number(cluster->disk_nbytes) },
			   { "received_bytes", json_number(cluster->received_nbytes) },
			   { "received_record_bytes", json_number(cluster->items_nbytes) },
			   { "messages", json_number(cluster->n_messages) },
			   { "message_bytes", json_number(cluster->message_nbytes) },
			   { "runs_stored", json_number(cluster->n_runs) },
			   { "runs_merged", json_number(cluster->n_merged_runs) },
			   { "splitter_rounds", json_number(cluster->splitter_rounds) });
}

static json_t *rank_limits_to_json(const struct cluster_estimate *cluster)
{
	json_t *array = json_array();

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++) {
		const struct rank_limit_state *state = &cluster->limits[i];

		json_append(&array, JSON_OBJECT({ "name", json_string(limits[i].key) },
						{ "value", json_number(state->value) },
						{ "limit", json_number(state->limit) },
						{ "exceeded", json_boolean(state->ratio > 1) }));
	}
	return array;
}

/* The phases of a distributed sort are those of each rank. */
static json_t *ranks_to_json(const struct explanation *explanation)
{
	const struct cluster_estimate *cluster = &explanation->cluster;
	const enum rank_limit limiting_factor = rank_limiting_factor(cluster);

	return JSON_OBJECT({ "ranks", json_number(cluster->n_ranks) },
			   { "per_rank", rank_load_to_json(cluster) },
			   { "phases", phases_to_json(&explanation->estimate, true) },
			   { "limits", rank_limits_to_json(cluster) },
			   { "limiting_factor", json_string(limits[limiting_factor].key) });
}

int explain_write_json(const struct explanation *explanation, FILE *stream)
{
	const struct plan *plan = &explanation->plan;
	const struct estimate *estimate = &explanation->estimate;
	const struct disk_space *output = &explanation->output_space;
	/* Less space than needed at most may suffice. */
	const bool is_estimate = explanation->output_may_be_smaller &&
				 output->needed_nbytes > output->available_nbytes;
	const bool has_ranks = explanation->cluster.n_ranks;
	const struct json_member members[] = {
		{ "version", json_string(GSORT_VERSION) },
		{ "backend", json_string(plan->device) },
		{ "type", json_string(explanation->summary.type) },
		{ "record_bytes", count_or_null(plan->record_nbytes) },
		{ "element_bytes", count_or_null(plan->element_nbytes) },
		{ "per_input_bytes",
		  number_or_null(plan->is_unbounded, PLAN_UNBOUNDED_UNIT_NBYTES) },
		{ "input", input_to_json(explanation) },
		{ "memory", memory_to_json(explanation) },
		{ "temporary", space_to_json(&explanation->temp_space, plan->is_unbounded) },
		{ "output", space_to_json(output, is_estimate) },
		{ "plan", plan_to_json(plan) },
		{ "expected_s",
		  estimate->n_phases ? json_real(estimate_s(estimate)) : json_null() },
		{ "complete", json_boolean(estimate->n_phases && estimate_is_complete(estimate)) },
		{ "phases", has_ranks ? json_array() : phases_to_json(estimate, false) },
		{ has_ranks ? "ranks" : NULL, has_ranks ? ranks_to_json(explanation) : NULL },
		{ NULL, NULL },
	};

	return json_write(json_make(members), 9, stream);
}

/* --- --debug --- */

/* Maximum number of records, and of bytes of each; a multiple of 8. */
enum { DEBUG_MAX_RECORDS = 5, DEBUG_MAX_NBYTES = 32, HEX_NBYTES = 2 * DEBUG_MAX_NBYTES + 4 };

static void write_hex(const unsigned char *bytes, uint64_t n, char text[static HEX_NBYTES])
{
	for (uint64_t i = 0; i < n && i < DEBUG_MAX_NBYTES; i++, text += 2)
		snprintf(text, 3, "%02x", bytes[i]);
	strcpy(text, n > DEBUG_MAX_NBYTES ? "..." : "");
}

static void report_layout(const struct layout *layout)
{
	const uint64_t nbytes = layout->record_nbytes;

	if (layout_is_key_only(layout))
		debug_line("record: %" PRIu64
			   " bytes, sorted as an encoded key in an element of %" PRIu32 " bytes%s",
			   nbytes, layout->element_nbytes,
			   key_encoding_is_identity(&layout->encoding) ? " (the record itself)" :
									 "");
	else if (layout_needs_refining(layout))
		debug_line("record: %" PRIu64 " bytes, sorted as the first %" PRIu32 " of %" PRIu32
			   " bytes of its encoded key, then the others, in an element of %" PRIu32
			   " bytes",
			   nbytes, layout_prefix_nbytes(layout), layout->record_keys.key_nbytes,
			   layout->element_nbytes);
	else
		debug_line("record: %" PRIu64 " bytes, sorted as its encoded key of %" PRIu32
			   " bytes in an element of %" PRIu32 " bytes",
			   nbytes, layout->record_keys.key_nbytes, layout->element_nbytes);
}

/* Show the normalised keys in hexadecimal: records sort like these texts. */
static int report_records(const struct layout *layout, struct input *input, uint64_t n)
{
	const struct key_fields *keys = &layout->record_keys;
	const uint64_t nbytes = layout->record_nbytes;
	char record_hex[HEX_NBYTES], key_hex[HEX_NBYTES];
	unsigned char key[DEBUG_MAX_NBYTES];
	unsigned char *record = malloc(nbytes);
	int r = 0;

	if (!record)
		return fail(-ENOMEM, "--debug: no memory for a record of %" PRIu64 " bytes",
			    nbytes);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		r = input_read_at(input, i * nbytes, record, nbytes);
		if (r < 0)
			break;
		write_hex(record, nbytes, record_hex);
		for (uint32_t offset = 0; offset < DEBUG_MAX_NBYTES; offset += 8) {
			const uint64_t word = htobe64(key_word(keys, record, offset));

			memcpy(key + offset, &word, 8);
		}
		write_hex(key, keys->key_nbytes, key_hex);
		debug_line("record %" PRIu64 ": bytes %s encoded key %s", i + 1, record_hex,
			   key_hex);
	}
	free(record);
	return r;
}

int debug_report_keys(const struct sort_spec *spec, const struct layout *layout,
		      struct input *input)
{
	const uint64_t nbytes = input_total_nbytes(input);
	uint64_t n;

	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];

		debug_line("key %" PRIu32 ": offset %" PRIu64 ", type %s, %" PRIu32 " bytes, %s",
			   i + 1, key->offset, key_format_type(key).text, key->nbytes,
			   key->descending ? "descending" : "ascending");
	}
	report_layout(layout);
	if (nbytes == INPUT_SIZE_UNKNOWN) {
		debug_line("records: from a pipe, so not shown");
		return 0;
	}
	n = nbytes / layout->record_nbytes;
	return report_records(layout, input, n < DEBUG_MAX_RECORDS ? n : DEBUG_MAX_RECORDS);
}
