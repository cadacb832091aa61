/*
 * setup - opening what all parts of a sort share (see setup.h)
 */
#include "src/sort/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/input_mapped.h"
#include "src/base/diagnostics.h"
#include "src/rungen/chunk_pool.h"
#include "src/plan/cache_policy.h"
#include "src/sort/output_framing.h"
#include "src/sort/sort_output.h"
#include "src/sort/setup_internal.h"
#include "src/sort/open_devices.h"

/* With less device memory than this it is not worth trying. */
static const uint64_t min_device_nbytes = UINT64_C(16) << 20;

_Static_assert((int)INPUT_MAX_MAPPED <= (int)BACKEND_MAX_SOURCES, "all can be referred to");

/* Starting a GPU takes a fifth of a second, in which a disk can read so much. */
static const uint64_t prefetch_nbytes = UINT64_C(256) << 20;

/* It is known what a record is: from the spec, or from the inputs, if these say so. */
static int resolve_spec(struct resolved_spec *resolved, struct job *job)
{
	const struct sort_spec unresolved = resolved->spec;
	const struct sort_observer *observer = resolved->observer;
	int r = spec_resolve(&unresolved, job->input,
			     unresolved.n_inputs ? unresolved.inputs[0] : "", &resolved->spec,
			     &resolved->keys);

	if (r < 0)
		return r;
	input_resolve(job->input);
	resolved->is_resolved = true;
	r = spec_layout(&resolved->spec, &job->requested_layout);
	if (r == 0)
		r = output_framing_make_header(&resolved->spec, &job->requested_layout, job->input,
					       &resolved->header);
	if (r < 0)
		return r;
	resolved->spec.header_nbytes = resolved->header.nbytes;
	r = sort_output_check_size(&resolved->spec, job);
	if (r == 0 && observer->on_opened)
		r = observer->on_opened(observer->context, &resolved->spec, job->layout,
					job->input);
	return r;
}

int setup_open_inputs(const struct sort_spec *spec, const struct sort_observer *observer,
		      struct resolved_spec *ret_resolved, struct job *job)
{
	const struct framing framing = spec_framing(spec);
	int r;

	*ret_resolved = (struct resolved_spec){ .spec = *spec, .observer = observer };
	job->io = spec->io ? spec->io : &syscalls_plain;
	job->cancellation = spec->cancellation;
	job->layout = &job->requested_layout;
	job->unique = spec->unique;
	job->limit = spec->limit;
	r = input_open_endpoints(job->io, spec->inputs, spec->input_endpoints, spec->n_inputs,
				 &framing, &job->input);
	if (r == 0 && input_is_resolved(job->input))
		r = resolve_spec(ret_resolved, job);
	return r;
}

void setup_close_inputs(struct resolved_spec *resolved, struct job *job)
{
	input_close(job->input);
	layout_free(&job->requested_layout);
	output_header_free(&resolved->header);
	free(resolved->keys);
	*resolved = (struct resolved_spec){ 0 };
}

int setup_probe_inputs(struct resolved_spec *resolved, struct job *job, bool may_open)
{
	int r;

	if (input_total_nbytes(job->input) != INPUT_SIZE_UNKNOWN ||
	    (resolved->spec.merge_inputs && resolved->is_resolved))
		return 0;
	stats_begin_phase(job->stats, PHASE_RUN_GENERATION, 0);
	r = input_probe_pipe(job->input, may_open);
	return r < 0 || resolved->is_resolved ? r : resolve_spec(resolved, job);
}

static int choose_backend(const struct job *job, const struct setup *setup,
			  const struct backend **ret_backend)
{
	return backend_choose(setup->spec->backend, setup_local_input_nbytes(job, setup),
			      setup_n_threads(setup->spec), ret_backend);
}

static int open_setup_devices(struct job *job, const struct backend *backend,
			      const struct setup *setup)
{
	const struct open_devices_params params = {
		.n_threads = setup_n_threads(setup->spec),
		.input_nbytes = setup_local_input_nbytes(job, setup),
		.assignment = setup->assignment,
	};

	if (backend != &backend_cpu) {
		input_prefetch(job->input, prefetch_nbytes);
		if (setup->output)
			sort_output_start_prefault(setup->output);
	}
	return open_devices(job, backend, setup->spec, &params);
}

enum cache_policy setup_spill_cache_policy(const struct job *job)
{
	const enum cache_policy use = cache_policy_choose(job, job->plan.temp_nbytes);

	/* What a checkpoint keeps has to be brought to the disk in any case. */
	return job->checkpoint_hooks && use == CACHE_ADAPTIVE ? CACHE_BYPASS : use;
}

/* For who looks on. */
static uint64_t used_spill_nbytes(void *spill)
{
	return spill_used_nbytes_nowait(spill);
}

/* Of other ranks' runs, too, what fits stays in memory: see prepare_runs.c. */
static uint64_t spill_memory_limit(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;

	return spec_exchanges_runs(spec) && plan->fits_in_memory && !plan->copies_to_device ?
		       plan->n_chunks * plan->chunk_nbytes :
		       plan->host_spill_nbytes;
}

static int open_spill(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	int r = setup->checkpoint ? checkpoint_open_spill(setup->checkpoint, &job->spill) :
				    spill_open(job->io, spec->temp_dirs, spec->n_temp_dirs,
					       spec->temp_limit_nbytes,
					       spill_memory_limit(job, spec), &job->spill);

	if (r == 0)
		stats_set_temp_space_source(job->stats, used_spill_nbytes, job->spill);
	if (r == 0 && !spec->comm) /* they choose together */
		cache_policy_apply_to_spill(setup_spill_cache_policy(job), job->spill);
	if (r == 0)
		r = compression_open(&spec->compression, job->layout->stores_elements,
				     &job->compression);
	return r < 0 ? r : temp_space_check(job, spec);
}

/* Plan, and get the device memory that is planned; smaller if it cannot be had. */
static int open_pool(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	int r;

	setup_plan(job, setup);
	r = setup_check_memory(job, spec);
	if (r < 0 || setup->explain_only || spec->merge_inputs)
		return r;
	r = chunk_pool_open(job, &job->chunk_pool);
	while (r == -ENOMEM && job->device_info.memory_nbytes > min_device_nbytes) {
		job->device_info.memory_nbytes /= 2;
		setup_plan(job, setup);
		r = chunk_pool_open(job, &job->chunk_pool);
	}
	return r;
}

/* Could elements refer to all records of the input, and be all that is sorted? */
static bool can_sort_indirect(struct job *job, const struct sort_spec *spec)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	return !spec->merge_inputs && !spec_is_distributed(spec) && !job->unique &&
	       job->limit == UINT64_MAX && !spec->checkpoint_path && nbytes != INPUT_SIZE_UNKNOWN &&
	       nbytes / job->layout->record_nbytes <= UINT32_MAX &&
	       layout_make_indirect(job->layout, &job->indirect_layout) &&
	       device_supports_layout(job_device(job), &job->indirect_layout);
}

static void record_mapped_sources(struct job *job)
{
	for (size_t i = 0; i < input_n_files(job->input); i++)
		job->sources[job->n_sources++] = (struct slice){
			.elements = input_mapped_file(job->input, i),
			.n = input_file_extent(job->input, i).nbytes / job->layout->record_nbytes,
		};
}

/*
 * Records that are in the page cache, and fit into the memory there, are sorted from where they
 * are. Else they are read.
 */
static int choose_layout(struct job *job, const struct setup *setup)
{
	const struct layout *original = job->layout;
	int r = 0;

	if (!can_sort_indirect(job, setup->spec))
		return 0;
	job->layout = &job->indirect_layout;
	setup_plan(job, setup);
	if (job->plan.fits_in_memory)
		r = input_map(job->input);
	if (r > 0)
		record_mapped_sources(job);
	else
		job->layout = original;
	return r < 0 ? r : 0;
}

/* Device, plan and chunk buffers; -ENOMEM without a message. */
static int open_resources(struct job *job, const struct backend *backend, const struct setup *setup)
{
	int r = open_setup_devices(job, backend, setup);

	if (r == 0)
		r = choose_layout(job, setup);
	return r < 0 ? r : open_pool(job, setup);
}

/* The same for one that may fail, which is no failure of the sort: the reason is the caller's. */
static int try_open_resources(struct job *job, const struct backend *backend,
			      const struct setup *setup, struct captured_error *ret_error)
{
	struct message_capture *capture;
	int r = message_capture_begin(&capture);

	if (r < 0)
		return r;
	r = open_resources(job, backend, setup);
	message_capture_end(capture, ret_error);
	return r;
}

/*
 * A GPU that nobody asked for need not be had: busy, broken, or without memory. Then the CPU sorts.
 * One that --gpus names is wanted; but not more memory than it has.
 */
static int open_resources_with_fallback(struct job *job, const struct setup *setup,
					const struct backend **backend)
{
	const struct sort_spec *spec = setup->spec;
	const bool has_choice = spec->backend == BACKEND_AUTO && *backend != &backend_cpu;
	const bool may_fail = has_choice && spec->n_gpus == 0 && !spec->all_gpus;
	struct captured_error error = { 0 };
	int r = may_fail ? try_open_resources(job, *backend, setup, &error) :
			   open_resources(job, *backend, setup);

	if (!(r == -ENOMEM && has_choice) && !(r < 0 && may_fail)) {
		free(error.text);
		return r;
	}
	warn("%s; sorting on the CPU", r == -ENOMEM ? "the GPU has not enough free memory" :
				       error.text   ? error.text :
						      "the GPU cannot be used");
	free(error.text);
	close_devices(job);
	if (setup->output)
		sort_output_stop_prefault(setup->output);
	*backend = &backend_cpu;
	return open_resources(job, *backend, setup);
}

/* Which devices are this process's, or are taken to be: of ranks elsewhere each has one. */
static int assign_devices(struct setup *setup, const struct backend *backend)
{
	const struct sort_spec *spec = setup->spec;
	const unsigned n = backend_n_devices(backend);

	setup->assignment = DEVICE_ASSIGNMENT_EXCLUSIVE;
	if (spec->comm && !setup->explain_only)
		return device_assignment_find(spec->comm, backend, &setup->assignment);
	if (spec->comm)
		setup->assignment = device_assignment_predict(spec->comm);
	else if (spec->n_assumed_ranks && !spec->n_gpus && !spec->all_gpus && n > 1)
		setup->assignment.n_sharing = n;
	return 0;
}

int setup_open(struct setup *setup, struct job *job)
{
	const struct backend *backend;
	int r = choose_backend(job, setup, &backend);

	if (r == 0)
		r = assign_devices(setup, backend);
	if (setup->checkpoint)
		job->checkpoint_hooks = checkpoint_get_hooks(setup->checkpoint);
	setup_limit_input_memory(job->input, setup->spec);
	if (r == 0)
		r = open_resources_with_fallback(job, setup, &backend);
	if (r == -ENOMEM)
		return fail(r, "not enough %s memory to sort with; try a smaller %s",
			    backend == &backend_cpu ? "host" : "GPU",
			    backend == &backend_cpu ? "-S" : "--device-memory, or --backend=cpu");
	if (r < 0 || setup->explain_only)
		return r;
	return open_spill(job, setup);
}

void setup_close(struct job *job)
{
	chunk_pool_close(job->chunk_pool);
	stats_set_temp_space_source(job->stats, NULL, NULL);
	spill_close(job->spill);
	compression_close(job->compression);
	close_devices(job);
	job->chunk_pool = NULL;
	job->spill = NULL;
	job->compression = NULL;
}
