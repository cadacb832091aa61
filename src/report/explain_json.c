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
struct making {
	const struct explanation *explanation;
	const struct plan *plan; /* of it */
	bool is_short;           /* of memory */
};

/* The value is the object's. */
static void put(struct making *making, json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) < 0)
		making->is_short = true;
}

static void append(struct making *making, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		making->is_short = true;
}

static json_t *number_of(uint64_t number)
{
	return json_integer((json_int_t)number);
}

static json_t *known(bool is_known, uint64_t number)
{
	return is_known ? number_of(number) : json_null();
}

static json_t *positive(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

/* is_part: what is needed is so much of each part, of which nobody knows how many will come. */
static json_t *room_of(struct making *making, const struct room *room, bool is_part)
{
	const bool is_known = room->is_needed_known && room->is_available_known && !is_part;
	json_t *object = json_object();

	put(making, object, "needed_bytes", known(room->is_needed_known, room->needed_nbytes));
	put(making, object, "available_bytes",
	    known(room->is_available_known, room->available_nbytes));
	put(making, object, "sufficient",
	    is_known ? json_boolean(room->needed_nbytes <= room->available_nbytes) : json_null());
	return object;
}

static json_t *input_of(struct making *making)
{
	const struct plan *plan = making->plan;
	const struct input_content *content = &making->explanation->content;
	const struct rank_loads *ranks = &making->explanation->rank_loads;
	const uint64_t nbytes = ranks->n_ranks ? ranks->all_nbytes : plan->expected_nbytes;
	const bool is_assumed = ranks->n_ranks ? making->explanation->is_size_assumed :
						 plan->input_nbytes == PLAN_SIZE_UNKNOWN;
	json_t *object = json_object();

	put(making, object, "files", number_of(content->n_files));
	put(making, object, "bytes", known(!is_assumed, nbytes));
	put(making, object, "records", known(!is_assumed, nbytes / plan->record_nbytes));
	put(making, object, "assumed_bytes", known(is_assumed && !plan->is_endless, nbytes));
	put(making, object, "format", json_string(content->is_npy ? "npy" : "raw"));
	put(making, object, "compressed_files", number_of(content->n_compressed));
	put(making, object, "unprobed_files", number_of(content->n_unseen));
	return object;
}

static json_t *memory_of(struct making *making)
{
	const struct plan *plan = making->plan;
	json_t *object = json_object();

	put(making, object, "limit_bytes", number_of(plan->memory_nbytes + plan->exchange_nbytes));
	put(making, object, "exchange_bytes", number_of(plan->exchange_nbytes));
	put(making, object, "needed_bytes", number_of(plan->total_nbytes));
	put(making, object, "codec_bytes", number_of(plan->side_nbytes));
	put(making, object, "index_bytes", number_of(plan->index_nbytes));
	put(making, object, "mapped_bytes", number_of(plan->mapped_nbytes));
	put(making, object, "devices", number_of(plan->n_devices));
	put(making, object, "device_bytes", known(plan->copies, plan->device_nbytes));
	put(making, object, "all_devices_bytes",
	    known(plan->copies, plan->n_devices * plan->device_nbytes));
	put(making, object, "host_spill_bytes", known(plan->copies, plan->host_tier_nbytes));
	return object;
}

static void put_runs(struct making *making, json_t *object)
{
	const struct plan *plan = making->plan;
	const uint64_t run_nbytes = plan->spill_chunks * plan->chunk_records * plan->record_nbytes;

	put(making, object, "chunks", number_of(plan->n_chunks));
	put(making, object, "chunk_bytes", number_of(plan->chunk_records * plan->record_nbytes));
	put(making, object, "chunk_buffer_bytes", number_of(plan->chunk_nbytes));
	put(making, object, "queues", number_of((uint64_t)plan->n_devices * plan->n_lanes));
	put(making, object, "fits_in_memory", json_boolean(plan->fits));
	put(making, object, "run_bytes", number_of(run_nbytes));
	put(making, object, "device_compression", json_boolean(plan->packs));
}

static json_t *plan_of(struct making *making)
{
	const struct plan *plan = making->plan;
	json_t *object = json_object();

	if (plan->n_chunks)
		put_runs(making, object);
	put(making, object, "runs_spilled", known(!plan->is_endless, plan->n_spilled_runs));
	put(making, object, "windows", number_of(plan->n_windows));
	put(making, object, "window_bytes", number_of(plan->window_nbytes));
	put(making, object, "block_bytes", number_of(plan->block_nbytes));
	put(making, object, "fan_in", number_of(plan->fan_in));
	put(making, object, "passes", known(!plan->is_endless, plan->n_passes));
	put(making, object, "partitions", number_of(plan->n_expected_ranges));
	put(making, object, "concurrent_partitions", number_of(plan_ranges_at_once(plan)));
	put(making, object, "readers", number_of(plan->n_readers));
	put(making, object, "writers", number_of(plan->n_writers));
	return object;
}

static json_t *stage_of(struct making *making, enum phase phase, enum stage stage)
{
	const uint64_t nbytes = making->explanation->loads.nbytes[phase][stage];
	const double rate = estimate_rate(making->plan, &making->explanation->rates, phase, stage);
	json_t *object = json_object();

	put(making, object, "name", json_string(stage_name(stage)));
	put(making, object, "bytes", number_of(nbytes));
	put(making, object, "bytes_per_s", positive(rate));
	put(making, object, "expected_s", positive(estimate_stage_s(nbytes, rate)));
	return object;
}

static json_t *phase_of(struct making *making, enum phase phase)
{
	const struct explanation *explanation = making->explanation;
	json_t *object = json_object(), *stages = json_array();
	enum stage bottleneck;
	const double s = estimate_phase_s(making->plan, &explanation->loads, &explanation->rates,
					  phase, &bottleneck);

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (explanation->loads.nbytes[phase][stage])
			append(making, stages, stage_of(making, phase, stage));
	put(making, object, "name", json_string(phase_key(phase)));
	put(making, object, "expected_s", json_real(s));
	put(making, object, "bottleneck",
	    bottleneck < N_STAGES ? json_string(stage_name(bottleneck)) : json_null());
	put(making, object, "stages", stages);
	return object;
}

static void put_phases(struct making *making, json_t *object)
{
	const struct explanation *explanation = making->explanation;
	const struct loads *loads = &explanation->loads;
	const struct link_rates *rates = &explanation->rates;
	json_t *phases = json_array();

	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (estimate_has_phase(loads, phase))
			append(making, phases, phase_of(making, phase));
	put(making, object, "expected_s", json_real(estimate_s(making->plan, loads, rates)));
	put(making, object, "complete", json_boolean(estimate_is_complete(loads, rates)));
	put(making, object, "phases", phases);
}

static json_t *share_of(struct making *making)
{
	const struct rank_loads *loads = &making->explanation->rank_loads;
	json_t *object = json_object();

	put(making, object, "read_bytes", number_of(loads->read_nbytes));
	put(making, object, "spilled_bytes", number_of(loads->spilled_nbytes));
	put(making, object, "spilled_to_memory_bytes", number_of(loads->kept_nbytes));
	put(making, object, "merge_pass_bytes", number_of(loads->passes_nbytes));
	put(making, object, "in_memory_exchange", json_boolean(loads->trades));
	put(making, object, "written_bytes", number_of(loads->written_nbytes));
	put(making, object, "written_records", number_of(loads->n_output_records));
	put(making, object, "max_imbalance_bytes", number_of(loads->uneven_nbytes));
	put(making, object, "disk_bytes", number_of(loads->disk_nbytes));
	put(making, object, "received_bytes", number_of(loads->received_nbytes));
	put(making, object, "received_record_bytes", number_of(loads->items_nbytes));
	put(making, object, "messages", number_of(loads->n_messages));
	put(making, object, "message_bytes", number_of(loads->message_nbytes));
	put(making, object, "runs_stored", number_of(loads->n_runs));
	put(making, object, "runs_merged", number_of(loads->n_merged));
	put(making, object, "splitter_rounds", number_of(loads->n_cut_rounds));
	return object;
}

static json_t *rank_links_of(struct making *making, enum rank_phase phase)
{
	const struct explanation *explanation = making->explanation;
	const struct rank_loads *loads = &explanation->rank_loads;
	const struct rank_rates *rates = &explanation->rank_rates;
	json_t *links = json_array();

	for (enum rank_link link = 0; link < N_RANK_LINKS; link++) {
		const double s = rank_link_s(loads, rates, phase, link);
		json_t *object = json_object();

		put(making, object, "name", json_string(rank_link_name(link)));
		put(making, object, "amount", number_of(loads->nbytes[phase][link]));
		put(making, object, "per_s", known(rates->per_s[link], rates->per_s[link]));
		put(making, object, "user_supplied", json_boolean(rates->is_stated[link]));
		put(making, object, "expected_s", positive(s));
		append(making, links, object);
	}
	return links;
}

static json_t *rank_phases_of(struct making *making, double *ret_s)
{
	const struct explanation *explanation = making->explanation;
	json_t *phases = json_array();

	*ret_s = 0;
	for (enum rank_phase phase = 0; phase < N_RANK_PHASES; phase++) {
		json_t *object = json_object();
		enum rank_link slowest;
		const double s = rank_phase_s(&explanation->rank_loads, &explanation->rank_rates,
					      phase, &slowest);

		put(making, object, "name", json_string(rank_phase_key(phase)));
		put(making, object, "expected_s", json_real(s));
		put(making, object, "bottleneck", json_string(rank_link_name(slowest)));
		put(making, object, "links", rank_links_of(making, phase));
		append(making, phases, object);
		*ret_s += s;
	}
	return phases;
}

static json_t *rank_limits_of(struct making *making)
{
	const struct rank_loads *loads = &making->explanation->rank_loads;
	json_t *limits = json_array();

	for (enum rank_limit i = 0; i < N_RANK_LIMITS; i++) {
		json_t *object = json_object();

		put(making, object, "name", json_string(rank_limit_key(i)));
		put(making, object, "value", number_of(loads->limits[i].is));
		put(making, object, "limit", number_of(loads->limits[i].limit));
		put(making, object, "exceeded", json_boolean(loads->limits[i].part > 1));
		append(making, limits, object);
	}
	return limits;
}

/* Of several ranks, in the place of the phases of a sort on this machine. */
static void put_ranks(struct making *making, json_t *object)
{
	const struct rank_loads *loads = &making->explanation->rank_loads;
	json_t *ranks = json_object();
	double s;

	put(making, ranks, "ranks", number_of(loads->n_ranks));
	put(making, ranks, "per_rank", share_of(making));
	put(making, ranks, "phases", rank_phases_of(making, &s));
	put(making, ranks, "limits", rank_limits_of(making));
	put(making, ranks, "limiting_factor",
	    json_string(rank_limit_key(rank_nearest_limit(loads))));
	put(making, object, "expected_s", json_real(s));
	put(making, object, "complete",
	    json_boolean(rank_rates_are_complete(&making->explanation->rank_rates)));
	put(making, object, "phases", json_array());
	put(making, object, "ranks", ranks);
}

static json_t *object_of(struct making *making)
{
	const struct explanation *explanation = making->explanation;
	const struct plan *plan = making->plan;
	json_t *object = json_object();

	put(making, object, "version", json_string(GSORT_VERSION));
	put(making, object, "backend", json_string(plan->device));
	put(making, object, "type", json_string(explanation->facts.type));
	put(making, object, "record_bytes", number_of(plan->record_nbytes));
	put(making, object, "element_bytes", number_of(plan->element_nbytes));
	put(making, object, "per_input_bytes", known(plan->is_endless, PLAN_PER_NBYTES));
	put(making, object, "input", input_of(making));
	put(making, object, "memory", memory_of(making));
	put(making, object, "temporary",
	    room_of(making, &explanation->temporary, plan->is_endless));
	put(making, object, "output", room_of(making, &explanation->output, false));
	put(making, object, "plan", plan_of(making));
	if (explanation->rank_loads.n_ranks)
		put_ranks(making, object);
	else
		put_phases(making, object);
	return object;
}

int explain_write_json(const struct explanation *explanation, FILE *stream)
{
	struct making making = { .explanation = explanation, .plan = &explanation->plan };
	json_t *object = object_of(&making);
	int r = 0;

	if (making.is_short)
		r = fail(-ENOMEM, "no memory for an explanation in JSON");
	else if (json_dumpf(object, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0)
		fputc('\n', stream);
	json_decref(object);
	return r;
}
