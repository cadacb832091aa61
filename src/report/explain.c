/*
 * explain - what --explain and --debug print before anything is sorted (see explain.h)
 *
 * The plan is a list of names and values, which the HTML page shows as well. The estimate is a
 * table of bytes, rates and times: for the stages of one process, or for each of several ranks:
 *
 *	each of 1000 ranks, without compression
 *	  reads           931.3 GiB of the input
 *	  ...
 *	limits
 *	  runs             34.2 %  50000 of 146000 that can be merged at once  <- limiting factor
 *
 * The JSON object is built as a whole by libjansson and then written. A failed allocation is a NULL
 * on its way into the object; the builder remembers it and reports it once at the end.
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
#include "src/base/size.h"
#include "src/report/json_writer.h"

/* --- the plan --- */

/* Who is told. */
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
	char size[32];

	size_format(nbytes, size);
	emit_row(sink, name, "%s%s", size, suffix);
}

/* Of records in which elements stand for them, a buffer is not as long as what it is for. */
static void emit_chunks(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t nbytes = plan->chunk_records * plan->record_nbytes;
	char size[32], input_size[32], records[64] = "";

	size_format(plan->chunk_nbytes, size);
	size_format(nbytes, input_size);
	if (nbytes != plan->chunk_nbytes)
		snprintf(records, sizeof records, " for %s of the%s input", input_size,
			 plan->mapped_nbytes ? " mapped" : "");
	emit_row(sink, "chunks", "%" PRIu64 " buffers of %s%s, %u sorted concurrently",
		 plan->n_chunks, size, records, plan->n_devices * plan->n_queues);
}

/* Is it not known, and nobody has said, how much will come? */
static bool is_size_unknown(const struct plan *plan)
{
	return plan->input_nbytes == PLAN_SIZE_UNKNOWN && !plan->expected_nbytes;
}

static void emit_runs(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32];

	if (plan->fits_in_memory) {
		emit_row(sink, "runs", "all chunks stay in memory; nothing is spilled");
		return;
	}
	size_format(plan->chunks_per_run * plan->chunk_records * plan->record_nbytes, size);
	if (plan->is_unbounded || is_size_unknown(plan))
		emit_row(sink, "runs", "of %s each, spilled when memory is full", size);
	else
		emit_row(sink, "runs", "%" PRIu64 " of %s each are spilled, the rest %s",
			 plan->n_spilled_runs, size,
			 plan->n_ranks > 1 && !plan->keep_last_run_in_memory ? "is spilled last" :
									       "stays in memory");
}

static void emit_input(const struct plan_row_sink *sink, const struct plan *plan)
{
	char suffix[64] = "";

	if (plan->n_ranks > 1)
		snprintf(suffix, sizeof suffix, " for each of %" PRIu32 " ranks", plan->n_ranks);
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		emit_size(sink, "input", plan->input_nbytes, suffix);
	else if (plan->is_unbounded)
		emit_row(sink, "input", "unknown size; use --assume-size to plan for one");
	else if (is_size_unknown(plan))
		emit_row(sink, "input", "unknown size");
	else
		emit_size(sink, "input", plan->expected_nbytes, " (--assume-size)");
}

/* Of an endless input, what holds as long as its runs can be merged at once. */
static void emit_passes(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t run_nbytes =
		plan->chunks_per_run * plan->chunk_records * plan->record_nbytes;
	char size[32];

	if (plan->is_unbounded && plan->n_chunks) {
		size_format(run_nbytes * plan->fan_in, size);
		emit_row(sink, "merge passes", "1 up to %s of input", size);
	} else {
		emit_row(sink, "merge passes", "%u", plan->n_passes);
	}
	size_format_up(plan->max_temp_nbytes, size);
	emit_row(sink, "temporary space", "%s%s", size,
		 plan->is_unbounded ? " for each GiB of input" : "");
}

/* The parts of the memory that no record lies in, and what is mapped. */
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

/* Of a device with memory of its own. */
static void emit_device(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32], all_devices[32];

	size_format(plan->device_nbytes, size);
	size_format(plan->n_devices * plan->device_nbytes, all_devices);
	if (plan->n_devices > 1)
		emit_row(sink, "device memory", "limit %s per device, %s in total", size,
			 all_devices);
	else
		emit_row(sink, "device memory", "limit %s", size);
	emit_size(sink, "host spill", plan->host_spill_nbytes,
		  " of spilled runs stay in host memory");
	if (plan->packs_on_device)
		emit_row(sink, "compression", "runs are compressed on the device");
	size_format(plan->slot_nbytes, size);
	emit_row(sink, "slots", "%u of %s", plan->n_slots, size);
}

static void emit_merge(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32];

	size_format(plan->window_nbytes, size);
	emit_row(sink, "windows", "%u in flight, of %s or more", plan->n_windows, size);
	size_format(plan->block_nbytes, size);
	emit_row(sink, "merge", "fan-in %u, blocks of %s", plan->fan_in, size);
	if (!is_size_unknown(plan))
		emit_passes(sink, plan);
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
	emit_row(&sink, "record", "%u bytes, sorted as elements of %u bytes", plan->record_nbytes,
		 plan->element_nbytes);
	emit_memory(&sink, plan);
	if (plan->copies_to_device)
		emit_device(&sink, plan);
	if (plan->n_chunks) {
		emit_chunks(&sink, plan);
		emit_runs(&sink, plan);
	}
	emit_merge(&sink, plan);
	emit_row(&sink, "threads", "%u readers, %u writers", plan->n_readers, plan->n_writers);
}

/* --- the estimate of one process --- */

static void print_plan_row(void *context, const char *name, const char *value)
{
	fprintf(context, "%-18s%s\n", name, value);
}

void plan_print(const struct plan *plan, FILE *stream)
{
	plan_text_for_each(plan, print_plan_row, stream);
}

static void print_stage(enum stage stage, uint64_t nbytes, double rate, bool is_bottleneck,
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
			print_stage(stage, loads->nbytes[phase][stage],
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

/* --- the estimate of several ranks --- */

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

static void print_resource(const struct cluster_estimate *loads, const struct rank_rates *rates,
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
				print_resource(loads, rates, phase, link, link == slowest, stream);
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

static void print_ranks(const struct cluster_estimate *loads, const struct rank_rates *rates,
			FILE *stream)
{
	print_rank_load(loads, stream);
	print_rank_totals(loads, stream);
	print_times(loads, rates, stream);
	fputs("\nlimits\n", stream);
	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++)
		print_limit(loads, i, stream);
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
		print_ranks(&explanation->rank_loads, &explanation->rank_rates, stream);
	else
		estimate_print(&explanation->plan, &explanation->loads, &explanation->rates,
			       stream);
}

/* --- JSON --- */

/* The explanation that is being written. */
struct explain_builder {
	struct json_builder json;
	const struct explanation *explanation;
	const struct plan *plan; /* of the explanation */
};

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known ? json_number(number) : json_null();
}

static json_t *positive_or_null(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

/* is_part: what is needed is so much of each part, of which nobody knows how many will come. */
static json_t *space_to_json(struct explain_builder *builder, const struct disk_space *space,
			     bool is_per_gib)
{
	const bool is_known = space->is_needed_known && space->is_available_known && !is_per_gib;
	json_t *object = json_object();

	json_put(&builder->json, object, "needed_bytes",
		 number_or_null(space->is_needed_known, space->needed_nbytes));
	json_put(&builder->json, object, "available_bytes",
		 number_or_null(space->is_available_known, space->available_nbytes));
	json_put(&builder->json, object, "sufficient",
		 is_known ? json_boolean(space->needed_nbytes <= space->available_nbytes) :
			    json_null());
	return object;
}

static json_t *input_to_json(struct explain_builder *builder)
{
	const struct plan *plan = builder->plan;
	const struct input_content *content = &builder->explanation->content;
	const struct cluster_estimate *ranks = &builder->explanation->rank_loads;
	const uint64_t nbytes = ranks->n_ranks ? ranks->total_input_nbytes : plan->expected_nbytes;
	const bool is_assumed = ranks->n_ranks ? builder->explanation->is_size_assumed :
						 plan->input_nbytes == PLAN_SIZE_UNKNOWN;
	json_t *object = json_object();

	json_put(&builder->json, object, "files", json_number(content->n_files));
	json_put(&builder->json, object, "bytes", number_or_null(!is_assumed, nbytes));
	json_put(&builder->json, object, "records",
		 number_or_null(!is_assumed, nbytes / plan->record_nbytes));
	json_put(&builder->json, object, "assumed_bytes",
		 number_or_null(is_assumed && !plan->is_unbounded, nbytes));
	json_put(&builder->json, object, "format", json_string(content->is_npy ? "npy" : "raw"));
	json_put(&builder->json, object, "compressed_files", json_number(content->n_compressed));
	json_put(&builder->json, object, "unprobed_files", json_number(content->n_unprobed));
	return object;
}

static json_t *memory_to_json(struct explain_builder *builder)
{
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	json_put(&builder->json, object, "limit_bytes",
		 json_number(plan->memory_nbytes + plan->exchange_nbytes));
	json_put(&builder->json, object, "exchange_bytes", json_number(plan->exchange_nbytes));
	json_put(&builder->json, object, "needed_bytes", json_number(plan->total_nbytes));
	json_put(&builder->json, object, "codec_bytes", json_number(plan->codec_nbytes));
	json_put(&builder->json, object, "index_bytes", json_number(plan->index_nbytes));
	json_put(&builder->json, object, "mapped_bytes", json_number(plan->mapped_nbytes));
	json_put(&builder->json, object, "devices", json_number(plan->n_devices));
	json_put(&builder->json, object, "device_bytes",
		 number_or_null(plan->copies_to_device, plan->device_nbytes));
	json_put(&builder->json, object, "all_devices_bytes",
		 number_or_null(plan->copies_to_device, plan->n_devices * plan->device_nbytes));
	json_put(&builder->json, object, "host_spill_bytes",
		 number_or_null(plan->copies_to_device, plan->host_spill_nbytes));
	return object;
}

static void put_run_plan(struct explain_builder *builder, json_t *object)
{
	const struct plan *plan = builder->plan;
	const uint64_t run_nbytes =
		plan->chunks_per_run * plan->chunk_records * plan->record_nbytes;

	json_put(&builder->json, object, "chunks", json_number(plan->n_chunks));
	json_put(&builder->json, object, "chunk_bytes",
		 json_number(plan->chunk_records * plan->record_nbytes));
	json_put(&builder->json, object, "chunk_buffer_bytes", json_number(plan->chunk_nbytes));
	json_put(&builder->json, object, "queues",
		 json_number((uint64_t)plan->n_devices * plan->n_queues));
	json_put(&builder->json, object, "fits_in_memory", json_boolean(plan->fits_in_memory));
	json_put(&builder->json, object, "run_bytes", json_number(run_nbytes));
	json_put(&builder->json, object, "device_compression", json_boolean(plan->packs_on_device));
}

static json_t *plan_to_json(struct explain_builder *builder)
{
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	if (plan->n_chunks)
		put_run_plan(builder, object);
	json_put(&builder->json, object, "runs_spilled",
		 number_or_null(!plan->is_unbounded, plan->n_spilled_runs));
	json_put(&builder->json, object, "windows", json_number(plan->n_windows));
	json_put(&builder->json, object, "window_bytes", json_number(plan->window_nbytes));
	json_put(&builder->json, object, "block_bytes", json_number(plan->block_nbytes));
	json_put(&builder->json, object, "fan_in", json_number(plan->fan_in));
	json_put(&builder->json, object, "passes",
		 number_or_null(!plan->is_unbounded, plan->n_passes));
	json_put(&builder->json, object, "partitions", json_number(plan->n_expected_partitions));
	json_put(&builder->json, object, "concurrent_partitions",
		 json_number(plan_concurrent_partitions(plan)));
	json_put(&builder->json, object, "readers", json_number(plan->n_readers));
	json_put(&builder->json, object, "writers", json_number(plan->n_writers));
	return object;
}

static json_t *stage_to_json(struct explain_builder *builder, enum phase phase, enum stage stage)
{
	const uint64_t nbytes = builder->explanation->loads.nbytes[phase][stage];
	const double rate =
		estimate_rate(builder->plan, &builder->explanation->rates, phase, stage);
	json_t *object = json_object();

	json_put(&builder->json, object, "name", json_string(stage_name(stage)));
	json_put(&builder->json, object, "bytes", json_number(nbytes));
	json_put(&builder->json, object, "bytes_per_s", positive_or_null(rate));
	json_put(&builder->json, object, "expected_s",
		 positive_or_null(estimate_stage_s(nbytes, rate)));
	return object;
}

static json_t *phase_to_json(struct explain_builder *builder, enum phase phase)
{
	const struct explanation *explanation = builder->explanation;
	json_t *object = json_object(), *stages = json_array();
	enum stage bottleneck;
	const double s = estimate_phase_s(builder->plan, &explanation->loads, &explanation->rates,
					  phase, &bottleneck);

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (explanation->loads.nbytes[phase][stage])
			json_append(&builder->json, stages, stage_to_json(builder, phase, stage));
	json_put(&builder->json, object, "name", json_string(phase_key(phase)));
	json_put(&builder->json, object, "expected_s", json_real(s));
	json_put(&builder->json, object, "bottleneck",
		 bottleneck < N_STAGES ? json_string(stage_name(bottleneck)) : json_null());
	json_put(&builder->json, object, "stages", stages);
	return object;
}

static void put_phases(struct explain_builder *builder, json_t *object)
{
	const struct explanation *explanation = builder->explanation;
	const struct stage_volumes *loads = &explanation->loads;
	const struct stage_rates *rates = &explanation->rates;
	json_t *phases = json_array();

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (estimate_has_phase(loads, phase))
			json_append(&builder->json, phases, phase_to_json(builder, phase));
	json_put(&builder->json, object, "expected_s",
		 json_real(estimate_total_s(builder->plan, loads, rates)));
	json_put(&builder->json, object, "complete",
		 json_boolean(estimate_is_complete(loads, rates)));
	json_put(&builder->json, object, "phases", phases);
}

static json_t *rank_load_to_json(struct explain_builder *builder)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *object = json_object();

	json_put(&builder->json, object, "read_bytes", json_number(loads->read_nbytes));
	json_put(&builder->json, object, "spilled_bytes", json_number(loads->spilled_nbytes));
	json_put(&builder->json, object, "spilled_to_memory_bytes",
		 json_number(loads->spilled_to_memory_nbytes));
	json_put(&builder->json, object, "merge_pass_bytes", json_number(loads->merge_pass_nbytes));
	json_put(&builder->json, object, "in_memory_exchange",
		 json_boolean(loads->in_memory_exchange));
	json_put(&builder->json, object, "written_bytes", json_number(loads->written_nbytes));
	json_put(&builder->json, object, "written_records", json_number(loads->n_output_records));
	json_put(&builder->json, object, "max_imbalance_bytes",
		 json_number(loads->max_imbalance_nbytes));
	json_put(&builder->json, object, "disk_bytes", json_number(loads->disk_nbytes));
	json_put(&builder->json, object, "received_bytes", json_number(loads->received_nbytes));
	json_put(&builder->json, object, "received_record_bytes", json_number(loads->items_nbytes));
	json_put(&builder->json, object, "messages", json_number(loads->n_messages));
	json_put(&builder->json, object, "message_bytes", json_number(loads->message_nbytes));
	json_put(&builder->json, object, "runs_stored", json_number(loads->n_runs));
	json_put(&builder->json, object, "runs_merged", json_number(loads->n_merged_runs));
	json_put(&builder->json, object, "splitter_rounds", json_number(loads->splitter_rounds));
	return object;
}

static json_t *rank_links_to_json(struct explain_builder *builder, enum rank_phase phase)
{
	const struct explanation *explanation = builder->explanation;
	const struct cluster_estimate *loads = &explanation->rank_loads;
	const struct rank_rates *rates = &explanation->rank_rates;
	json_t *links = json_array();

	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++) {
		const double s = rank_resource_s(loads, rates, phase, link);
		json_t *object = json_object();

		json_put(&builder->json, object, "name", json_string(rank_resource_name(link)));
		json_put(&builder->json, object, "amount", json_number(loads->nbytes[phase][link]));
		json_put(&builder->json, object, "per_s",
			 number_or_null(rates->per_s[link], rates->per_s[link]));
		json_put(&builder->json, object, "user_supplied",
			 json_boolean(rates->user_supplied[link]));
		json_put(&builder->json, object, "expected_s", positive_or_null(s));
		json_append(&builder->json, links, object);
	}
	return links;
}

static json_t *rank_phases_to_json(struct explain_builder *builder, double *ret_s)
{
	const struct explanation *explanation = builder->explanation;
	json_t *phases = json_array();

	*ret_s = 0;
	for (enum rank_phase phase = 0; phase < N_RANK_PHASES; phase++) {
		json_t *object = json_object();
		enum rank_resource slowest;
		const double s = rank_phase_s(&explanation->rank_loads, &explanation->rank_rates,
					      phase, &slowest);

		json_put(&builder->json, object, "name", json_string(rank_phase_key(phase)));
		json_put(&builder->json, object, "expected_s", json_real(s));
		json_put(&builder->json, object, "bottleneck",
			 json_string(rank_resource_name(slowest)));
		json_put(&builder->json, object, "links", rank_links_to_json(builder, phase));
		json_append(&builder->json, phases, object);
		*ret_s += s;
	}
	return phases;
}

static json_t *rank_limits_to_json(struct explain_builder *builder)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *array = json_array();

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++) {
		json_t *object = json_object();

		json_put(&builder->json, object, "name", json_string(rank_limit_key(i)));
		json_put(&builder->json, object, "value", json_number(loads->limits[i].value));
		json_put(&builder->json, object, "limit", json_number(loads->limits[i].limit));
		json_put(&builder->json, object, "exceeded",
			 json_boolean(loads->limits[i].ratio > 1));
		json_append(&builder->json, array, object);
	}
	return array;
}

/* Of several ranks, in the place of the phases of a sort on this machine. */
static void put_ranks(struct explain_builder *builder, json_t *object)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *ranks = json_object();
	double s;

	json_put(&builder->json, ranks, "ranks", json_number(loads->n_ranks));
	json_put(&builder->json, ranks, "per_rank", rank_load_to_json(builder));
	json_put(&builder->json, ranks, "phases", rank_phases_to_json(builder, &s));
	json_put(&builder->json, ranks, "limits", rank_limits_to_json(builder));
	json_put(&builder->json, ranks, "limiting_factor",
		 json_string(rank_limit_key(rank_limiting_factor(loads))));
	json_put(&builder->json, object, "expected_s", json_real(s));
	json_put(&builder->json, object, "complete",
		 json_boolean(rank_rates_is_complete(&builder->explanation->rank_rates)));
	json_put(&builder->json, object, "phases", json_array());
	json_put(&builder->json, object, "ranks", ranks);
}

static json_t *explanation_to_json(struct explain_builder *builder)
{
	const struct explanation *explanation = builder->explanation;
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	json_put(&builder->json, object, "version", json_string(GSORT_VERSION));
	json_put(&builder->json, object, "backend", json_string(plan->device));
	json_put(&builder->json, object, "type", json_string(explanation->summary.type));
	json_put(&builder->json, object, "record_bytes", json_number(plan->record_nbytes));
	json_put(&builder->json, object, "element_bytes", json_number(plan->element_nbytes));
	json_put(&builder->json, object, "per_input_bytes",
		 number_or_null(plan->is_unbounded, PLAN_UNBOUNDED_UNIT_NBYTES));
	json_put(&builder->json, object, "input", input_to_json(builder));
	json_put(&builder->json, object, "memory", memory_to_json(builder));
	json_put(&builder->json, object, "temporary",
		 space_to_json(builder, &explanation->temp_space, plan->is_unbounded));
	json_put(&builder->json, object, "output",
		 space_to_json(builder, &explanation->output_space, false));
	json_put(&builder->json, object, "plan", plan_to_json(builder));
	if (explanation->rank_loads.n_ranks)
		put_ranks(builder, object);
	else
		put_phases(builder, object);
	return object;
}

int explain_write_json(const struct explanation *explanation, FILE *stream)
{
	struct explain_builder builder = { .explanation = explanation, .plan = &explanation->plan };
	json_t *object = explanation_to_json(&builder);

	return json_write(&builder.json, object, 9, stream);
}

/* --- --debug --- */

/* Of so many records, so many bytes at most; a multiple of 8. */
enum { DEBUG_MAX_RECORDS = 5, DEBUG_MAX_NBYTES = 32, HEX_NBYTES = 2 * DEBUG_MAX_NBYTES + 4 };

static void write_hex(const unsigned char *bytes, uint64_t n, char text[static HEX_NBYTES])
{
	for (uint64_t i = 0; i < n && i < DEBUG_MAX_NBYTES; i++, text += 2)
		snprintf(text, 3, "%02x", bytes[i]);
	strcpy(text, n > DEBUG_MAX_NBYTES ? "..." : "");
}

/* The normalised key as its digits: records sort as these texts do. */
static void write_normalised_key(const struct key_fields *keys, const unsigned char *record,
				 char text[static HEX_NBYTES])
{
	unsigned char key[DEBUG_MAX_NBYTES];

	for (uint32_t offset = 0; offset < DEBUG_MAX_NBYTES; offset += 8) {
		const uint64_t word = htobe64(key_word(keys, record, offset));

		memcpy(key + offset, &word, 8);
	}
	write_hex(key, keys->key_nbytes, text);
}

static void report_keys(const struct sort_spec *spec)
{
	char type[KEY_TYPE_NBYTES];

	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];

		key_format_type(key, type);
		debug_line("key %" PRIu32 ": offset %" PRIu64 ", type %s, %" PRIu32 " bytes, %s",
			   i + 1, key->offset, type, key->nbytes,
			   key->descending ? "descending" : "ascending");
	}
}

static void report_layout(const struct layout *layout)
{
	const uint64_t nbytes = layout->record_nbytes;

	if (layout_is_key_only(layout))
		debug_line("record: %" PRIu64
			   " bytes, sorted as an encoded key in an element of %" PRIu32 " bytes%s",
			   nbytes, layout->element_nbytes,
			   key_encoding_is_identity(&layout->encoding) ?
				   ", which is the record itself" :
				   "");
	else if (layout_needs_refining(layout))
		debug_line("record: %" PRIu64 " bytes, sorted as the first %" PRIu32
			   " bytes of its encoded key of %" PRIu32
			   ", the rest where these are equal, in an element of %" PRIu32 " bytes",
			   nbytes, layout_prefix_nbytes(layout), layout->record_keys.key_nbytes,
			   layout->element_nbytes);
	else
		debug_line("record: %" PRIu64 " bytes, sorted as its encoded key of %" PRIu32
			   " bytes in an element of %" PRIu32 " bytes",
			   nbytes, layout->record_keys.key_nbytes, layout->element_nbytes);
}

static int report_records(const struct layout *layout, struct input *input, uint64_t n)
{
	const uint64_t nbytes = layout->record_nbytes;
	char record_hex[HEX_NBYTES], key_hex[HEX_NBYTES];
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
		write_normalised_key(&layout->record_keys, record, key_hex);
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

	report_keys(spec);
	report_layout(layout);
	if (nbytes == INPUT_SIZE_UNKNOWN) {
		debug_line("records: from a pipe, so not shown");
		return 0;
	}
	n = nbytes / layout->record_nbytes;
	return report_records(layout, input, n < DEBUG_MAX_RECORDS ? n : DEBUG_MAX_RECORDS);
}

void debug_report_device(const char *name)
{
	debug_line("device: %s", name);
}
