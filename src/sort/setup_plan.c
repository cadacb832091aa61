/*
 * setup_plan - how much of the machine a sort takes, and whether that is enough (see setup.h)
 */
#include <errno.h>
#include <inttypes.h>

#include "io/codec/zst_stream.h"
#include "io/codec/zst_writer.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/comm/comm.h"
#include "src/sort/sort_output.h"
#include "src/sort/setup_internal.h"

/* A limit beyond what the machine has would only be planned with as if it had it. */
static uint64_t memory_limit(const struct sort_spec *spec)
{
	const uint64_t physical_nbytes = memory_physical_nbytes();
	const uint64_t nbytes = spec->memory_nbytes ? spec->memory_nbytes :
						      memory_available_nbytes("") / 2;

	if (spec->n_assumed_ranks) /* on other machines */
		return nbytes;
	return nbytes < physical_nbytes ? nbytes : physical_nbytes;
}

uint64_t setup_memory_nbytes(const struct sort_spec *spec)
{
	return memory_limit(spec);
}

unsigned setup_n_threads(const struct sort_spec *spec)
{
	const unsigned n = spec->n_threads ? spec->n_threads : cpus_available("");
	const uint64_t max_threads = plan_max_threads(memory_limit(spec));

	return n < max_threads ? n : (unsigned)max_threads;
}

unsigned setup_n_compressors(const struct sort_spec *spec)
{
	const uint64_t nbytes = memory_limit(spec) / 4;
	unsigned n = setup_n_threads(spec);

	while (n > 1 &&
	       (1 + (spec->n_part_files > 1)) * zst_writer_memory_nbytes(spec->zstd_level, n) >
		       nbytes)
		n--;
	return n;
}

void setup_limit_input_memory(struct input *input, const struct sort_spec *spec)
{
	const uint64_t nbytes = memory_limit(spec) / ZST_UNPROBED_WINDOW_DIVISOR;

	input_set_max_window(input, nbytes < ZST_DEFAULT_WINDOW_NBYTES ? ZST_DEFAULT_WINDOW_NBYTES :
				    nbytes < ZST_MAX_WINDOW_NBYTES     ? nbytes :
									 ZST_MAX_WINDOW_NBYTES);
	if (spec->merge_inputs)
		input_set_frame_cache(input, memory_limit(spec) / 4);
}

/*
 * Of several ranks each stores what is resident in the end, in memory as far as it can: then a part
 * of it is there twice, since resident runs are given back in pieces, of which many are begun.
 */
static uint64_t data_limit(const struct sort_spec *spec, uint64_t nbytes)
{
	return spec_exchanges_runs(spec) ? nbytes - nbytes / 5 : nbytes;
}

/* What inputs take, and a compressed output. */
static uint64_t streams_nbytes(const struct job *job, const struct sort_spec *spec)
{
	const unsigned n_threads = setup_n_threads(spec);
	const unsigned max_readers = PLAN_MAX_READERS * job->n_devices;
	const unsigned n_readers = n_threads < max_readers ? n_threads : max_readers;
	uint64_t nbytes = input_memory_nbytes(job->input, n_readers, !spec->merge_inputs);

	/* Of part files one can be begun before the one before is done. */
	if (spec->zstd_level)
		nbytes += (1 + (spec->n_part_files > 1)) *
			  zst_writer_memory_nbytes(spec->zstd_level, setup_n_compressors(spec));
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

/* All plan alike. But inputs of a merge are looked up whole. */
uint64_t setup_local_input_nbytes(const struct job *job, const struct setup *setup)
{
	const uint64_t nbytes = setup_input_nbytes(job, setup);
	const uint64_t record_nbytes = job->layout->record_nbytes;
	const unsigned n = count_ranks(setup->spec);

	if (!spec_exchanges_runs(setup->spec) || nbytes == INPUT_SIZE_UNKNOWN)
		return nbytes;
	return (nbytes / record_nbytes / n + 1) * record_nbytes;
}

void setup_plan(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	const unsigned n_ranks = spec_exchanges_runs(spec) ? count_ranks(spec) : 1;

	job->plan_request = (struct plan_request){
		.layout = job->layout,
		.device = job_device(job),
		.device_nbytes = job->device_info.memory_nbytes,
		.device_name = job->device_info.name,
		.n_devices = job->n_devices,
		.input_nbytes = setup_local_input_nbytes(job, setup),
		.n_ranks = n_ranks,
		.n_threads = setup_n_threads(spec),
		.memory_nbytes = data_limit(spec, memory_limit(spec)),
		.exchange_nbytes = memory_limit(spec) - data_limit(spec, memory_limit(spec)),
		.n_input_runs = spec->merge_inputs ? (uint32_t)spec->n_inputs : 0,
		.batch_size = spec->batch_size,
		.n_partitions = spec->n_partitions,
		.n_part_files = spec->n_part_files,
		.part_files_are_partitions = spec->n_part_files && !spec_is_distributed(spec) &&
					     (job->unique || spec->split_by_keys),
		.sequential_input = spec->merge_inputs && input_is_compressed(job->input),
		.min_block_nbytes = setup->checkpoint ? checkpoint_block_nbytes(setup->checkpoint) :
							0,
		.sequential_output = setup->ordered_output,
		/* Before a rank has merged its range, only -u has it not known how long that is. */
		.needs_count_pass = setup->needs_count_first ||
				    (spec_is_distributed(spec) && job->unique),
		.stream_codec_nbytes = streams_nbytes(job, spec),
		.compression = spec->compression,
		.stores_encoded_keys = job->layout->stores_elements,
		.keeps_checkpoint_index = spec->checkpoint_path,
		.stores_frames = spec_exchanges_runs(spec) && spec->zstd_level,
		.unique = job->unique,
		.limit = job->limit == UINT64_MAX ? 0 : job->limit,
		.assumed_nbytes = setup->assumed_nbytes ? setup->assumed_nbytes :
				  setup->explain_only   ? PLAN_UNBOUNDED_UNIT_NBYTES :
							  0,
		.assumes_unbounded = setup->explain_only && !setup->assumed_nbytes &&
				     input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN,
	};
	plan_make(&job->plan_request, &job->plan);
}

/* Would so much memory be enough for what is planned? */
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

/* The least memory that is, in MiB, whatever was given. */
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

/* Would it be enough for a sort that begins? */
static bool is_sufficient_to_start(const struct job *job)
{
	struct plan_request request = job->plan_request;
	struct plan plan;

	request.min_block_nbytes = 0;
	plan_make(&request, &plan);
	return plan.is_sufficient;
}

/* What an earlier start with more memory has stored comes back in the blocks that it had. */
static int fail_checkpoint_blocks(const struct job *job, const struct sort_spec *spec,
				  const char *available)
{
	char block[32];

	size_format(job->plan_request.min_block_nbytes, block);
	return fail(
		-E2BIG,
		"%s of memory, and %d MiB besides, are enough to begin, and too little to go on: "
		"what the checkpoint has was stored with more memory, in blocks of %s, and a "
		"merge holds some of each run; it needs -S of at least %" PRIu64 "M",
		available, PLAN_OVERHEAD_NBYTES >> 20, block, find_sufficient_mib(job, spec));
}

/* What a plan, or a check, takes, which is more than there is. */
static int fail_memory(uint64_t memory_nbytes, uint64_t total_nbytes, uint64_t index_nbytes,
		       uint64_t streams_nbytes, uint64_t sufficient_mib)
{
	char available[32], needed[32], index[32], streams[32];

	size_format_down(memory_nbytes, available);
	size_format_up(total_nbytes, needed);
	size_format_up(index_nbytes, index);
	size_format_up(streams_nbytes, streams);
	return fail(
		-E2BIG,
		"%s of memory, and %d MiB besides, are too little: this would take %s, of it %s "
		"to know where what is in the runs, and %s for inputs and a compressed output; "
		"it needs -S of at least %" PRIu64 "M",
		available, PLAN_OVERHEAD_NBYTES >> 20, needed, index, streams, sufficient_mib);
}

int setup_check_memory(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;
	char available[32];

	if (plan->is_sufficient)
		return 0;
	size_format_down(plan->memory_nbytes, available);
	if (job->plan_request.min_block_nbytes && is_sufficient_to_start(job))
		return fail_checkpoint_blocks(job, spec, available);
	return fail_memory(plan->memory_nbytes, plan->total_nbytes, plan->required_index_nbytes,
			   job->plan_request.stream_codec_nbytes, find_sufficient_mib(job, spec));
}

int setup_check_reading_memory(const struct input *input, const struct sort_spec *spec,
			       uint64_t thread_nbytes, unsigned *n_threads)
{
	const uint64_t memory_nbytes = memory_limit(spec);
	const uint64_t max_nbytes = memory_nbytes + PLAN_OVERHEAD_NBYTES;
	uint64_t streams_nbytes, nbytes;

	for (;; (*n_threads)--) {
		streams_nbytes = input_memory_nbytes(input, *n_threads, true);
		nbytes = streams_nbytes + *n_threads * thread_nbytes;
		if (nbytes <= max_nbytes)
			return 0;
		if (*n_threads == 1)
			break;
	}
	return fail_memory(memory_nbytes, nbytes, 0, streams_nbytes,
			   ((nbytes - PLAN_OVERHEAD_NBYTES - 1) >> 20) + 1);
}
