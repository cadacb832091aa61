/*
 * setup.c - open what all parts of a sort share (see setup.h)
 */
#include "src/sort/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/vfs.h>
#include <stdlib.h>

#include "io/codec/zst.h"
#include "io/input/input.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/comm/comm.h"
#include "src/plan/job.h"
#include "src/rungen/chunk_pool.h"
#include "src/sort/open_devices.h"
#include "src/sort/sort_output.h"

/* A device with less free memory is not worth using. */
static const uint64_t min_device_nbytes = UINT64_C(16) << 20;

_Static_assert((int)INPUT_MAX_MAPPED <= (int)BACKEND_MAX_SOURCES, "all can be referred to");

/* Starting a GPU takes 0.2 s; a disk can read this much meanwhile. */
static const uint64_t prefetch_nbytes = UINT64_C(256) << 20;

/* --- memory and plan --- */

void setup_limit_input_memory(struct input *input, const struct sort_spec *spec)
{
	input_limit_windows(input, spec_memory_nbytes(spec), true);
	if (spec->merge_inputs)
		input_set_frame_cache(input, spec_memory_nbytes(spec) / 4);
}

/*
 * Return the memory for data. A rank that exchanges runs stores its resident runs, in memory if
 * possible. While it does that, some items are in memory twice, because resident runs are freed in
 * pieces and many pieces are begun. A fifth is kept for that.
 */
static uint64_t data_limit(const struct sort_spec *spec, uint64_t nbytes)
{
	return spec_exchanges_runs(spec) ? nbytes - nbytes / 5 : nbytes;
}

/* Return the memory for compressed inputs and outputs. */
static uint64_t streams_nbytes(const struct job *job, const struct sort_spec *spec)
{
	const unsigned n_threads = spec_n_threads(spec);
	const unsigned max_readers = PLAN_MAX_READERS * job->n_devices;
	const unsigned n_readers = n_threads < max_readers ? n_threads : max_readers;
	uint64_t nbytes = input_memory_nbytes(job->input, n_readers, !spec->merge_inputs);

	/* The next part file may be begun before the previous one is finished. */
	if (spec->zstd_level)
		nbytes += (1 + (spec->n_part_files > 1)) *
			  zst_writer_memory_nbytes(spec->zstd_level, spec_n_compressors(spec));
	return nbytes + spec->n_part_files * sort_output_file_memory_nbytes(job->layout);
}

static unsigned count_ranks(const struct sort_spec *spec)
{
	if (spec->n_assumed_ranks)
		return spec->n_assumed_ranks;
	return spec->comm ? comm_size(spec->comm) : 1;
}

uint64_t setup_input_nbytes(const struct job *job, const struct setup *setup)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	return nbytes == INPUT_SIZE_UNKNOWN && setup->assumed_nbytes &&
			       spec_is_distributed(setup->spec) ?
		       setup->assumed_nbytes :
		       nbytes;
}

/*
 * Return the bytes that this process sorts. All ranks plan with the same number, the size of the
 * largest part.
 */
static uint64_t local_input_nbytes(const struct job *job, const struct setup *setup)
{
	const uint64_t nbytes = setup_input_nbytes(job, setup);
	const uint64_t record_nbytes = job->layout->record_nbytes;
	const unsigned n = count_ranks(setup->spec);

	if (!spec_exchanges_runs(setup->spec) || nbytes == INPUT_SIZE_UNKNOWN)
		return nbytes;
	return (nbytes / record_nbytes / n + 1) * record_nbytes;
}

/* Set job->plan_request and job->plan. The devices are open. */
static void make_plan(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	const uint64_t memory_nbytes = spec_memory_nbytes(spec);
	const uint64_t data_nbytes = data_limit(spec, memory_nbytes);
	const bool exchanges_runs = spec_exchanges_runs(spec);
	const bool is_unbounded = setup->explain_only && !setup->assumed_nbytes;

	job->plan_request = (struct plan_request){
		.layout = job->layout,
		.device = job_device(job),
		.device_nbytes = job->device_info.memory_nbytes,
		.device_name = job->device_info.name,
		.n_devices = job->n_devices,
		.input_nbytes = local_input_nbytes(job, setup),
		.n_ranks = exchanges_runs ? count_ranks(spec) : 1,
		.n_threads = spec_n_threads(spec),
		.memory_nbytes = data_nbytes,
		.exchange_nbytes = memory_nbytes - data_nbytes,
		.n_input_runs = spec->merge_inputs ? (uint32_t)spec->n_inputs : 0,
		.batch_size = spec->batch_size,
		.n_partitions = spec->n_partitions,
		.n_part_files = spec->n_part_files,
		.part_files_are_partitions = spec->n_part_files && !spec_is_distributed(spec) &&
					     (job->unique || spec->split_by_keys),
		.sequential_input = spec->merge_inputs && input_is_compressed(job->input),
		.can_sample_input = !spec->merge_inputs && !input_is_compressed(job->input) &&
				    input_total_nbytes(job->input) != INPUT_SIZE_UNKNOWN,
		.min_block_nbytes = setup->checkpoint ? checkpoint_block_nbytes(setup->checkpoint) :
							0,
		.sequential_output = setup->ordered_output,
		/* A rank knows the length of its partition before it is merged, except with -u. */
		.needs_count_pass = setup->needs_count_first ||
				    (spec_is_distributed(spec) && job->unique),
		.stream_codec_nbytes = streams_nbytes(job, spec),
		.compression = spec->compression,
		.stores_encoded_keys = job->layout->stores_elements,
		.keeps_checkpoint_index = spec->checkpoint_path,
		.stores_frames = exchanges_runs && spec->zstd_level,
		.unique = job->unique,
		.limit = job->limit == UINT64_MAX ? 0 : job->limit,
		.assumed_nbytes = is_unbounded ? PLAN_UNBOUNDED_UNIT_NBYTES : setup->assumed_nbytes,
		.assumes_unbounded = is_unbounded &&
				     input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN,
	};
	plan_make(&job->plan_request, &job->plan);
}

/* Return whether the planned sort would fit into memory_nbytes. */
static bool is_memory_sufficient(const struct job *job, const struct sort_spec *spec,
				 uint64_t memory_nbytes)
{
	struct plan_request request = job->plan_request;
	struct sort_spec candidate = *spec;
	struct plan plan;

	candidate.memory_nbytes = memory_nbytes;
	request.memory_nbytes = data_limit(spec, memory_nbytes);
	request.exchange_nbytes = memory_nbytes - request.memory_nbytes;
	request.stream_codec_nbytes = streams_nbytes(job, &candidate);
	plan_make(&request, &plan);
	return plan.is_sufficient;
}

/* Return the minimum memory in MiB. */
static uint64_t find_sufficient_mib(const struct job *job, const struct sort_spec *spec)
{
	uint64_t low = 0, high = 1;

	while (!is_memory_sufficient(job, spec, high << 20) &&
	       high << 20 < PLAN_MAX_MEMORY_NBYTES) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		*(is_memory_sufficient(job, spec, middle << 20) ? &high : &low) = middle;
	}
	return high;
}

/* Return whether the memory is sufficient for a sort without a checkpoint to resume. */
static bool is_sufficient_to_start(const struct job *job)
{
	struct plan_request request = job->plan_request;
	struct plan plan;

	request.min_block_nbytes = 0;
	plan_make(&request, &plan);
	return plan.is_sufficient;
}

/* Runs stored earlier with more memory have blocks that are too large now. */
static int fail_checkpoint_blocks(const struct job *job, const struct sort_spec *spec,
				  const char *available)
{
	return fail(
		-E2BIG,
		"%s of memory, plus %d MiB, is too little to resume this checkpoint with blocks "
		"of %s; use -S of at least %" PRIu64 "M",
		available, PLAN_OVERHEAD_NBYTES >> 20,
		size_format(job->plan_request.min_block_nbytes).text,
		find_sufficient_mib(job, spec));
}

/* The plan, or a check, takes more memory than allowed. */
static int fail_memory(uint64_t memory_nbytes, uint64_t total_nbytes, uint64_t index_nbytes,
		       uint64_t streams_nbytes, uint64_t sufficient_mib)
{
	return fail(
		-E2BIG,
		"%s of memory, plus %d MiB, is too little: %s needed, including %s for the index "
		"of runs and %s for inputs and a compressed output; use "
		"-S of at least %" PRIu64 "M",
		size_format_down(memory_nbytes).text, PLAN_OVERHEAD_NBYTES >> 20,
		size_format_up(total_nbytes).text, size_format_up(index_nbytes).text,
		size_format_up(streams_nbytes).text, sufficient_mib);
}

/* Return -E2BIG if the plan takes more memory than it may. */
static int check_memory(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;

	if (plan->is_sufficient)
		return 0;
	if (job->plan_request.min_block_nbytes && is_sufficient_to_start(job))
		return fail_checkpoint_blocks(job, spec,
					      size_format_down(plan->memory_nbytes).text);
	return fail_memory(plan->memory_nbytes, plan->total_nbytes, plan->required_index_nbytes,
			   job->plan_request.stream_codec_nbytes, find_sufficient_mib(job, spec));
}

/* Return whether files in the directory are kept in memory, and count as memory of this process. */
static bool is_memory_file_system(const char *directory)
{
	const uint32_t tmpfs_magic = 0x01021994, ramfs_magic = 0x858458f6; /* statfs(2) */
	struct statfs status;

	return statfs(directory, &status) == 0 &&
	       ((uint32_t)status.f_type == tmpfs_magic || (uint32_t)status.f_type == ramfs_magic);
}

static const char *find_memory_temp_dir(const struct sort_spec *spec)
{
	for (size_t i = 0; i < spec->n_temp_dirs; i++)
		if (is_memory_file_system(spec->temp_dirs[i]))
			return spec->temp_dirs[i];
	return NULL;
}

void setup_estimate_memory(const struct job *job, const struct sort_spec *spec,
			   struct memory_estimate *ret_estimate)
{
	const struct plan *plan = &job->plan;
	const uint64_t n_jobs = job->n_jobs_on_host ? job->n_jobs_on_host : 1;
	struct memory_estimate estimate = { .needed_nbytes = n_jobs * plan->total_nbytes,
					    .allowed_nbytes = memory_allowed_nbytes("") };

	if (plan->max_temp_nbytes && !spec->checkpoint_path)
		estimate.temp_dir = find_memory_temp_dir(spec);
	if (estimate.temp_dir) {
		estimate.needed_nbytes += n_jobs * plan->max_temp_nbytes;
		if (estimate.allowed_nbytes > memory_physical_nbytes())
			estimate.allowed_nbytes = memory_physical_nbytes();
	}
	if (spec->n_assumed_ranks) /* on other machines */
		estimate = (struct memory_estimate){ .allowed_nbytes = UINT64_MAX };
	*ret_estimate = estimate;
}

void setup_warn_memory(const struct job *job, const struct sort_spec *spec)
{
	struct memory_estimate estimate;
	struct number_text needed, allowed;

	setup_estimate_memory(job, spec, &estimate);
	if (estimate.needed_nbytes <= estimate.allowed_nbytes ||
	    (spec->comm && comm_rank(spec->comm) != 0))
		return;
	needed = size_format_up(estimate.needed_nbytes);
	allowed = size_format_down(estimate.allowed_nbytes);
	if (estimate.temp_dir)
		warn("%s: temporary files are in memory and may need %s together with -S, the "
		     "limits of this process allow %s; use another -T or a smaller -S",
		     estimate.temp_dir, needed.text, allowed.text);
	else
		warn("-S: the sort may need %s, the limits of this process allow %s; use a "
		     "smaller -S",
		     needed.text, allowed.text);
}

/* --- inputs --- */

/* Complete the spec from the inputs. */
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
		r = sort_output_make_header(&resolved->spec, &job->requested_layout, job->input,
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
	job->comm = spec->comm;
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

static int open_setup_devices(struct job *job, const struct backend *backend,
			      const struct setup *setup)
{
	const struct open_devices_params params = {
		.n_threads = spec_n_threads(setup->spec),
		.input_nbytes = local_input_nbytes(job, setup),
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

	/* Checkpointed runs have to be written to disk in any case. */
	return job->checkpoint_hooks && use == CACHE_ADAPTIVE ? CACHE_BYPASS : use;
}

/* Runs that other ranks read stay in memory if they fit, too. */
static uint64_t spill_memory_limit(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;

	return spec_exchanges_runs(spec) && plan->fits_in_memory && !plan->copies_to_device ?
		       plan->n_chunks * plan->chunk_nbytes :
		       plan->host_spill_nbytes;
}

int setup_open_spill(struct job *job, const struct sort_spec *spec, struct checkpoint *checkpoint)
{
	int r = checkpoint ? checkpoint_open_spill(checkpoint, &job->spill) :
			     spill_open(job->io, spec->temp_dirs, spec->n_temp_dirs,
					spec->temp_limit_nbytes, spill_memory_limit(job, spec),
					&job->spill);

	/* The ranks of a host agree on a policy later. */
	if (r == 0 && !spec->comm)
		cache_policy_apply_to_spill(setup_spill_cache_policy(job), job->plan.n_writers,
					    job->spill);
	if (r == 0)
		r = compression_open(&spec->compression, job->layout->stores_elements,
				     &job->compression);
	return r < 0 ? r : job_check_temp_space(job, spec);
}

/*
 * Make the plan. References to records cannot be spilled. If not all fit any more, because the
 * mapping takes address space or other processes take memory, read the records instead.
 */
static void plan_layout(struct job *job, const struct setup *setup)
{
	make_plan(job, setup);
	if (!layout_is_indirect(job->layout) || job->plan.fits_in_memory)
		return;
	input_unmap(job->input);
	job->n_sources = 0;
	job->layout = &job->requested_layout;
	make_plan(job, setup);
}

/* Make the plan and allocate its device memory; if that fails, plan for less. */
static int open_pool(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	int r;

	plan_layout(job, setup);
	r = check_memory(job, spec);
	if (r == 0)
		setup_warn_memory(job, spec);
	if (r < 0 || setup->explain_only || spec->merge_inputs)
		return r;
	r = chunk_pool_open(job, &job->chunk_pool);
	while (r == -ENOMEM && job->device_info.memory_nbytes > min_device_nbytes) {
		job->device_info.memory_nbytes /= 2;
		plan_layout(job, setup);
		r = chunk_pool_open(job, &job->chunk_pool);
	}
	return r;
}

/* Return whether the input can be sorted as references to its records. */
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
 * Sort records in place in the page cache if they are there and fit into memory; otherwise read
 * them.
 */
static int choose_layout(struct job *job, const struct setup *setup)
{
	const struct layout *original = job->layout;
	int r = 0;

	if (!can_sort_indirect(job, setup->spec))
		return 0;
	job->layout = &job->indirect_layout;
	make_plan(job, setup);
	if (job->plan.fits_in_memory)
		r = input_map(job->input);
	if (r > 0)
		record_mapped_sources(job);
	else
		job->layout = original;
	return r < 0 ? r : 0;
}

/* Open devices, plan and chunk pool. Returns -ENOMEM without a message. */
static int open_resources(struct job *job, const struct backend *backend, const struct setup *setup)
{
	int r = open_setup_devices(job, backend, setup);

	if (r == 0)
		r = choose_layout(job, setup);
	return r < 0 ? r : open_pool(job, setup);
}

/* Like open_resources(), but return the error message instead of reporting it. */
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
 * Fall back to the CPU if a GPU that the user did not request cannot be used: it is busy, broken or
 * has too little memory. A GPU of --gpus must work, but may have too little memory.
 */
static int open_resources_with_fallback(struct job *job, const struct setup *setup,
					const struct backend **backend)
{
	const struct sort_spec *spec = setup->spec;
	const bool has_choice = spec->backend == BACKEND_AUTO && *backend != &backend_cpu;
	const bool may_fail = has_choice && spec->gpus.n == 0 && !spec->gpus.all;
	struct captured_error error = { 0 };
	int r = may_fail ? try_open_resources(job, *backend, setup, &error) :
			   open_resources(job, *backend, setup);

	if (!(r == -ENOMEM && has_choice) && !(r < 0 && may_fail)) {
		free(error.text);
		return r;
	}
	warn("%s; sorting on the CPU", r == -ENOMEM ? "the GPU has too little free memory" :
				       error.text   ? error.text :
						      "the GPU cannot be used");
	free(error.text);
	close_devices(job);
	if (setup->output)
		sort_output_stop_prefault(setup->output);
	*backend = &backend_cpu;
	return open_resources(job, *backend, setup);
}

/* Find this process's devices. Assumed ranks have one device each. */
static int assign_devices(struct setup *setup, const struct backend *backend)
{
	const struct sort_spec *spec = setup->spec;
	const unsigned n = backend_n_devices(backend);

	setup->assignment = DEVICE_ASSIGNMENT_EXCLUSIVE;
	if (spec->comm && !setup->explain_only)
		return device_assignment_find(spec->comm, backend, &setup->assignment);
	if (spec->comm)
		setup->assignment = device_assignment_among(spec->comm, NULL);
	else if (spec->n_assumed_ranks && !spec->gpus.n && !spec->gpus.all && n > 1)
		setup->assignment.n_sharing = n;
	return 0;
}

int setup_open(struct setup *setup, struct job *job)
{
	const struct backend *backend;
	int r = backend_choose(setup->spec->backend, local_input_nbytes(job, setup),
			       spec_n_threads(setup->spec), &backend);

	if (r == 0)
		r = assign_devices(setup, backend);
	if (setup->checkpoint)
		job->checkpoint_hooks = checkpoint_get_hooks(setup->checkpoint);
	setup_limit_input_memory(job->input, setup->spec);
	if (r == 0)
		r = open_resources_with_fallback(job, setup, &backend);
	if (r == -ENOMEM)
		return fail(r, "too little %s memory for a sort; try a smaller %s",
			    backend == &backend_cpu ? "host" : "GPU",
			    backend == &backend_cpu ? "-S" : "--device-memory, or --backend=cpu");
	if (r < 0 || setup->explain_only)
		return r;
	return setup_open_spill(job, setup->spec, setup->checkpoint);
}

void setup_close(struct job *job)
{
	chunk_pool_close(job->chunk_pool);
	spill_close(job->spill);
	compression_close(job->compression);
	close_devices(job);
	job->chunk_pool = NULL;
	job->spill = NULL;
	job->compression = NULL;
}
