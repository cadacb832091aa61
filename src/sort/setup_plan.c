/*
 * setup_plan - how much of the machine a sort takes, and whether that is enough (see setup.h)
 */
#include <errno.h>

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

	if (spec->n_ranks_assumed) /* on other machines */
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
	const uint64_t most = plan_most_threads(memory_limit(spec));

	return n < most ? n : (unsigned)most;
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

void setup_limit_input(struct input *input, const struct sort_spec *spec)
{
	const uint64_t nbytes = memory_limit(spec) / ZST_UNSEEN_WINDOW_PART;

	input_limit_windows(input, nbytes < ZST_USUAL_WINDOW_NBYTES ? ZST_USUAL_WINDOW_NBYTES :
				   nbytes < ZST_MOST_WINDOW_NBYTES  ? nbytes :
								      ZST_MOST_WINDOW_NBYTES);
	if (spec->merges)
		input_keep_frames(input, memory_limit(spec) / 4);
}

/*
 * Of several ranks each stores what is resident in the end, in memory as far as it can: then a part
 * of it is there twice, since resident runs are given back in pieces, of which many are begun.
 */
static uint64_t data_limit(const struct sort_spec *spec, uint64_t nbytes)
{
	return sort_spec_exchanges(spec) ? nbytes - nbytes / 5 : nbytes;
}

/* What inputs take, and a compressed output. */
static uint64_t streams_nbytes(const struct job *job, const struct sort_spec *spec)
{
	const unsigned n_threads = setup_n_threads(spec);
	const unsigned most_readers = PLAN_MOST_READERS * job->n_workers;
	const unsigned n_readers = n_threads < most_readers ? n_threads : most_readers;
	uint64_t nbytes = input_memory_nbytes(job->input, n_readers, !spec->merges);

	/* Of part files one can be begun before the one before is done. */
	if (spec->zstd_level)
		nbytes += (1 + (spec->n_part_files > 1)) *
			  zst_writer_memory_nbytes(spec->zstd_level, setup_n_compressors(spec));
	return nbytes + spec->n_part_files * result_file_nbytes(job->layout);
}

static unsigned count_ranks(const struct sort_spec *spec)
{
	if (spec->n_ranks_assumed)
		return spec->n_ranks_assumed;
	return spec->ranks ? ranks_size(spec->ranks) : 1;
}

uint64_t setup_input_nbytes(const struct job *job, const struct setup *setup)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	return nbytes == INPUT_SIZE_UNKNOWN && setup->assumed_nbytes &&
			       spec_has_ranks(setup->spec) ?
		       setup->assumed_nbytes :
		       nbytes;
}

/* All plan alike. But inputs of a merge are looked up whole. */
uint64_t setup_own_nbytes(const struct job *job, const struct setup *setup)
{
	const uint64_t nbytes = setup_input_nbytes(job, setup);
	const uint64_t record_nbytes = job->layout->record_nbytes;
	const unsigned n = count_ranks(setup->spec);

	if (!sort_spec_exchanges(setup->spec) || nbytes == INPUT_SIZE_UNKNOWN)
		return nbytes;
	return (nbytes / record_nbytes / n + 1) * record_nbytes;
}

void setup_plan(struct job *job, const struct setup *setup)
{
	const struct sort_spec *spec = setup->spec;
	const unsigned n_ranks = sort_spec_exchanges(spec) ? count_ranks(spec) : 1;

	job->request = (struct plan_request){
		.layout = job->layout,
		.device = job_device(job),
		.device_nbytes = job->info.memory_nbytes,
		.device_name = job->info.name,
		.n_devices = job->n_workers,
		.input_nbytes = setup_own_nbytes(job, setup),
		.n_ranks = n_ranks,
		.n_threads = setup_n_threads(spec),
		.memory_nbytes = data_limit(spec, memory_limit(spec)),
		.exchange_nbytes = memory_limit(spec) - data_limit(spec, memory_limit(spec)),
		.n_input_runs = spec->merges ? (uint32_t)spec->n_inputs : 0,
		.batch_size = spec->batch_size,
		.n_ranges = spec->n_ranges,
		.n_part_files = spec->n_part_files,
		.parts_are_ranges = spec->n_part_files && !spec_has_ranks(spec) &&
				    (job->unique || spec->parts_at_keys),
		.ordered_input = spec->merges && input_is_compressed(job->input),
		.least_block_nbytes =
			setup->checkpoint ? checkpoint_block_nbytes(setup->checkpoint) : 0,
		.ordered_output = setup->ordered_output,
		/* Before a rank has merged its range, only -u has it not known how long that is. */
		.counts_first = setup->counts_first || (spec_has_ranks(spec) && job->unique),
		.streams_nbytes = streams_nbytes(job, spec),
		.compression = spec->compression,
		.stores_codes = job->layout->stores_elements,
		.keeps_index = spec->checkpoint_path,
		.keeps_frames = sort_spec_exchanges(spec) && spec->zstd_level,
		.unique = job->unique,
		.limit = job->limit == UINT64_MAX ? 0 : job->limit,
		.assumed_nbytes = setup->assumed_nbytes ? setup->assumed_nbytes :
				  setup->explains       ? PLAN_PER_NBYTES :
							  0,
		.assumes_endless = setup->explains && !setup->assumed_nbytes &&
				   input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN,
	};
	plan_make(&job->request, &job->plan);
}

/* Would so much memory be enough for what is planned? */
static bool is_enough(const struct job *job, const struct sort_spec *spec, uint64_t memory_nbytes)
{
	struct plan_request request = job->request;
	struct sort_spec tried = *spec;
	struct plan plan;

	tried.memory_nbytes = memory_nbytes;
	request.memory_nbytes = data_limit(spec, memory_nbytes);
	request.exchange_nbytes = memory_nbytes - request.memory_nbytes;
	request.streams_nbytes = streams_nbytes(job, &tried);
	plan_make(&request, &plan);
	return plan.is_enough;
}

/* The least memory that is, in MiB, whatever was given. */
static uint64_t find_enough_mib(const struct job *job, const struct sort_spec *spec)
{
	uint64_t less = 0, enough = 1;

	while (!is_enough(job, spec, enough << 20) && enough << 20 < PLAN_MOST_MEMORY_NBYTES) {
		less = enough;
		enough *= 2;
	}
	while (enough - less > 1) {
		const uint64_t middle = less + (enough - less) / 2;

		*(is_enough(job, spec, middle << 20) ? &enough : &less) = middle;
	}
	return enough;
}

/* Would it be enough for a sort that begins? */
static bool is_enough_to_begin(const struct job *job)
{
	struct plan_request request = job->request;
	struct plan plan;

	request.least_block_nbytes = 0;
	plan_make(&request, &plan);
	return plan.is_enough;
}

/* What an earlier start with more memory has stored comes back in the blocks that it had. */
static int fail_blocks(const struct job *job, const struct sort_spec *spec, const char *has)
{
	char block[32];

	size_format(job->request.least_block_nbytes, block);
	return fail_hint(-E2BIG, HINT_MEMORY_NEEDED, find_enough_mib(job, spec),
			 "%s of memory, and %d MiB besides, are enough to begin, and too little to "
			 "go on: what the checkpoint has was stored with more memory, in blocks of "
			 "%s, and a merge holds some of each run",
			 has, PLAN_BESIDE_NBYTES >> 20, block);
}

int setup_check_memory(const struct job *job, const struct sort_spec *spec)
{
	const struct plan *plan = &job->plan;
	char has[32], needed[32], index[32], streams[32];

	if (plan->is_enough)
		return 0;
	size_format_down(plan->memory_nbytes, has);
	if (job->request.least_block_nbytes && is_enough_to_begin(job))
		return fail_blocks(job, spec, has);
	size_format_up(plan->total_nbytes, needed);
	size_format_up(plan->full_index_nbytes, index);
	size_format_up(job->request.streams_nbytes, streams);
	return fail_hint(
		-E2BIG, HINT_MEMORY_NEEDED, find_enough_mib(job, spec),
		"%s of memory, and %d MiB besides, are too little: this would take %s, of it %s "
		"to know where what is in the runs, and %s for inputs and a compressed output",
		has, PLAN_BESIDE_NBYTES >> 20, needed, index, streams);
}
