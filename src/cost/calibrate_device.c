/*
 * calibrate_device - how fast a device sorts, merges and copies (see calibrate_device.h)
 */
#include "src/cost/calibrate_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/cost/estimate.h"

enum { MAX_PROBE_RUNS = 64, MAX_DEVICE_PROBE_NBYTES = 64 << 20 };

/* Records on the device, and what their operations need. */
struct device_probe {
	const struct job *job;
	struct device_queue *queue;
	struct device_event *event;
	uint64_t n;
	size_t nbytes, scratch_nbytes;
	void *host, *a, *b, *scratch;
	uint32_t n_runs; /* that are merged: as many as in the last merge, or so */
	struct slice slices[MAX_PROBE_RUNS], source;
	struct digest read_digest;
	struct sort_op_result sort_result;
	struct decode_result decoded;
	void *edges[2];
};

/* Are elements sorted that refer to records of `host`? Else a record is what is sorted. */
static bool sorts_indirectly(const struct device_probe *probe)
{
	return layout_is_indirect(probe->job->layout);
}

/* Do records become elements before they are sorted, and the other way when they are merged? */
static bool encodes_records(const struct device_probe *probe)
{
	return probe->job->plan.sorts_on_cpu && layout_has_elements(probe->job->layout);
}

static size_t probe_scratch_nbytes(const struct device_probe *probe)
{
	const struct job *job = probe->job;
	const struct layout *layout = job->layout;
	const size_t sort_nbytes = device_sort_scratch_nbytes(job_device(job), layout, probe->n);
	const size_t merge_nbytes =
		device_merge_scratch_nbytes(job_device(job), layout, probe->n_runs, probe->n);

	return sort_nbytes > merge_nbytes ? sort_nbytes : merge_nbytes;
}

/* Runs in the last merge: those that are spilled, and the chunks that stay in memory. */
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

static int alloc_probe_memory(struct device_probe *probe)
{
	const struct job *job = probe->job;
	int r = device_alloc(job_device(job), MEMORY_HOST, probe->nbytes, &probe->host);

	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, probe->nbytes, &probe->a);
	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, probe->nbytes, &probe->b);
	if (r == 0)
		r = device_alloc(job_device(job), MEMORY_DEVICE, probe->scratch_nbytes,
				 &probe->scratch);
	for (int i = 0; i < 2; i++)
		probe->edges[i] = malloc(job->layout->item_nbytes);
	return r == 0 && probe->edges[0] && probe->edges[1] ? 0 : -ENOMEM;
}

static void fill_with_random(struct device_probe *probe)
{
	uint64_t random = 1;

	for (size_t i = 0; i + 8 <= probe->nbytes; i += 8) {
		random = digest_mix64(random + i);
		memcpy((char *)probe->host + i, &random, 8);
	}
}

static int device_probe_open(struct device_probe *probe, uint64_t nbytes)
{
	const struct job *job = probe->job;
	const struct layout *layout = job->layout;
	const uint64_t record_nbytes = layout->record_nbytes > layout->resident_nbytes ?
					       layout->record_nbytes :
					       layout->resident_nbytes;
	int r;

	nbytes = nbytes / 4 < MAX_DEVICE_PROBE_NBYTES ? nbytes / 4 : MAX_DEVICE_PROBE_NBYTES;
	probe->n = nbytes / record_nbytes;
	probe->n_runs = final_merge_run_count(&job->plan);
	if (probe->n < probe->n_runs)
		return -ENOMEM;
	probe->nbytes = probe->n * record_nbytes;
	probe->scratch_nbytes = probe_scratch_nbytes(probe) + 1;
	r = device_queue_open(job_device(job), QUEUE_PRIORITY_NORMAL, &probe->queue);
	if (r == 0)
		r = device_event_open(job_device(job), &probe->event);
	if (r == 0)
		r = alloc_probe_memory(probe);
	if (r == 0)
		fill_with_random(probe);
	return r;
}

static void device_probe_close(struct device_probe *probe)
{
	const struct job *job = probe->job;

	device_queue_close(probe->queue);
	device_event_close(probe->event);
	device_free(job_device(job), MEMORY_HOST, probe->host, probe->nbytes);
	device_free(job_device(job), MEMORY_DEVICE, probe->a, probe->nbytes);
	device_free(job_device(job), MEMORY_DEVICE, probe->b, probe->nbytes);
	device_free(job_device(job), MEMORY_DEVICE, probe->scratch, probe->scratch_nbytes);
	free(probe->edges[0]);
	free(probe->edges[1]);
}

/* What is sorted lies in a: elements stay there, items come to b. What is merged of it, to here. */
static void *sorted_output(const struct device_probe *probe)
{
	return layout_has_elements(probe->job->layout) ? probe->a : probe->b;
}

static void *merge_output(const struct device_probe *probe)
{
	return layout_has_elements(probe->job->layout) ? probe->b : probe->a;
}

/* Sort n of the records or elements of a, from number `first` on. */
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

static int queue_merge(struct device_probe *probe)
{
	return device_queue_merge(probe->queue, &(struct merge_op){
							.layout = probe->job->layout,
							.slices = probe->slices,
							.k = probe->n_runs,
							.out = merge_output(probe),
							.limit = UINT64_MAX,
							.scratch = probe->scratch,
							.ret_first = probe->edges[0],
							.ret_last = probe->edges[1],
							.ret = &probe->sort_result,
						});
}

/* Elements of the records of `host` to a. */
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

/* Bring what is to be sorted to a. */
static int queue_load(struct device_probe *probe)
{
	return sorts_indirectly(probe) ?
		       queue_encode(probe) :
		       device_queue_copy(probe->queue, probe->a, probe->host, probe->nbytes);
}

/* Of the first n elements of b, the records to a. */
static int queue_decode(struct device_probe *probe, uint64_t n)
{
	const struct job *job = probe->job;

	probe->source = (struct slice){ probe->host, probe->n };
	return device_queue_decode(probe->queue, &(struct decode_op){
							 .layout = job->layout,
							 .sources = &probe->source,
							 .n_sources = 1,
							 .elements = probe->b,
							 .records = probe->a,
							 .n = n,
							 .ret = &probe->decoded,
						 });
}

/* The rate of what was queued, over the trial's bytes; 0 after an error. */
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

/* Sort parts, then merge them. */
static double time_merge(struct device_probe *probe)
{
	const struct layout *layout = probe->job->layout;
	const char *sorted = sorted_output(probe);
	const uint64_t n = probe->n / probe->n_runs;
	uint64_t begin_ns;
	int r = queue_load(probe);

	for (uint32_t i = 0; i < probe->n_runs && r == 0; i++) {
		r = queue_sort(probe, i * n, n);
		probe->slices[i] = (struct slice){ sorted + i * n * layout->resident_nbytes, n };
	}
	if (r < 0 || device_queue_synchronize(probe->queue, probe->event) < 0)
		return 0;
	begin_ns = clock_now_ns();
	r = queue_merge(probe);
	return wait_and_rate(probe, r, begin_ns,
			     probe->n_runs * n * estimate_merged_nbytes(layout));
}

/* What comes before a sort: a holds elements then. */
static double time_encode(struct device_probe *probe)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_encode(probe);

	return wait_and_rate(probe, r, begin_ns, probe->nbytes);
}

/* What comes after a merge. */
static double time_decode(struct device_probe *probe)
{
	const uint64_t n = probe->n / probe->n_runs * probe->n_runs;
	const uint64_t begin_ns = clock_now_ns();
	int r = queue_decode(probe, n);

	return wait_and_rate(probe, r, begin_ns, n * probe->job->layout->record_nbytes);
}

/* One that is there twice has one link, and as many processors as ever. */
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

bool calibrate_device(const struct job *job, uint64_t nbytes, struct stage_rates *rates)
{
	struct device_probe probe = { .job = job };
	const uint32_t n_devices = count_distinct_devices(job); /* of which one is tried */
	const double device_factor = n_devices;
	const double queue_factor = job->plan.sorts_on_cpu ? job->device_info.n_queues :
							     device_factor;
	bool is_open;
	double upload;

	rates->n_devices = n_devices;
	is_open = device_probe_open(&probe, nbytes) == 0;
	if (is_open) {
		time_merge(&probe); /* memory is touched, and what starts late starts, untimed */
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
