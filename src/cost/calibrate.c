/*
 * calibrate.c - measure the rate of each stage when it runs alone (see calibrate.h)
 *
 * Files are read and written as in a sort, in blocks and by several threads; written files have no
 * names and vanish. The operations of the back end run on random records.
 */
#include "src/cost/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/plan/job.h"

enum {
	N_PROBE_BLOCKS = 64, /* of a file */
	MAX_PROBE_BLOCK_NBYTES = 4 << 20,
	MAX_PROBE_THREADS = 16,
	MIN_PROBE_NBYTES = 1 << 20,
	PIPE_NBYTES = 256 << 10,
	GROWTH = 4,                  /* factor between two measurements */
	CALIBRATE_TIME_DIVISOR = 10, /* divides the time of the sort */
};

/* Shorter phases are not worth measuring. */
static const uint64_t min_phase_ns = UINT64_C(1000000000);

struct calibration {
	const struct job *job;
	const struct sort_spec *spec;
	const struct calibration_request *request;
	uint64_t end_ns;
	struct stage_rates *rates;
};

/* --- files and pipes --- */

/* Blocks that threads claim until the time is over. */
struct io_probe {
	int (*process_block)(struct io_probe *probe, uint32_t block);
	uint64_t block_nbytes;
	uint64_t end_ns;
	uint32_t n_blocks;
	_Atomic uint32_t n_done_blocks;

	struct input *input;
	bool is_warm; /* second reading: blocks are read into memory that was touched */
	struct spill *spill;
	struct spill_extent extents[N_PROBE_BLOCKS];
	char *data; /* block_nbytes each */
};

static int process_probe_block(void *context, uint64_t block, void *buffer)
{
	struct io_probe *probe = context;
	int r;

	(void)buffer;
	if (clock_now_ns() >= probe->end_ns)
		return 1;
	r = probe->process_block(probe, (uint32_t)block);
	probe->n_done_blocks += r == 0;
	return r;
}

/*
 * Return the bytes per second of n blocks (or of those done in time) on n_threads; 0 after an
 * error.
 */
static double time_probe_blocks(struct io_probe *probe, uint32_t n_blocks, uint32_t n_threads,
				int (*process_block)(struct io_probe *probe, uint32_t block))
{
	const uint64_t begin_ns = clock_now_ns();
	int r;

	probe->process_block = process_block;
	probe->n_blocks = n_blocks;
	probe->n_done_blocks = 0;
	r = threads_run_blocks(n_threads < MAX_PROBE_THREADS ? n_threads : MAX_PROBE_THREADS,
			       n_blocks, 0, process_probe_block, probe);
	if (r < 0)
		return 0;
	return (double)(probe->n_done_blocks * probe->block_nbytes) /
	       ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static char *probe_block_data(const struct io_probe *probe, uint32_t block)
{
	return probe->data + block * probe->block_nbytes;
}

/* Read blocks spread over the input, whether cached or not. */
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

/* Make blocks of nbytes in total, to be done by end_ns; without memory. */
static struct io_probe make_io_probe(uint64_t nbytes, uint64_t end_ns)
{
	return (struct io_probe){
		.block_nbytes = u64_min(nbytes / N_PROBE_BLOCKS, MAX_PROBE_BLOCK_NBYTES),
		.end_ns = end_ns,
	};
}

/*
 * Make blocks for n_readers threads, as long as possible: the kernel reads ahead after each of
 * them, which may be many times the length of a short block.
 */
static struct io_probe make_read_probe(uint64_t nbytes, uint32_t n_readers, uint64_t end_ns)
{
	struct io_probe probe = make_io_probe(nbytes / n_readers * N_PROBE_BLOCKS, end_ns);
	const uint64_t n = probe.block_nbytes ? nbytes / probe.block_nbytes : 0;

	probe.n_blocks = n < N_PROBE_BLOCKS ? (uint32_t)n : N_PROBE_BLOCKS;
	return probe;
}

/* Make blocks with memory; data is NULL if there is none. */
static struct io_probe io_probe_open(uint64_t nbytes, uint64_t end_ns)
{
	struct io_probe probe = make_io_probe(nbytes, end_ns);

	if (probe.block_nbytes)
		probe.data = aligned_alloc(SPILL_ALIGN_NBYTES, N_PROBE_BLOCKS * probe.block_nbytes);
	if (probe.data)
		memset(probe.data, 1, N_PROBE_BLOCKS * probe.block_nbytes);
	return probe;
}

/* Record the rate if it is positive. */
static bool record_rate(const struct calibration *calibration, enum stage stage, double rate)
{
	if (rate > 0)
		calibration->rates->bytes_per_s[stage] = rate;
	return rate > 0;
}

/*
 * Combine the rates of reading into fresh memory and into memory that was touched: the chunks are
 * reused if the input is larger than they are.
 */
static double combine_rates(const struct plan *plan, double fresh, double warm)
{
	const uint64_t n = plan->expected_nbytes / plan->record_nbytes;
	const double capacity_records = (double)plan->n_chunks * (double)plan->chunk_records;
	const double fresh_fraction =
		plan->n_chunks && capacity_records < (double)n ? capacity_records / (double)n : 1;

	return fresh > 0 && warm > 0 ? 1 / (fresh_fraction / fresh + (1 - fresh_fraction) / warm) :
				       0;
}

static double time_input(struct io_probe *probe, uint32_t n_threads)
{
	if (input_total_nbytes(probe->input) < 2 * probe->block_nbytes)
		return 0;
	return time_probe_blocks(probe, probe->n_blocks, n_threads, read_input_block);
}

/* A thread that writes to a pipe as fast as possible. */
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

	/* EPIPE is an error then; SIGPIPE would end the process. */
	thread_block_signals(&saved_mask);
	while (producer->nbytes && r == 0 && clock_now_ns() < producer->probe->end_ns) {
		const size_t n = producer->nbytes < sizeof data ? producer->nbytes : sizeof data;

		r = file_write_next(&producer->file, data, n);
		producer->nbytes -= n;
	}
	file_close(&producer->file);
	return NULL;
}

/* Return the rate of reading all data of the pipe. */
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

	(void)n_threads; /* a pipe is read by one */
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

/*
 * Read to memory as chunks have it. The first time the system has to provide pages, which takes
 * longer than the copy.
 */
static bool measure_input(const struct calibration *calibration, uint64_t nbytes)
{
	const struct job *job = calibration->job;
	struct io_probe probe = make_read_probe(nbytes, job->plan.n_readers, calibration->end_ns);
	const size_t buffer_nbytes = probe.n_blocks * probe.block_nbytes;
	double (*const time_probe)(struct io_probe * probe, uint32_t n_threads) =
		input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN ? time_pipe : time_input;
	double fresh, warm = 0;
	void *memory;

	probe.input = job->input;
	if (buffer_nbytes == 0 ||
	    device_alloc(job_device(job), MEMORY_HOST, buffer_nbytes, &memory) < 0)
		return false;
	probe.data = memory;
	fresh = time_probe(&probe, job->plan.n_readers);
	probe.is_warm = true;
	if (fresh > 0)
		warm = time_probe(&probe, job->plan.n_readers);
	device_free(job_device(job), MEMORY_HOST, memory, buffer_nbytes);
	return record_rate(calibration, STAGE_READ, combine_rates(&job->plan, fresh, warm));
}

/* Write new files in the directories, unless they are nearly full, and read them. */
static bool measure_directories(const struct calibration *calibration,
				const char *const *directories, size_t n, enum cache_policy policy,
				struct io_probe *probe, enum stage write_stage,
				enum stage read_stage)
{
	const struct job *job = calibration->job;
	uint64_t free_nbytes;
	double rate = 0;

	if (!probe->data ||
	    spill_open(job->io, directories, n, SPILL_UNLIMITED, 0, &probe->spill) < 0)
		return false;
	cache_policy_apply_to_spill(policy, job->plan.n_writers, probe->spill);
	spill_disable_preallocation(probe->spill);
	/* There must be free space for several times the data. */
	if (spill_free_nbytes(probe->spill, &free_nbytes) == 0 &&
	    free_nbytes / 4 >= N_PROBE_BLOCKS * probe->block_nbytes)
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

/* Measure the directory of the output; for a pipe, the current directory. */
static bool measure_output(const struct calibration *calibration, uint64_t nbytes)
{
	char *path_copy =
		strdup(calibration->spec->output_path ? calibration->spec->output_path : ".");
	const char *directory = path_copy ? dirname(path_copy) : NULL;
	const uint64_t input_nbytes = calibration->job->plan.input_nbytes;
	const enum cache_policy policy = cache_policy_choose(
		calibration->job, input_nbytes == PLAN_SIZE_UNKNOWN ? 0 : input_nbytes);
	struct io_probe probe;
	bool measured;

	if (!directory)
		return false;
	probe = io_probe_open(nbytes, calibration->end_ns);
	measured = measure_directories(calibration, &directory, 1, policy, &probe, STAGE_WRITE,
				       STAGE_WRITE);
	free(probe.data);
	free(path_copy);
	return measured;
}

/* --- the device --- */

enum { MAX_PROBE_RUNS = 64, MAX_DEVICE_PROBE_NBYTES = 64 << 20 };

/* Records on the device, and what the operations need. */
struct device_probe {
	const struct job *job;
	struct device_queue *queue;
	struct device_event *event;
	uint64_t n;
	size_t nbytes, scratch_nbytes;
	void *host, *a, *b, *scratch;
	uint32_t n_runs; /* to be merged: about as many as in the final merge */
	struct slice slices[MAX_PROBE_RUNS], source;
	struct digest read_digest;
	struct sort_op_result sort_result;
	struct decode_result decoded;
};

/* Return whether records are encoded as elements before sorting, and decoded after merging. */
static bool encodes_records(const struct device_probe *probe)
{
	return probe->job->plan.sorts_on_cpu && layout_has_elements(probe->job->layout);
}

/* Return the runs of the final merge: spilled ones, and chunks that stay in memory. */
static uint32_t final_merge_run_count(const struct plan *plan)
{
	const uint64_t n_chunks =
		plan->n_chunks ? plan->expected_nbytes / plan->record_nbytes / plan->chunk_records :
				 plan->fan_in;
	const uint64_t n_spilled = plan->n_spilled_runs * plan->chunks_per_run;
	uint64_t n = n_chunks > n_spilled ? n_chunks - n_spilled : 0;

	n += plan->n_spilled_runs < plan->fan_in ? plan->n_spilled_runs : plan->fan_in;
	return n < 2 ? 2 : n < MAX_PROBE_RUNS ? (uint32_t)n : MAX_PROBE_RUNS;
}

static int device_probe_open(struct device_probe *probe, uint64_t nbytes)
{
	struct device *device = job_device(probe->job);
	const struct layout *layout = probe->job->layout;
	const uint64_t record_nbytes = layout->record_nbytes > layout->resident_nbytes ?
					       layout->record_nbytes :
					       layout->resident_nbytes;
	uint64_t random = 1;
	int r;

	nbytes = nbytes / 4 < MAX_DEVICE_PROBE_NBYTES ? nbytes / 4 : MAX_DEVICE_PROBE_NBYTES;
	probe->n = nbytes / record_nbytes;
	probe->n_runs = final_merge_run_count(&probe->job->plan);
	if (probe->n < probe->n_runs)
		return -ENOMEM;
	probe->nbytes = probe->n * record_nbytes;
	probe->scratch_nbytes =
		u64_max(device_sort_scratch_nbytes(device, layout, probe->n),
			device_merge_scratch_nbytes(device, layout, probe->n_runs, probe->n)) +
		1;
	r = device_queue_open(device, QUEUE_PRIORITY_NORMAL, &probe->queue);
	if (r == 0)
		r = device_event_open(device, &probe->event);
	if (r == 0)
		r = device_alloc(device, MEMORY_HOST, probe->nbytes, &probe->host);
	if (r == 0)
		r = device_alloc(device, MEMORY_DEVICE, probe->nbytes, &probe->a);
	if (r == 0)
		r = device_alloc(device, MEMORY_DEVICE, probe->nbytes, &probe->b);
	if (r == 0)
		r = device_alloc(device, MEMORY_DEVICE, probe->scratch_nbytes, &probe->scratch);
	for (size_t i = 0; r == 0 && i + 8 <= probe->nbytes; i += 8) {
		random = digest_mix64(random + i);
		memcpy((char *)probe->host + i, &random, 8);
	}
	return r;
}

static void device_probe_close(struct device_probe *probe)
{
	struct device *device = job_device(probe->job);

	device_queue_close(probe->queue);
	device_event_close(probe->event);
	device_free(device, MEMORY_HOST, probe->host, probe->nbytes);
	device_free(device, MEMORY_DEVICE, probe->a, probe->nbytes);
	device_free(device, MEMORY_DEVICE, probe->b, probe->nbytes);
	device_free(device, MEMORY_DEVICE, probe->scratch, probe->scratch_nbytes);
}

/*
 * Return the sorted output: elements stay in `a`, items are in `b`. The merge writes to the other
 * one.
 */
static void *sorted_output(const struct device_probe *probe)
{
	return layout_has_elements(probe->job->layout) ? probe->a : probe->b;
}

/* Sort n records or elements of a, from `first` on. */
static int queue_sort(struct device_probe *probe, uint64_t first, uint64_t n)
{
	const struct layout *layout = probe->job->layout;

	return device_queue_sort(
		probe->queue,
		&(struct sort_op){
			.layout = layout,
			.records = (char *)probe->a + first * layout->record_nbytes,
			.items = (char *)sorted_output(probe) + first * layout->resident_nbytes,
			.n = n,
			.limit = UINT64_MAX,
			.scratch = probe->scratch,
			.ret_input_digest = &probe->read_digest,
			.ret = &probe->sort_result,
		});
}

/* Encode the records of `host` to a. */
static int queue_encode(struct device_probe *probe)
{
	const struct job *job = probe->job;

	return device_queue_encode(probe->queue, &(struct encode_op){
							 .layout = job->layout,
							 .records = probe->host,
							 .elements = probe->a,
							 .n = probe->n,
							 .ret_digest = &probe->read_digest,
						 });
}

/* Wait for the queued operations and return their rate; 0 after an error. */
static double wait_and_rate(struct device_probe *probe, int queued, uint64_t begin_ns,
			    uint64_t nbytes)
{
	if (queued < 0 || device_queue_synchronize(probe->queue, probe->event) < 0)
		return 0;
	return (double)nbytes / ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static double time_copy(struct device_probe *probe, void *destination, const void *source)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = device_queue_copy(probe->queue, destination, source, probe->nbytes);

	return wait_and_rate(probe, r, begin_ns, probe->nbytes);
}

static double time_sort(struct device_probe *probe)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_sort(probe, 0, probe->n);

	return wait_and_rate(probe, r, begin_ns,
			     probe->n * estimate_sorted_nbytes(probe->job->layout));
}

/*
 * Sort pieces of the data in `a`, then merge them; only the merge is timed. Elements of an indirect
 * layout refer to records in `host`.
 */
static double time_merge(struct device_probe *probe)
{
	const struct layout *layout = probe->job->layout;
	const char *sorted = sorted_output(probe);
	const uint64_t n = probe->n / probe->n_runs;
	uint64_t begin_ns;
	int r = layout_is_indirect(layout) ?
			queue_encode(probe) :
			device_queue_copy(probe->queue, probe->a, probe->host, probe->nbytes);

	for (uint32_t i = 0; i < probe->n_runs && r == 0; i++) {
		r = queue_sort(probe, i * n, n);
		probe->slices[i] = (struct slice){ sorted + i * n * layout->resident_nbytes, n };
	}
	if (r < 0 || device_queue_synchronize(probe->queue, probe->event) < 0)
		return 0;
	begin_ns = clock_now_ns();
	r = device_queue_merge(probe->queue,
			       &(struct merge_op){
				       .layout = layout,
				       .slices = probe->slices,
				       .k = probe->n_runs,
				       .out = layout_has_elements(layout) ? probe->b : probe->a,
				       .limit = UINT64_MAX,
				       .scratch = probe->scratch,
				       .ret = &probe->sort_result,
			       });
	return wait_and_rate(probe, r, begin_ns,
			     probe->n_runs * n * estimate_merged_nbytes(layout));
}

/* Time encoding; a has elements then. */
static double time_encode(struct device_probe *probe)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_encode(probe);

	return wait_and_rate(probe, r, begin_ns, probe->nbytes);
}

/* Time decoding the merged elements of b to a. */
static double time_decode(struct device_probe *probe)
{
	const uint64_t n = probe->n / probe->n_runs * probe->n_runs;
	const uint64_t begin_ns = clock_now_ns();
	int r;

	probe->source = (struct slice){ probe->host, probe->n };
	r = device_queue_decode(probe->queue, &(struct decode_op){
						      .layout = probe->job->layout,
						      .sources = &probe->source,
						      .n_sources = 1,
						      .elements = probe->b,
						      .records = probe->a,
						      .n = n,
						      .ret = &probe->decoded,
					      });
	return wait_and_rate(probe, r, begin_ns, n * probe->job->layout->record_nbytes);
}

/* Count devices; one that is listed twice has one link, and the CPUs of one. */
static uint32_t count_distinct_devices(const struct job *job)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_devices; i++) {
		uint32_t first = 0;

		while (job->devices[first].ordinal != job->devices[i].ordinal)
			first++;
		n += first == i;
	}
	return n;
}

/*
 * Measure one queue. Multiply its rates by the number of queues that share the CPUs, or of devices.
 * Returns false if there is no memory for the measurement.
 */
static bool measure_device(const struct calibration *calibration, uint64_t nbytes)
{
	const struct job *job = calibration->job;
	struct stage_rates *rates = calibration->rates;
	struct device_probe probe = { .job = job };
	const uint32_t n_devices = count_distinct_devices(job); /* only one is measured */
	const double device_factor = n_devices;
	const double queue_factor = job->plan.sorts_on_cpu ? job->device_info.n_queues :
							     device_factor;
	bool is_open;
	double upload;

	rates->n_devices = n_devices;
	is_open = device_probe_open(&probe, nbytes) == 0;
	if (is_open) {
		time_merge(&probe); /* not timed: it allocates pages and starts threads */
		rates->bytes_per_s[STAGE_MERGE] = queue_factor * time_merge(&probe);
		if (encodes_records(&probe))
			rates->bytes_per_s[STAGE_DECODE] = queue_factor * time_decode(&probe);
		upload = time_copy(&probe, probe.a, probe.host);
		if (encodes_records(&probe))
			rates->bytes_per_s[STAGE_ENCODE] = queue_factor * time_encode(&probe);
		rates->bytes_per_s[STAGE_SORT] = queue_factor * time_sort(&probe);
		if (job->plan.copies_to_device) {
			rates->bytes_per_s[STAGE_UPLOAD] = device_factor * upload;
			rates->bytes_per_s[STAGE_DOWNLOAD] =
				device_factor * time_copy(&probe, probe.host, probe.b);
		}
	}
	device_probe_close(&probe);
	return is_open;
}

/* --- all steps --- */

#define STAGE_BIT(STAGE) (1u << STAGE_##STAGE)

static const struct calibration_step {
	uint32_t stages; /* that request the step */
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

/* Measure more and more bytes, as long as the next measurement is expected to end in time. */
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
	struct diagnostics *previous_sink = diagnostics_push(NULL); /* errors are not reported */
	struct calibration calibration = {
		.job = job,
		.spec = spec,
		.request = request,
		.rates = ret_rates,
	};
	uint32_t requested_stages = 0;

	*ret_rates = (struct stage_rates){ 0 };
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		requested_stages |= (uint32_t)request->stages[stage] << stage;
	for (size_t i = 0; i < N_CALIBRATION_STEPS; i++) {
		const uint64_t now_ns = clock_now_ns();

		if (calibration_steps[i].stages & requested_stages && now_ns < end_ns)
			measure_step(&calibration, &calibration_steps[i],
				     (end_ns - now_ns) / (N_CALIBRATION_STEPS - i));
	}
	diagnostics_push(previous_sink);
}
