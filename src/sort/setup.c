/*
 * setup - opening what all parts of a sort share (see setup.h)
 */
#include "src/sort/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/input_mapped.h"
#include "src/base/message_capture.h"
#include "src/base/diagnostics.h"
#include "src/rungen/chunk_pool.h"
#include "src/plan/cache_policy.h"
#include "src/sort/output_framing.h"
#include "src/sort/sort_output.h"
#include "src/sort/setup_internal.h"
#include "src/sort/open_devices.h"

/* With less device memory than this it is not worth trying. */
static const uint64_t least_device_nbytes = UINT64_C(16) << 20;

_Static_assert((int)INPUT_MOST_MAPPED <= (int)BACKEND_MOST_SOURCES, "all can be referred to");

/* Starting a GPU takes a fifth of a second, in which a disk can read so much. */
static const uint64_t prefetch_nbytes = UINT64_C(256) << 20;

/* It is known what a record is: from the spec, or from the inputs, if these say so. */
static int settle(struct settled *settled, struct job *job)
{
	const struct sort_spec given = settled->spec;
	const struct sort_observer *observer = settled->observer;
	int r = spec_complete(&given, job->input, given.n_inputs ? given.inputs[0] : "",
			      &settled->spec, &settled->keys);

	if (r < 0)
		return r;
	input_settle(job->input);
	settled->is_done = true;
	r = spec_layout(&settled->spec, &job->records);
	if (r == 0)
		r = around_make_header(&settled->spec, &job->records, job->input, &settled->header);
	if (r < 0)
		return r;
	settled->spec.header_nbytes = settled->header.nbytes;
	r = result_check_size(&settled->spec, job);
	if (r == 0 && observer->opened)
		r = observer->opened(observer->context, &settled->spec, job->layout, job->input);
	return r;
}

int setup_open_inputs(const struct sort_spec *spec, const struct sort_observer *observer,
		      struct settled *ret_settled, struct job *job)
{
	const struct framing framing = spec_framing(spec);
	int r;

	*ret_settled = (struct settled){ .spec = *spec, .observer = observer };
	job->io = spec->io ? spec->io : &syscalls_plain;
	job->cancellation = spec->cancellation;
	job->layout = &job->records;
	job->unique = spec->unique;
	job->limit = spec->limit;
	r = input_open_given(job->io, spec->inputs, spec->given_inputs, spec->n_inputs, &framing,
			     &job->input);
	if (r == 0 && input_is_settled(job->input))
		r = settle(ret_settled, job);
	return r;
}

void setup_close_inputs(struct settled *settled, struct job *job)
{
	input_close(job->input);
	layout_free(&job->records);
	header_free(&settled->header);
	free(settled->keys);
	*settled = (struct settled){ 0 };
}

int setup_look_ahead(struct settled *settled, struct job *job, bool may_open)
{
	int r;

	if (input_total_nbytes(job->input) != INPUT_SIZE_UNKNOWN ||
	    (settled->spec.merges && settled->is_done))
		return 0;
	stats_begin_phase(job->stats, PHASE_RUNS, 0);
	r = input_look_ahead(job->input, may_open);
	return r < 0 || settled->is_done ? r : settle(settled, job);
}

static int choose_backend(const struct job *job, const struct setup *setup,
			  const struct backend **ret_backend)
{
	return backend_choose(setup->spec->backend, setup_own_nbytes(job, setup),
			      setup_n_threads(setup->spec), ret_backend);
}

static int open_workers(struct job *job, const struct backend *backend, const struct setup *setup)
{
	const struct workers_wish wish = {
		.n_threads = setup_n_threads(setup->spec),
		.input_nbytes = setup_own_nbytes(job, setup),
		.share = setup->devices,
	};

	if (backend != &backend_cpu) {
		input_prefetch(job->input, prefetch_nbytes);
		if (setup->result)
			result_make_ready(setup->result);
	}
	return workers_open(job, backend, setup->spec, &wish);
}

enum page_cache_use setup_spill_use(const struct job *job)
{
	const enum page_cache_use use = page_cache_use(job, job->plan.temporary_nbytes);

	/* What a checkpoint keeps has to be brought to the disk in any case. */
	return job->keeper && use == PAGE_CACHE_MAY_HOLD ? PAGE_CACHE_IS_TOO_SMALL : use;
}

/* For who looks on. */
static uint64_t taken_nbytes(void *spill)
{
	return spill_taken_nbytes(spill);
}

/* Of other ranks' runs, too, what fits stays in memory: see prepare_runs.c. */
static uint64_t memory_of_spill(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;

	return sort_spec_exchanges(spec) && plan->fits && !plan->copies ?
		       plan->n_chunks * plan->chunk_nbytes :
		       plan->host_tier_nbytes;
}

static int open_spill(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	int r = setup->checkpoint ? checkpoint_open_spill(setup->checkpoint, &job->spill) :
				    spill_open(job->io, spec->temp_dirs, spec->n_temp_dirs,
					       spec->temp_limit_nbytes, memory_of_spill(job, spec),
					       &job->spill);

	if (r == 0)
		stats_watch_temporary(job->stats, taken_nbytes, job->spill);
	if (r == 0 && !spec->ranks) /* they choose together */
		page_cache_tell_spill(setup_spill_use(job), job->spill);
	if (r == 0)
		r = compression_open(&spec->compression, job->layout->stores_elements,
				     &job->compression);
	return r < 0 ? r : temporary_space_check(job, spec);
}

/* Plan, and get the device memory that is planned; smaller if it cannot be had. */
static int open_pool(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	int r;

	setup_plan(job, setup);
	r = setup_check_memory(job, spec);
	if (r < 0 || setup->explains || spec->merges)
		return r;
	r = chunk_pool_open(job, &job->pool);
	while (r == -ENOMEM && job->info.memory_nbytes > least_device_nbytes) {
		job->info.memory_nbytes /= 2;
		setup_plan(job, setup);
		r = chunk_pool_open(job, &job->pool);
	}
	return r;
}

/* Could elements refer to all records of the input, and be all that is sorted? */
static bool can_refer(struct job *job, const struct sort_spec *spec)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	return !spec->merges && !spec_has_ranks(spec) && !job->unique && job->limit == UINT64_MAX &&
	       !spec->checkpoint_path && nbytes != INPUT_SIZE_UNKNOWN &&
	       nbytes / job->layout->record_nbytes <= UINT32_MAX &&
	       layout_refer(job->layout, &job->references) &&
	       device_takes(job_device(job), &job->references);
}

static void note_sources(struct job *job)
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
	const struct layout *given = job->layout;
	int r = 0;

	if (!can_refer(job, setup->spec))
		return 0;
	job->layout = &job->references;
	setup_plan(job, setup);
	if (job->plan.fits)
		r = input_map(job->input);
	if (r > 0)
		note_sources(job);
	else
		job->layout = given;
	return r < 0 ? r : 0;
}

/* Device, plan and chunk buffers; -ENOMEM without a message. */
static int open_sorting(struct job *job, const struct backend *backend, const struct setup *setup)
{
	int r = open_workers(job, backend, setup);

	if (r == 0)
		r = choose_layout(job, setup);
	return r < 0 ? r : open_pool(job, setup);
}

/* The same for one that may fail, which is no failure of the sort: the reason is the caller's. */
static int try_sorting(struct job *job, const struct backend *backend, const struct setup *setup,
		       struct reason *ret_reason)
{
	struct attempt *attempt;
	int r = attempt_begin(&attempt);

	if (r < 0)
		return r;
	r = open_sorting(job, backend, setup);
	attempt_end(attempt, ret_reason);
	return r;
}

/*
 * A GPU that nobody asked for need not be had: busy, broken, or without memory. Then the CPU sorts.
 * One that --gpus names is wanted; but not more memory than it has.
 */
static int open_some_sorting(struct job *job, const struct setup *setup,
			     const struct backend **backend)
{
	const struct sort_spec *spec = setup->spec;
	const bool has_choice = spec->backend == BACKEND_AUTO && *backend != &backend_cpu;
	const bool may_fail = has_choice && spec->n_gpus == 0 && !spec->all_gpus;
	struct reason reason = { 0 };
	int r = may_fail ? try_sorting(job, *backend, setup, &reason) :
			   open_sorting(job, *backend, setup);

	if (!(r == -ENOMEM && has_choice) && !(r < 0 && may_fail)) {
		free(reason.text);
		return r;
	}
	warn_hint(reason.hint, reason.number, "%s; sorting on the CPU",
		  r == -ENOMEM ? "the GPU has not enough free memory" :
		  reason.text  ? reason.text :
				 "the GPU cannot be used");
	free(reason.text);
	workers_close(job);
	if (setup->result)
		result_stop_readying(setup->result);
	*backend = &backend_cpu;
	return open_sorting(job, *backend, setup);
}

/* Which devices are this process's, or are taken to be: of ranks elsewhere each has one. */
static int share_devices(struct setup *setup, const struct backend *backend)
{
	const struct sort_spec *spec = setup->spec;
	const unsigned n = backend_n_devices(backend);

	setup->devices = DEVICE_SHARE_ALONE;
	if (spec->ranks && !setup->explains)
		return device_share_find(spec->ranks, backend, &setup->devices);
	if (spec->ranks)
		setup->devices = device_share_expect(spec->ranks);
	else if (spec->n_ranks_assumed && !spec->n_gpus && !spec->all_gpus && n > 1)
		setup->devices.n = n;
	return 0;
}

int setup_open(struct setup *setup, struct job *job)
{
	const struct backend *backend;
	int r = choose_backend(job, setup, &backend);

	if (r == 0)
		r = share_devices(setup, backend);
	if (setup->checkpoint)
		job->keeper = checkpoint_keeper(setup->checkpoint);
	setup_limit_input(job->input, setup->spec);
	if (r == 0)
		r = open_some_sorting(job, setup, &backend);
	if (r == -ENOMEM)
		return fail_hint(
			r, backend == &backend_cpu ? HINT_LESS_MEMORY : HINT_LESS_DEVICE_MEMORY, 0,
			"not enough %s memory to sort with",
			backend == &backend_cpu ? "host" : "GPU");
	if (r < 0 || setup->explains)
		return r;
	return open_spill(job, setup);
}

void setup_close(struct job *job)
{
	chunk_pool_close(job->pool);
	stats_watch_temporary(job->stats, NULL, NULL);
	spill_close(job->spill);
	compression_close(job->compression);
	workers_close(job);
	job->pool = NULL;
	job->spill = NULL;
	job->compression = NULL;
}
