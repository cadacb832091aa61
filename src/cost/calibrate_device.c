/*
 * calibrate_device - how fast a device sorts, merges and copies (see calibrate_device.h)
 */
#include "src/cost/calibrate_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/cost/estimate.h"

enum { MOST_MERGED_RUNS = 64, MOST_DEVICE_NBYTES = 64 << 20 };

/* Records on the device, and what their operations need. */
struct trial {
	const struct job *job;
	struct lane *lane;
	struct mark *mark;
	uint64_t n;
	size_t nbytes, scratch_nbytes;
	void *host, *a, *b, *scratch;
	uint32_t n_runs; /* that are merged: as many as in the last merge, or so */
	struct slice slices[MOST_MERGED_RUNS], source;
	struct digest read;
	struct arranged arranged;
	struct decode_result decoded;
	void *edges[2];
};

/* Are elements sorted that refer to records of `host`? Else a record is what is sorted. */
static bool refers(const struct trial *trial)
{
	return layout_refers(trial->job->layout);
}

/* Do records become elements before they are sorted, and the other way when they are merged? */
static bool is_coded(const struct trial *trial)
{
	return trial->job->plan.shares_processors && layout_has_elements(trial->job->layout);
}

static size_t trial_scratch_nbytes(const struct trial *trial)
{
	const struct job *job = trial->job;
	const struct layout *layout = job->layout;
	const size_t sort = device_sort_scratch_nbytes(job_device(job), layout, trial->n);
	const size_t merge =
		device_merge_scratch_nbytes(job_device(job), layout, trial->n_runs, trial->n);

	return sort > merge ? sort : merge;
}

/* Runs in the last merge: those that are spilled, and the chunks that stay in memory. */
static uint32_t last_runs(const struct plan *plan)
{
	const uint64_t n_chunks =
		plan->n_chunks ? plan->expected_nbytes / plan->record_nbytes / plan->chunk_records :
				 plan->fan_in;
	const uint64_t n_spilled = plan->n_spilled_runs * plan->spill_chunks;
	uint64_t n = n_chunks > n_spilled ? n_chunks - n_spilled : 0;

	n += plan->n_spilled_runs < plan->fan_in ? plan->n_spilled_runs : plan->fan_in;
	return n < 2 ? 2 : n < MOST_MERGED_RUNS ? (uint32_t)n : MOST_MERGED_RUNS;
}

static int alloc_memory(struct trial *trial)
{
	const struct job *job = trial->job;
	int r = device_alloc(job_device(job), MEMORY_HOST, trial->nbytes, &trial->host);

	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, trial->nbytes, &trial->a);
	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, trial->nbytes, &trial->b);
	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, trial->scratch_nbytes,
				 &trial->scratch);
	for (int i = 0; i < 2; i++)
		trial->edges[i] = malloc(job->layout->item_nbytes);
	return r == 0 && trial->edges[0] && trial->edges[1] ? 0 : -ENOMEM;
}

static void fill(struct trial *trial)
{
	uint64_t random = 1;

	for (size_t i = 0; i + 8 <= trial->nbytes; i += 8) {
		random = digest_mix64(random + i);
		memcpy((char *)trial->host + i, &random, 8);
	}
}

static int device_rates_open(struct trial *trial, uint64_t nbytes)
{
	const struct job *job = trial->job;
	const struct layout *layout = job->layout;
	const uint64_t record_nbytes = layout->record_nbytes > layout->resident_nbytes ?
					       layout->record_nbytes :
					       layout->resident_nbytes;
	int r;

	nbytes = nbytes / 4 < MOST_DEVICE_NBYTES ? nbytes / 4 : MOST_DEVICE_NBYTES;
	trial->n = nbytes / record_nbytes;
	trial->n_runs = last_runs(&job->plan);
	if (trial->n < trial->n_runs)
		return -ENOMEM;
	trial->nbytes = trial->n * record_nbytes;
	trial->scratch_nbytes = trial_scratch_nbytes(trial) + 1;
	r = lane_open(job_device(job), LANE_NORMAL, &trial->lane);
	if (r == 0)
		r = mark_open(job_device(job), &trial->mark);
	if (r == 0)
		r = alloc_memory(trial);
	if (r == 0)
		fill(trial);
	return r;
}

static void device_rates_close(struct trial *trial)
{
	const struct job *job = trial->job;

	lane_close(trial->lane);
	mark_close(trial->mark);
	device_release(job_device(job), MEMORY_HOST, trial->host, trial->nbytes);
	device_release(job_device(job), MEMORY_DEVICE, trial->a, trial->nbytes);
	device_release(job_device(job), MEMORY_DEVICE, trial->b, trial->nbytes);
	device_release(job_device(job), MEMORY_DEVICE, trial->scratch, trial->scratch_nbytes);
	free(trial->edges[0]);
	free(trial->edges[1]);
}

/* What is sorted lies in a: elements stay there, items come to b. What is merged of it, to here. */
static void *sorted_at(const struct trial *trial)
{
	return layout_has_elements(trial->job->layout) ? trial->a : trial->b;
}

static void *merged_at(const struct trial *trial)
{
	return layout_has_elements(trial->job->layout) ? trial->b : trial->a;
}

/* Sort n of the records or elements of a, from number `first` on. */
static int queue_sort(struct trial *trial, uint64_t first, uint64_t n)
{
	const struct layout *layout = trial->job->layout;

	return lane_sort(trial->lane,
			 &(struct sort_op){
				 .layout = layout,
				 .records = (char *)trial->a + first * layout->record_nbytes,
				 .items =
					 (char *)sorted_at(trial) + first * layout->resident_nbytes,
				 .n = n,
				 .limit = UINT64_MAX,
				 .scratch = trial->scratch,
				 .ret_read = &trial->read,
				 .ret = &trial->arranged,
			 });
}

static int queue_merge(struct trial *trial)
{
	return lane_merge(trial->lane, &(struct merge_op){
					       .layout = trial->job->layout,
					       .slices = trial->slices,
					       .k = trial->n_runs,
					       .out = merged_at(trial),
					       .limit = UINT64_MAX,
					       .scratch = trial->scratch,
					       .ret_first = trial->edges[0],
					       .ret_last = trial->edges[1],
					       .ret = &trial->arranged,
				       });
}

/* Elements of the records of `host` to a. */
static int queue_encode(struct trial *trial)
{
	const struct job *job = trial->job;

	return lane_encode(trial->lane, &(struct encode_op){
						.layout = job->layout,
						.records = trial->host,
						.elements = trial->a,
						.n = trial->n,
						.ret_digest = &trial->read,
					});
}

/* Bring what is to be sorted to a. */
static int queue_load(struct trial *trial)
{
	return refers(trial) ? queue_encode(trial) :
			       lane_copy(trial->lane, trial->a, trial->host, trial->nbytes);
}

/* Of the first n elements of b, the records to a. */
static int queue_decode(struct trial *trial, uint64_t n)
{
	const struct job *job = trial->job;

	trial->source = (struct slice){ trial->host, trial->n };
	return lane_decode(trial->lane, &(struct decode_op){
						.layout = job->layout,
						.sources = &trial->source,
						.n_sources = 1,
						.elements = trial->b,
						.records = trial->a,
						.n = n,
						.ret = &trial->decoded,
					});
}

/* The rate of what was queued, over the trial's bytes; 0 after an error. */
static double trial_rate(struct trial *trial, int queued, uint64_t begin_ns, uint64_t nbytes)
{
	if (queued < 0 || lane_wait(trial->lane, trial->mark) < 0)
		return 0;
	return (double)nbytes / ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static double time_copy(struct trial *trial, void *to, const void *from)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = lane_copy(trial->lane, to, from, trial->nbytes);

	return trial_rate(trial, r, begin_ns, trial->nbytes);
}

static double time_sort(struct trial *trial)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_sort(trial, 0, trial->n);

	return trial_rate(trial, r, begin_ns,
			  trial->n * estimate_sorted_nbytes(trial->job->layout));
}

/* Sort parts, then merge them. */
static double time_merge(struct trial *trial)
{
	const struct layout *layout = trial->job->layout;
	const char *sorted = sorted_at(trial);
	const uint64_t n = trial->n / trial->n_runs;
	uint64_t begin_ns;
	int r = queue_load(trial);

	for (uint32_t i = 0; i < trial->n_runs && r == 0; i++) {
		r = queue_sort(trial, i * n, n);
		trial->slices[i] = (struct slice){ sorted + i * n * layout->resident_nbytes, n };
	}
	if (r < 0 || lane_wait(trial->lane, trial->mark) < 0)
		return 0;
	begin_ns = clock_now_ns();
	r = queue_merge(trial);
	return trial_rate(trial, r, begin_ns, trial->n_runs * n * estimate_merged_nbytes(layout));
}

/* What comes before a sort: a holds elements then. */
static double time_encode(struct trial *trial)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_encode(trial);

	return trial_rate(trial, r, begin_ns, trial->nbytes);
}

/* What comes after a merge. */
static double time_decode(struct trial *trial)
{
	const uint64_t n = trial->n / trial->n_runs * trial->n_runs;
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_decode(trial, n);

	return trial_rate(trial, r, begin_ns, n * trial->job->layout->record_nbytes);
}

/* One that is there twice has one link, and as many processors as ever. */
static uint32_t count_devices(const struct job *job)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_workers; i++) {
		uint32_t first = 0;

		while (job->workers[first].number != job->workers[i].number)
			first++;
		n += first == i;
	}
	return n;
}

bool device_rates_measure(const struct job *job, uint64_t nbytes, struct link_rates *rates)
{
	struct trial trial = { .job = job };
	const uint32_t n_devices = count_devices(job); /* of which one is tried */
	const double devices = n_devices;
	const double lanes = job->plan.shares_processors ? job->info.n_lanes : devices;
	bool is_open;
	double upload;

	rates->n_devices = n_devices;
	is_open = device_rates_open(&trial, nbytes) == 0;
	if (is_open) {
		time_merge(&trial); /* memory is touched, and what starts late starts, untimed */
		rates->rates[STAGE_MERGE] = lanes * time_merge(&trial);
		if (is_coded(&trial))
			rates->rates[STAGE_DECODE] = lanes * time_decode(&trial);
		upload = time_copy(&trial, trial.a, trial.host);
		if (is_coded(&trial))
			rates->rates[STAGE_ENCODE] = lanes * time_encode(&trial);
		rates->rates[STAGE_SORT] = lanes * time_sort(&trial);
		if (job->plan.copies) {
			rates->rates[STAGE_UPLOAD] = devices * upload;
			rates->rates[STAGE_DOWNLOAD] =
				devices * time_copy(&trial, trial.host, trial.b);
		}
	}
	device_rates_close(&trial);
	return is_open;
}
