/*
 * calibrate - how fast the machine can do what each stage does (see calibrate.h)
 *
 * Files are read and written as the sort does it, in parts and by its threads; what is written has
 * no name and is given back. What the back end does is measured by calibrate_device.c.
 */
#include "src/cost/calibrate.h"

#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/cost/calibrate_device.h"
#include "src/plan/cache_policy.h"

enum {
	N_PROBE_BLOCKS = 64, /* of a file, */
	MIN_PROBE_BLOCK_NBYTES = 4 << 10,
	MAX_PROBE_BLOCK_NBYTES = 4 << 20,
	MAX_PROBE_THREADS = 16,
	MIN_PROBE_NBYTES = 1 << 20,
	PIPE_NBYTES = 256 << 10,
	GROWTH = 4,                  /* from one measurement to the next */
	CALIBRATE_TIME_DIVISOR = 10, /* of a sort's time, after it */
};

/* What takes less is over before anybody asks what held it up. */
static const uint64_t min_phase_ns = UINT64_C(1000000000);

/* What is measured, for whom, and by when. */
struct calibration {
	const struct job *job;
	const struct sort_spec *spec;
	const struct calibration_request *request;
	uint64_t end_ns;
	struct stage_rates *rates;
};

/* Work that threads share: parts, taken one by one, until the time is over. */
struct io_probe {
	int (*process_block)(struct io_probe *probe, uint32_t block);
	uint64_t block_nbytes;
	uint64_t end_ns;
	uint32_t n_blocks;
	_Atomic uint32_t next_block, n_done_blocks;
	_Atomic int error;

	struct input *input;
	bool is_warm; /* reading: other parts than the first time, which are in the cache now */
	struct spill *spill;
	struct spill_extent extents[N_PROBE_BLOCKS];
	char *data; /* part_nbytes each */
};

static void process_probe_blocks(void *context)
{
	struct io_probe *probe = context;
	uint32_t block;

	while (clock_now_ns() < probe->end_ns && (block = probe->next_block++) < probe->n_blocks) {
		const int r = probe->process_block(probe, block);

		if (r < 0)
			probe->error = r;
		probe->n_done_blocks++;
	}
}

/* Bytes per second of n parts, or of those done in time, by n_threads; 0 if one failed. */
static double time_probe_blocks(struct io_probe *probe, uint32_t n_blocks, uint32_t n_threads,
				int (*process_block)(struct io_probe *probe, uint32_t block))
{
	const uint64_t begin_ns = clock_now_ns();

	probe->process_block = process_block;
	probe->n_blocks = n_blocks;
	probe->next_block = 0;
	probe->n_done_blocks = 0;
	threads_run(n_threads < MAX_PROBE_THREADS ? n_threads : MAX_PROBE_THREADS,
		    process_probe_blocks, probe);
	if (probe->error)
		return 0;
	return (double)(probe->n_done_blocks * probe->block_nbytes) /
	       ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static char *probe_block_data(const struct io_probe *probe, uint32_t block)
{
	return probe->data + block * probe->block_nbytes;
}

/* Parts spread over the input: in the cache or not, as they are. */
static int read_input_block(struct io_probe *probe, uint32_t block)
{
	const uint64_t span_nbytes = input_total_nbytes(probe->input) - probe->block_nbytes;
	const uint64_t step = span_nbytes / probe->n_blocks;

	return input_read_at(probe->input, step * block + (probe->is_warm ? step / 2 : 0),
			     probe_block_data(probe, block), probe->block_nbytes);
}

static int write_spill_block(struct io_probe *probe, uint32_t block)
{
	return spill_write(probe->spill, probe_block_data(probe, block), probe->block_nbytes,
			   &probe->extents[block]);
}

static int read_spill_block(struct io_probe *probe, uint32_t block)
{
	return spill_read(probe->spill, probe->extents[block], probe_block_data(probe, block));
}

/* Parts of so many bytes in all, to be done by end_ns; without memory. */
static struct io_probe make_io_probe(uint64_t nbytes, uint64_t end_ns)
{
	struct io_probe probe = { .block_nbytes = nbytes / N_PROBE_BLOCKS, .end_ns = end_ns };

	if (probe.block_nbytes > MAX_PROBE_BLOCK_NBYTES)
		probe.block_nbytes = MAX_PROBE_BLOCK_NBYTES;
	probe.block_nbytes -= probe.block_nbytes % MIN_PROBE_BLOCK_NBYTES;
	return probe;
}

/*
 * To be read by so many threads: as long as they can be, since the kernel reads ahead behind each
 * of them, which may be many times as much as a short one has.
 */
static struct io_probe make_read_probe(uint64_t nbytes, uint32_t n_readers, uint64_t end_ns)
{
	struct io_probe probe = make_io_probe(nbytes / n_readers * N_PROBE_BLOCKS, end_ns);
	const uint64_t n = probe.block_nbytes ? nbytes / probe.block_nbytes : 0;

	probe.n_blocks = n < N_PROBE_BLOCKS ? (uint32_t)n : N_PROBE_BLOCKS;
	return probe;
}

/* Parts with memory, or without if there is none. */
static struct io_probe io_probe_open(uint64_t nbytes, uint64_t end_ns)
{
	struct io_probe probe = make_io_probe(nbytes, end_ns);

	if (probe.block_nbytes)
		probe.data = aligned_alloc(SPILL_ALIGN_NBYTES, N_PROBE_BLOCKS * probe.block_nbytes);
	if (probe.data)
		memset(probe.data, 1, N_PROBE_BLOCKS * probe.block_nbytes);
	return probe;
}

/* Takes the rate if there is one. */
static bool record_rate(const struct calibration *calibration, enum stage stage, double rate)
{
	if (rate > 0)
		calibration->rates->bytes_per_s[stage] = rate;
	return rate > 0;
}

/* Of the input, the part that goes to memory which nothing has touched yet. */
static double untouched_fraction(const struct plan *plan)
{
	const uint64_t n = plan->expected_nbytes / plan->record_nbytes;
	const double capacity_records = (double)plan->n_chunks * (double)plan->chunk_records;

	return plan->n_chunks && capacity_records < (double)n ? capacity_records / (double)n : 1;
}

static double combine_rates(double fresh, double warm, double fresh_fraction)
{
	return fresh > 0 && warm > 0 ? 1 / (fresh_fraction / fresh + (1 - fresh_fraction) / warm) :
				       0;
}

/*
 * Reading to memory as chunks have it. The first time its pages have to be had from the system,
 * which takes longer than to copy.
 */
static double time_reads(const struct calibration *calibration, uint64_t nbytes,
			 double (*time_probe)(struct io_probe *probe, uint32_t n_threads))
{
	const struct job *job = calibration->job;
	struct io_probe probe = make_read_probe(nbytes, job->plan.n_readers, calibration->end_ns);
	const size_t buffer_nbytes = probe.n_blocks * probe.block_nbytes;
	double fresh, warm = 0;
	void *memory;

	probe.input = job->input;
	if (buffer_nbytes == 0 ||
	    device_alloc(job_device(job), MEMORY_HOST, buffer_nbytes, &memory) < 0)
		return 0;
	probe.data = memory;
	fresh = time_probe(&probe, job->plan.n_readers);
	probe.is_warm = true;
	if (fresh > 0)
		warm = time_probe(&probe, job->plan.n_readers);
	device_free(job_device(job), MEMORY_HOST, memory, buffer_nbytes);
	return combine_rates(fresh, warm, untouched_fraction(&job->plan));
}

static double time_input(struct io_probe *probe, uint32_t n_threads)
{
	if (input_total_nbytes(probe->input) < 2 * probe->block_nbytes)
		return 0;
	return time_probe_blocks(probe, probe->n_blocks, n_threads, read_input_block);
}

/* Somebody who writes to a pipe as fast as it takes it. */
struct producer {
	struct file file;
	uint64_t nbytes;
	const struct io_probe *probe;
};

static void *produce(void *argument)
{
	static const char data[PIPE_NBYTES];
	struct producer *producer = argument;
	sigset_t saved_mask;
	int r = 0;

	/* That nobody reads any more is an error then, and no end of the process. */
	thread_block_signals(&saved_mask);
	while (producer->nbytes && r == 0 && clock_now_ns() < producer->probe->end_ns) {
		const size_t n = producer->nbytes < sizeof data ? producer->nbytes : sizeof data;

		r = file_write_next(&producer->file, data, n);
		producer->nbytes -= n;
	}
	file_close(&producer->file);
	return NULL;
}

/* All that comes; the rate of it. */
static double consume(struct io_probe *probe, const struct file *file)
{
	const uint64_t begin_ns = clock_now_ns();
	uint64_t done_nbytes = 0;
	size_t read_nbytes = 1;

	for (uint32_t block = 0; block < probe->n_blocks && read_nbytes > 0; block++) {
		if (file_read_next(file, probe_block_data(probe, block), probe->block_nbytes, -1,
				   &read_nbytes) < 0)
			return 0;
		done_nbytes += read_nbytes;
	}
	return (double)done_nbytes / ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static double time_pipe(struct io_probe *probe, uint32_t n_threads)
{
	struct file read_end = { .calls = &syscalls_plain };
	struct producer producer = { .nbytes = probe->n_blocks * probe->block_nbytes,
				     .probe = probe };
	pthread_t thread;
	double rate = 0;
	int fds[2];

	(void)n_threads; /* one after the other */
	if (pipe2(fds, O_CLOEXEC) < 0)
		return 0;
	read_end.fd = fds[0];
	producer.file = (struct file){ .calls = &syscalls_plain, .fd = fds[1] };
	file_enlarge_pipe(&read_end);
	if (thread_start(produce, &producer, 0, &thread) == 0) {
		rate = consume(probe, &read_end);
		file_close(&read_end);
		pthread_join(thread, NULL);
	} else {
		file_close(&read_end);
		file_close(&producer.file);
	}
	return rate;
}

static bool measure_input(const struct calibration *calibration, uint64_t nbytes)
{
	const bool is_pipe = input_total_nbytes(calibration->job->input) == INPUT_SIZE_UNKNOWN;

	return record_rate(calibration, STAGE_READ,
			   time_reads(calibration, nbytes, is_pipe ? time_pipe : time_input));
}

/* Is there room for some times of what is measured? */
static bool has_free_space(struct spill *spill, uint64_t nbytes)
{
	uint64_t free_nbytes;

	return spill_free_nbytes(spill, &free_nbytes) == 0 && free_nbytes / 4 >= nbytes;
}

/* Writing to new files in the directories, unless they are nearly full, and reading from there. */
static bool measure_directories(const struct calibration *calibration,
				const char *const *directories, size_t n, enum cache_policy policy,
				struct io_probe *probe, enum stage write_stage,
				enum stage read_stage)
{
	const struct job *job = calibration->job;
	double rate = 0;

	if (!probe->data ||
	    spill_open(job->io, directories, n, SPILL_UNLIMITED, 0, &probe->spill) < 0)
		return false;
	cache_policy_apply_to_spill(policy, probe->spill);
	spill_disable_preallocation(probe->spill);
	if (has_free_space(probe->spill, N_PROBE_BLOCKS * probe->block_nbytes))
		rate = time_probe_blocks(probe, N_PROBE_BLOCKS, job->plan.n_writers,
					 write_spill_block);
	if (record_rate(calibration, write_stage, rate) && read_stage != write_stage)
		record_rate(calibration, read_stage,
			    time_probe_blocks(probe, probe->n_done_blocks, 1, read_spill_block));
	spill_close(probe->spill);
	return rate > 0;
}

static bool measure_temporary(const struct calibration *calibration, uint64_t nbytes)
{
	const struct job *job = calibration->job;
	const struct sort_spec *spec = calibration->spec;
	const uint64_t stored_nbytes =
		job->plan.input_nbytes == PLAN_SIZE_UNKNOWN ? 0 : job->plan.temp_nbytes;
	struct io_probe probe;
	bool measured;

	if (job->plan.fits_in_memory || !spec->temp_dirs)
		return false;
	probe = io_probe_open(nbytes, calibration->end_ns);
	measured = measure_directories(calibration, spec->temp_dirs, spec->n_temp_dirs,
				       cache_policy_choose(job, stored_nbytes), &probe, STAGE_SPILL,
				       STAGE_FETCH);
	free(probe.data);
	return measured;
}

static enum cache_policy output_cache_policy(const struct job *job)
{
	const uint64_t nbytes = job->plan.input_nbytes;

	return cache_policy_choose(job, nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
}

/* Where the output will lie; of a pipe nobody can say more than of a file here. */
static bool measure_output(const struct calibration *calibration, uint64_t nbytes)
{
	char *path_copy =
		strdup(calibration->spec->output_path ? calibration->spec->output_path : ".");
	const char *directory = path_copy ? dirname(path_copy) : NULL;
	struct io_probe probe;
	bool measured;

	if (!directory)
		return false;
	probe = io_probe_open(nbytes, calibration->end_ns);
	measured = measure_directories(calibration, &directory, 1,
				       output_cache_policy(calibration->job), &probe, STAGE_WRITE,
				       STAGE_WRITE);
	free(probe.data);
	free(path_copy);
	return measured;
}

static bool measure_device(const struct calibration *calibration, uint64_t nbytes)
{
	return calibrate_device(calibration->job, nbytes, calibration->rates);
}

#define STAGE_BIT(STAGE) (1u << STAGE_##STAGE)

static const struct calibration_step {
	uint32_t stages; /* any of which asks for it */
	bool (*measure)(const struct calibration *calibration, uint64_t nbytes);
} calibration_steps[] = {
	{ STAGE_BIT(READ), measure_input },
	{ STAGE_BIT(SPILL) | STAGE_BIT(FETCH), measure_temporary },
	{ STAGE_BIT(WRITE), measure_output },
	{ STAGE_BIT(UPLOAD) | STAGE_BIT(ENCODE) | STAGE_BIT(SORT) | STAGE_BIT(MERGE) |
		  STAGE_BIT(DECODE) | STAGE_BIT(DOWNLOAD),
	  measure_device },
};

enum { N_CALIBRATION_STEPS = sizeof calibration_steps / sizeof calibration_steps[0] };

static bool is_step_requested(const struct calibration_step *step,
			      const struct calibration_request *request)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (request->stages[stage] && step->stages >> stage & 1)
			return true;
	return false;
}

/* With more and more bytes, as long as the next measurement can be expected to end in time. */
static void measure_step(struct calibration *calibration, const struct calibration_step *step,
			 uint64_t budget_ns)
{
	const uint64_t max_nbytes = calibration->request->nbytes;
	uint64_t begin_ns = clock_now_ns();
	uint64_t nbytes = max_nbytes < MIN_PROBE_NBYTES ? max_nbytes : MIN_PROBE_NBYTES;

	calibration->end_ns = begin_ns + budget_ns;
	for (; nbytes <= max_nbytes; nbytes *= GROWTH) {
		const uint64_t previous_ns = begin_ns;

		if (!step->measure(calibration, nbytes))
			return;
		begin_ns = clock_now_ns();
		if (begin_ns + (GROWTH + 1) * (begin_ns - previous_ns) > calibration->end_ns)
			return;
	}
}

uint64_t calibrate_max_nbytes(const struct plan *plan)
{
	if (!plan->copies_to_device || plan->memory_nbytes < plan->device_nbytes)
		return plan->memory_nbytes / 4;
	return plan->device_nbytes / 4;
}

bool calibrate_request_from_stats(const struct stats_totals *totals, uint64_t nbytes,
				  struct calibration_request *ret_request)
{
	struct calibration_request request = {
		.nbytes = nbytes,
		.budget_ns = totals->elapsed_ns / CALIBRATE_TIME_DIVISOR,
	};
	bool has_requested_stage = false;

	for (enum phase i = 0; i < N_PHASES; i++)
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (totals->phases[i].elapsed_ns >= min_phase_ns &&
			    totals->phases[i].stages[stage].nbytes > 0)
				request.stages[stage] = has_requested_stage = true;
	*ret_request = request;
	return has_requested_stage;
}

void calibrate_stages(const struct job *job, const struct sort_spec *spec,
		      const struct calibration_request *request, struct stage_rates *ret_rates)
{
	const uint64_t end_ns = clock_now_ns() + request->budget_ns;
	struct diagnostics *previous_sink =
		diagnostics_push(NULL); /* what cannot be measured is no failure */
	struct calibration calibration = {
		.job = job,
		.spec = spec,
		.request = request,
		.rates = ret_rates,
	};

	*ret_rates = (struct stage_rates){ 0 };
	for (size_t i = 0; i < N_CALIBRATION_STEPS; i++) {
		const uint64_t now_ns = clock_now_ns();

		if (is_step_requested(&calibration_steps[i], request) && now_ns < end_ns)
			measure_step(&calibration, &calibration_steps[i],
				     (end_ns - now_ns) / (N_CALIBRATION_STEPS - i));
	}
	diagnostics_push(previous_sink);
}
