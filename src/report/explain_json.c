/*
 * explain_json - what --explain=json says (see explain.h; the schema is in docs/formats.md)
 *
 * The object is made as a whole, by libjansson, and then written. What there is no memory for is
 * NULL on its way into the object, which is noted, and all that is said.
 */
#include <errno.h>
#include <jansson.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/report/explain.h"

/* What is being made, and whether all of it could be. */
struct json_builder {
	const struct explanation *explanation;
	const struct plan *plan; /* of it */
	bool out_of_memory;      /* of memory */
};

/* The value is the object's. */
static void json_put(struct json_builder *builder, json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) < 0)
		builder->out_of_memory = true;
}

static void json_append(struct json_builder *builder, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		builder->out_of_memory = true;
}

static json_t *json_number(uint64_t number)
{
	return json_integer((json_int_t)number);
}

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known ? json_number(number) : json_null();
}

static json_t *positive_or_null(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

/* is_part: what is needed is so much of each part, of which nobody knows how many will come. */
static json_t *space_to_json(struct json_builder *builder, const struct disk_space *space,
			     bool is_per_gib)
{
	const bool is_known = space->is_needed_known && space->is_available_known && !is_per_gib;
	json_t *object = json_object();

	json_put(builder, object, "needed_bytes",
		 number_or_null(space->is_needed_known, space->needed_nbytes));
	json_put(builder, object, "available_bytes",
		 number_or_null(space->is_available_known, space->available_nbytes));
	json_put(builder, object, "sufficient",
		 is_known ? json_boolean(space->needed_nbytes <= space->available_nbytes) :
			    json_null());
	return object;
}

static json_t *input_to_json(struct json_builder *builder)
{
	const struct plan *plan = builder->plan;
	const struct input_content *content = &builder->explanation->content;
	const struct cluster_estimate *ranks = &builder->explanation->rank_loads;
	const uint64_t nbytes = ranks->n_ranks ? ranks->total_input_nbytes : plan->expected_nbytes;
	const bool is_assumed = ranks->n_ranks ? builder->explanation->is_size_assumed :
						 plan->input_nbytes == PLAN_SIZE_UNKNOWN;
	json_t *object = json_object();

	json_put(builder, object, "files", json_number(content->n_files));
	json_put(builder, object, "bytes", number_or_null(!is_assumed, nbytes));
	json_put(builder, object, "records",
		 number_or_null(!is_assumed, nbytes / plan->record_nbytes));
	json_put(builder, object, "assumed_bytes",
		 number_or_null(is_assumed && !plan->is_unbounded, nbytes));
	json_put(builder, object, "format", json_string(content->is_npy ? "npy" : "raw"));
	json_put(builder, object, "compressed_files", json_number(content->n_compressed));
	json_put(builder, object, "unprobed_files", json_number(content->n_unprobed));
	return object;
}

static json_t *memory_to_json(struct json_builder *builder)
{
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	json_put(builder, object, "limit_bytes",
		 json_number(plan->memory_nbytes + plan->exchange_nbytes));
	json_put(builder, object, "exchange_bytes", json_number(plan->exchange_nbytes));
	json_put(builder, object, "needed_bytes", json_number(plan->total_nbytes));
	json_put(builder, object, "codec_bytes", json_number(plan->codec_nbytes));
	json_put(builder, object, "index_bytes", json_number(plan->index_nbytes));
	json_put(builder, object, "mapped_bytes", json_number(plan->mapped_nbytes));
	json_put(builder, object, "devices", json_number(plan->n_devices));
	json_put(builder, object, "device_bytes",
		 number_or_null(plan->copies_to_device, plan->device_nbytes));
	json_put(builder, object, "all_devices_bytes",
		 number_or_null(plan->copies_to_device, plan->n_devices * plan->device_nbytes));
	json_put(builder, object, "host_spill_bytes",
		 number_or_null(plan->copies_to_device, plan->host_spill_nbytes));
	return object;
}

static void put_run_plan(struct json_builder *builder, json_t *object)
{
	const struct plan *plan = builder->plan;
	const uint64_t run_nbytes =
		plan->chunks_per_run * plan->chunk_records * plan->record_nbytes;

	json_put(builder, object, "chunks", json_number(plan->n_chunks));
	json_put(builder, object, "chunk_bytes",
		 json_number(plan->chunk_records * plan->record_nbytes));
	json_put(builder, object, "chunk_buffer_bytes", json_number(plan->chunk_nbytes));
	json_put(builder, object, "queues",
		 json_number((uint64_t)plan->n_devices * plan->n_queues));
	json_put(builder, object, "fits_in_memory", json_boolean(plan->fits_in_memory));
	json_put(builder, object, "run_bytes", json_number(run_nbytes));
	json_put(builder, object, "device_compression", json_boolean(plan->packs_on_device));
}

static json_t *plan_to_json(struct json_builder *builder)
{
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	if (plan->n_chunks)
		put_run_plan(builder, object);
	json_put(builder, object, "runs_spilled",
		 number_or_null(!plan->is_unbounded, plan->n_spilled_runs));
	json_put(builder, object, "windows", json_number(plan->n_windows));
	json_put(builder, object, "window_bytes", json_number(plan->window_nbytes));
	json_put(builder, object, "block_bytes", json_number(plan->block_nbytes));
	json_put(builder, object, "fan_in", json_number(plan->fan_in));
	json_put(builder, object, "passes", number_or_null(!plan->is_unbounded, plan->n_passes));
	json_put(builder, object, "partitions", json_number(plan->n_expected_partitions));
	json_put(builder, object, "concurrent_partitions",
		 json_number(plan_concurrent_partitions(plan)));
	json_put(builder, object, "readers", json_number(plan->n_readers));
	json_put(builder, object, "writers", json_number(plan->n_writers));
	return object;
}

static json_t *stage_to_json(struct json_builder *builder, enum phase phase, enum stage stage)
{
	const uint64_t nbytes = builder->explanation->loads.nbytes[phase][stage];
	const double rate =
		estimate_rate(builder->plan, &builder->explanation->rates, phase, stage);
	json_t *object = json_object();

	json_put(builder, object, "name", json_string(stage_name(stage)));
	json_put(builder, object, "bytes", json_number(nbytes));
	json_put(builder, object, "bytes_per_s", positive_or_null(rate));
	json_put(builder, object, "expected_s", positive_or_null(estimate_stage_s(nbytes, rate)));
	return object;
}

static json_t *phase_to_json(struct json_builder *builder, enum phase phase)
{
	const struct explanation *explanation = builder->explanation;
	json_t *object = json_object(), *stages = json_array();
	enum stage bottleneck;
	const double s = estimate_phase_s(builder->plan, &explanation->loads, &explanation->rates,
					  phase, &bottleneck);

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (explanation->loads.nbytes[phase][stage])
			json_append(builder, stages, stage_to_json(builder, phase, stage));
	json_put(builder, object, "name", json_string(phase_key(phase)));
	json_put(builder, object, "expected_s", json_real(s));
	json_put(builder, object, "bottleneck",
		 bottleneck < N_STAGES ? json_string(stage_name(bottleneck)) : json_null());
	json_put(builder, object, "stages", stages);
	return object;
}

static void put_phases(struct json_builder *builder, json_t *object)
{
	const struct explanation *explanation = builder->explanation;
	const struct stage_volumes *loads = &explanation->loads;
	const struct stage_rates *rates = &explanation->rates;
	json_t *phases = json_array();

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (estimate_has_phase(loads, phase))
			json_append(builder, phases, phase_to_json(builder, phase));
	json_put(builder, object, "expected_s",
		 json_real(estimate_total_s(builder->plan, loads, rates)));
	json_put(builder, object, "complete", json_boolean(estimate_is_complete(loads, rates)));
	json_put(builder, object, "phases", phases);
}

static json_t *rank_load_to_json(struct json_builder *builder)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *object = json_object();

	json_put(builder, object, "read_bytes", json_number(loads->read_nbytes));
	json_put(builder, object, "spilled_bytes", json_number(loads->spilled_nbytes));
	json_put(builder, object, "spilled_to_memory_bytes",
		 json_number(loads->spilled_to_memory_nbytes));
	json_put(builder, object, "merge_pass_bytes", json_number(loads->merge_pass_nbytes));
	json_put(builder, object, "in_memory_exchange", json_boolean(loads->in_memory_exchange));
	json_put(builder, object, "written_bytes", json_number(loads->written_nbytes));
	json_put(builder, object, "written_records", json_number(loads->n_output_records));
	json_put(builder, object, "max_imbalance_bytes", json_number(loads->max_imbalance_nbytes));
	json_put(builder, object, "disk_bytes", json_number(loads->disk_nbytes));
	json_put(builder, object, "received_bytes", json_number(loads->received_nbytes));
	json_put(builder, object, "received_record_bytes", json_number(loads->items_nbytes));
	json_put(builder, object, "messages", json_number(loads->n_messages));
	json_put(builder, object, "message_bytes", json_number(loads->message_nbytes));
	json_put(builder, object, "runs_stored", json_number(loads->n_runs));
	json_put(builder, object, "runs_merged", json_number(loads->n_merged_runs));
	json_put(builder, object, "splitter_rounds", json_number(loads->splitter_rounds));
	return object;
}

static json_t *rank_links_to_json(struct json_builder *builder, enum rank_phase phase)
{
	const struct explanation *explanation = builder->explanation;
	const struct cluster_estimate *loads = &explanation->rank_loads;
	const struct rank_rates *rates = &explanation->rank_rates;
	json_t *links = json_array();

	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++) {
		const double s = rank_resource_s(loads, rates, phase, link);
		json_t *object = json_object();

		json_put(builder, object, "name", json_string(rank_resource_name(link)));
		json_put(builder, object, "amount", json_number(loads->nbytes[phase][link]));
		json_put(builder, object, "per_s",
			 number_or_null(rates->per_s[link], rates->per_s[link]));
		json_put(builder, object, "user_supplied",
			 json_boolean(rates->user_supplied[link]));
		json_put(builder, object, "expected_s", positive_or_null(s));
		json_append(builder, links, object);
	}
	return links;
}

static json_t *rank_phases_to_json(struct json_builder *builder, double *ret_s)
{
	const struct explanation *explanation = builder->explanation;
	json_t *phases = json_array();

	*ret_s = 0;
	for (enum rank_phase phase = 0; phase < N_RANK_PHASES; phase++) {
		json_t *object = json_object();
		enum rank_resource slowest;
		const double s = rank_phase_s(&explanation->rank_loads, &explanation->rank_rates,
					      phase, &slowest);

		json_put(builder, object, "name", json_string(rank_phase_key(phase)));
		json_put(builder, object, "expected_s", json_real(s));
		json_put(builder, object, "bottleneck", json_string(rank_resource_name(slowest)));
		json_put(builder, object, "links", rank_links_to_json(builder, phase));
		json_append(builder, phases, object);
		*ret_s += s;
	}
	return phases;
}

static json_t *rank_limits_to_json(struct json_builder *builder)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *limits = json_array();

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++) {
		json_t *object = json_object();

		json_put(builder, object, "name", json_string(rank_limit_key(i)));
		json_put(builder, object, "value", json_number(loads->limits[i].value));
		json_put(builder, object, "limit", json_number(loads->limits[i].limit));
		json_put(builder, object, "exceeded", json_boolean(loads->limits[i].ratio > 1));
		json_append(builder, limits, object);
	}
	return limits;
}

/* Of several ranks, in the place of the phases of a sort on this machine. */
static void put_ranks(struct json_builder *builder, json_t *object)
{
	const struct cluster_estimate *loads = &builder->explanation->rank_loads;
	json_t *ranks = json_object();
	double s;

	json_put(builder, ranks, "ranks", json_number(loads->n_ranks));
	json_put(builder, ranks, "per_rank", rank_load_to_json(builder));
	json_put(builder, ranks, "phases", rank_phases_to_json(builder, &s));
	json_put(builder, ranks, "limits", rank_limits_to_json(builder));
	json_put(builder, ranks, "limiting_factor",
		 json_string(rank_limit_key(rank_limiting_factor(loads))));
	json_put(builder, object, "expected_s", json_real(s));
	json_put(builder, object, "complete",
		 json_boolean(rank_rates_is_complete(&builder->explanation->rank_rates)));
	json_put(builder, object, "phases", json_array());
	json_put(builder, object, "ranks", ranks);
}

static json_t *explanation_to_json(struct json_builder *builder)
{
	const struct explanation *explanation = builder->explanation;
	const struct plan *plan = builder->plan;
	json_t *object = json_object();

	json_put(builder, object, "version", json_string(GSORT_VERSION));
	json_put(builder, object, "backend", json_string(plan->device));
	json_put(builder, object, "type", json_string(explanation->summary.type));
	json_put(builder, object, "record_bytes", json_number(plan->record_nbytes));
	json_put(builder, object, "element_bytes", json_number(plan->element_nbytes));
	json_put(builder, object, "per_input_bytes",
		 number_or_null(plan->is_unbounded, PLAN_UNBOUNDED_UNIT_NBYTES));
	json_put(builder, object, "input", input_to_json(builder));
	json_put(builder, object, "memory", memory_to_json(builder));
	json_put(builder, object, "temporary",
		 space_to_json(builder, &explanation->temp_space, plan->is_unbounded));
	json_put(builder, object, "output",
		 space_to_json(builder, &explanation->output_space, false));
	json_put(builder, object, "plan", plan_to_json(builder));
	if (explanation->rank_loads.n_ranks)
		put_ranks(builder, object);
	else
		put_phases(builder, object);
	return object;
}

int explain_write_json(const struct explanation *explanation, FILE *stream)
{
	struct json_builder builder = { .explanation = explanation, .plan = &explanation->plan };
	json_t *object = explanation_to_json(&builder);
	int r = 0;

	if (builder.out_of_memory)
		r = fail(-ENOMEM, "no memory for an explanation in JSON");
	else if (json_dumpf(object, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0)
		fputc('\n', stream);
	json_decref(object);
	return r;
}
