/*
 * explain_json - what --explain=json says (see explain.h; the schema is in docs/formats.md)
 */
#include "src/report/explain.h"

#include <math.h>

#include "config.h"
#include "src/report/json.h"

/* A number, or null where it is not known. */
static void write_known(struct json *json, const char *name, bool is_known, uint64_t number)
{
	if (is_known)
		json_u64(json, name, number);
	else
		json_none(json, name);
}

/* is_part: what is needed is so much of each part, of which nobody knows how many will come. */
static void write_room(struct json *json, const char *name, const struct room *room, bool is_part)
{
	json_open(json, name, '{');
	write_known(json, "needed_bytes", room->is_needed_known, room->needed_nbytes);
	write_known(json, "available_bytes", room->is_available_known, room->available_nbytes);
	if (room->is_needed_known && room->is_available_known && !is_part)
		json_bool(json, "is_enough", room->needed_nbytes <= room->available_nbytes);
	else
		json_none(json, "is_enough");
	json_close(json);
}

static void write_input(struct json *json, const struct explanation *explanation)
{
	const struct plan *plan = &explanation->plan;
	const struct input_content *content = &explanation->content;
	const bool is_known = plan->input_nbytes != PLAN_SIZE_UNKNOWN;

	json_open(json, "input", '{');
	json_u64(json, "files", content->n_files);
	write_known(json, "bytes", is_known, plan->input_nbytes);
	write_known(json, "records", is_known, plan->input_nbytes / plan->record_nbytes);
	write_known(json, "assumed_bytes", !is_known && !plan->is_endless, plan->expected_nbytes);
	json_text(json, "format", content->is_npy ? "npy" : "raw");
	json_u64(json, "compressed_files", content->n_compressed);
	json_u64(json, "unseen_files", content->n_unseen);
	json_close(json);
}

static void write_memory(struct json *json, const struct plan *plan)
{
	json_open(json, "memory", '{');
	json_u64(json, "limit_bytes", plan->memory_nbytes);
	json_u64(json, "needed_bytes", plan->total_nbytes);
	json_u64(json, "codecs_bytes", plan->side_nbytes);
	json_u64(json, "index_bytes", plan->index_nbytes);
	json_u64(json, "mapped_bytes", plan->mapped_nbytes);
	write_known(json, "device_bytes", plan->copies, plan->device_nbytes);
	write_known(json, "host_tier_bytes", plan->copies, plan->host_tier_nbytes);
	json_close(json);
}

static void write_runs(struct json *json, const struct plan *plan)
{
	json_u64(json, "chunks", plan->n_chunks);
	json_u64(json, "chunk_bytes", plan->chunk_nbytes);
	json_u64(json, "lanes", plan->n_lanes);
	json_bool(json, "fits", plan->fits);
	write_known(json, "runs_spilled", !plan->is_endless, plan->n_spilled_runs);
	json_u64(json, "run_bytes", plan->spill_chunks * plan->chunk_records * plan->record_nbytes);
	json_bool(json, "packs", plan->packs);
}

static void write_plan(struct json *json, const struct plan *plan)
{
	json_open(json, "plan", '{');
	if (plan->n_chunks)
		write_runs(json, plan);
	json_u64(json, "windows", plan->n_windows);
	json_u64(json, "window_bytes", plan->window_nbytes);
	json_u64(json, "block_bytes", plan->block_nbytes);
	json_u64(json, "fan_in", plan->fan_in);
	write_known(json, "passes", !plan->is_endless, plan->n_passes);
	json_u64(json, "ranges", plan->n_ranges);
	json_u64(json, "readers", plan->n_readers);
	json_u64(json, "writers", plan->n_writers);
	json_close(json);
}

static void write_stage(struct json *json, enum stage stage, uint64_t nbytes, double rate)
{
	json_open(json, NULL, '{');
	json_text(json, "name", stage_name(stage));
	json_u64(json, "bytes", nbytes);
	json_number(json, "bytes_per_s", rate > 0 ? rate : NAN, 0);
	json_number(json, "expected_s", rate > 0 ? estimate_stage_s(nbytes, rate) : NAN, 6);
	json_close(json);
}

static void write_phase(struct json *json, const struct explanation *explanation, enum phase phase)
{
	const uint64_t *nbytes = explanation->loads.nbytes[phase];
	enum stage bottleneck;
	const double s = estimate_phase_s(&explanation->plan, &explanation->loads,
					  &explanation->rates, phase, &bottleneck);

	json_open(json, NULL, '{');
	json_text(json, "name", phase_key(phase));
	json_number(json, "expected_s", s, 6);
	json_text(json, "bottleneck", bottleneck < N_STAGES ? stage_name(bottleneck) : NULL);
	json_open(json, "stages", '[');
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (nbytes[stage])
			write_stage(json, stage, nbytes[stage], explanation->rates.rates[stage]);
	json_close(json);
	json_close(json);
}

static void write_phases(struct json *json, const struct explanation *explanation)
{
	json_number(json, "expected_s",
		    estimate_s(&explanation->plan, &explanation->loads, &explanation->rates), 6);
	json_bool(json, "is_complete",
		  estimate_is_complete(&explanation->loads, &explanation->rates));
	json_open(json, "phases", '[');
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (estimate_has_phase(&explanation->loads, phase))
			write_phase(json, explanation, phase);
	json_close(json);
}

void explain_write_json(const struct explanation *explanation, FILE *stream)
{
	const struct plan *plan = &explanation->plan;
	struct json json = { .stream = stream };

	json_open(&json, NULL, '{');
	json_text(&json, "version", GSORT_VERSION);
	json_text(&json, "backend", plan->device);
	json_text(&json, "type", explanation->facts.type);
	json_u64(&json, "record_bytes", plan->record_nbytes);
	json_u64(&json, "element_bytes", plan->element_nbytes);
	write_known(&json, "for_each_bytes", plan->is_endless, PLAN_PER_NBYTES);
	write_input(&json, explanation);
	write_memory(&json, plan);
	write_room(&json, "temporary", &explanation->temporary, plan->is_endless);
	write_room(&json, "output", &explanation->output, false);
	write_plan(&json, plan);
	write_phases(&json, explanation);
	json_close(&json);
}
