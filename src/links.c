/*
 * links - how fast the machine can do what each stage does (see links.h)
 *
 * Files are read and written as the sort does it, in parts and by its threads; what is written has
 * no name and is given back. Operations of the back end work on random records.
 */
#include "src/links.h"

#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/status.h"

enum {
	N_PARTS = 64, /* of a file, */
	LEAST_PART_NBYTES = 4 << 10,
	MOST_PART_NBYTES = 4 << 20,
	ROUNDS = 3,
	MOST_THREADS = 16,
	MERGED_RUNS = 8,
	MOST_DEVICE_NBYTES = 64 << 20,
};

/* Work that threads share: parts, taken one by one. */
struct parts {
	int (*work)(struct parts *parts, uint32_t part);
	uint64_t part_nbytes;
	_Atomic uint32_t next;
	_Atomic int error;

	struct input *input;
	struct spill *spill;
	struct spill_extent extents[N_PARTS];
	char *data; /* part_nbytes each */
};

static void *parts_main(void *argument)
{
	struct parts *parts = argument;
	uint32_t part;

	while ((part = parts->next++) < N_PARTS) {
		const int r = parts->work(parts, part);

		if (r < 0)
			parts->error = r;
	}
	return NULL;
}

/* Bytes per second of all parts, by n_threads; 0 if a part failed. */
static double time_once(struct parts *parts, uint32_t n_threads,
			int (*work)(struct parts *parts, uint32_t part))
{
	const uint64_t begin_ns = trace_now_ns();
	pthread_t threads[MOST_THREADS];
	uint32_t n_started = 0;

	parts->work = work;
	parts->next = 0;
	while (n_started + 1 < n_threads && n_started < MOST_THREADS &&
	       pthread_create(&threads[n_started], NULL, parts_main, parts) == 0)
		n_started++;
	parts_main(parts);
	for (uint32_t i = 0; i < n_started; i++)
		pthread_join(threads[i], NULL);
	if (parts->error)
		return 0;
	return (double)(N_PARTS * parts->part_nbytes) /
	       ((double)(trace_now_ns() - begin_ns) * 1e-9);
}

static char *part_data(const struct parts *parts, uint32_t part)
{
	return parts->data + part * parts->part_nbytes;
}

/* The best of some rounds: others share the machine. */
static double time_parts(struct parts *parts, uint32_t n_threads,
			 int (*work)(struct parts *parts, uint32_t part))
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		const double rate = time_once(parts, n_threads, work);

		if (rate > best)
			best = rate;
	}
	return best;
}

/* Parts spread over the input: in the cache or not, as they are. */
static int read_part(struct parts *parts, uint32_t part)
{
	const uint64_t room = input_total_nbytes(parts->input) - parts->part_nbytes;

	return input_read_at(parts->input, room / N_PARTS * part, part_data(parts, part),
			     parts->part_nbytes);
}

static int write_part(struct parts *parts, uint32_t part)
{
	return spill_write(parts->spill, part_data(parts, part), parts->part_nbytes,
			   &parts->extents[part]);
}

static int read_back(struct parts *parts, uint32_t part)
{
	return spill_read(parts->spill, parts->extents[part], part_data(parts, part));
}

static void measure_input(const struct engine *engine, struct parts *parts,
			  struct link_rates *rates)
{
	const uint64_t nbytes = input_total_nbytes(engine->input);

	if (nbytes == INPUT_SIZE_UNKNOWN || nbytes < 2 * parts->part_nbytes)
		return;
	parts->input = engine->input;
	rates->rates[STAGE_READ] = time_parts(parts, engine->plan.n_readers, read_part);
}

/*
 * Writing to new files in the directories, unless they are nearly full; and reading from there, if
 * asked for.
 */
static double measure_directories(const struct engine *engine, struct parts *parts,
				  const char *const *directories, size_t n, double *ret_read)
{
	const uint64_t needed_nbytes = 2 * ROUNDS * N_PARTS * parts->part_nbytes;
	uint64_t free_nbytes;
	double rate = 0;

	if (spill_open(engine->io, directories, n, SPILL_UNLIMITED, 0, &parts->spill) < 0)
		return 0;
	if (spill_free_nbytes(parts->spill, &free_nbytes) == 0 && free_nbytes >= needed_nbytes)
		rate = time_parts(parts, engine->plan.n_writers, write_part);
	if (rate > 0 && ret_read)
		*ret_read = time_parts(parts, 1, read_back);
	spill_close(parts->spill);
	return rate;
}

static void measure_output(const struct engine *engine, const char *path, struct parts *parts,
			   struct link_rates *rates)
{
	char *copy = path ? strdup(path) : NULL;
	const char *directory = copy ? dirname(copy) : NULL;

	if (directory)
		rates->rates[STAGE_WRITE] = measure_directories(engine, parts, &directory, 1, NULL);
	free(copy);
}

static void measure_files(const struct engine *engine, const struct options *options,
			  uint64_t nbytes, struct link_rates *rates)
{
	struct parts parts = { .part_nbytes = nbytes / N_PARTS };

	if (parts.part_nbytes > MOST_PART_NBYTES)
		parts.part_nbytes = MOST_PART_NBYTES;
	parts.part_nbytes -= parts.part_nbytes % LEAST_PART_NBYTES;
	parts.data = malloc(N_PARTS * parts.part_nbytes);
	if (!parts.data || parts.part_nbytes == 0)
		return;
	memset(parts.data, 1, N_PARTS * parts.part_nbytes);
	measure_input(engine, &parts, rates);
	if (!engine->plan.fits && options->temp_dirs && !parts.error)
		rates->rates[STAGE_SPILL] = measure_directories(engine, &parts, options->temp_dirs,
								options->n_temp_dirs,
								&rates->rates[STAGE_FETCH]);
	if (!parts.error)
		measure_output(engine, options->output_path, &parts, rates);
	free(parts.data);
}

/* Records on the device, and what their operations need. */
struct trial {
	const struct engine *engine;
	struct lane *lane;
	struct mark *mark;
	uint64_t n;
	size_t nbytes, scratch_nbytes;
	void *host, *a, *b, *scratch;
	struct slice slices[MERGED_RUNS];
	struct digest read;
	struct arranged arranged;
	void *edges[2];
};

static int trial_wait(struct trial *trial)
{
	const struct backend *backend = trial->engine->backend;
	int r = backend->mark(trial->lane, trial->mark);

	return r < 0 ? r : backend->mark_wait(trial->mark);
}

static size_t trial_scratch_nbytes(const struct trial *trial)
{
	const struct engine *engine = trial->engine;
	const struct backend *backend = engine->backend;
	const struct layout *layout = engine->layout;
	size_t sort, merge;

	if (layout->kind == LAYOUT_RECORDS) {
		sort = backend->records_scratch_nbytes(engine->device, layout, 0, trial->n);
		merge = backend->records_scratch_nbytes(engine->device, layout, MERGED_RUNS,
							trial->n);
	} else {
		sort = backend->sort_scratch_nbytes(engine->device, trial->n,
						    layout->element_nbytes);
		merge = backend->merge_scratch_nbytes(engine->device, MERGED_RUNS, trial->n,
						      layout->element_nbytes);
	}
	return sort > merge ? sort : merge;
}

static int trial_open(struct trial *trial, uint64_t nbytes)
{
	const struct engine *engine = trial->engine;
	const struct backend *backend = engine->backend;
	const struct layout *layout = engine->layout;
	const uint64_t record_nbytes = layout->record_nbytes > layout->resident_nbytes ?
					       layout->record_nbytes :
					       layout->resident_nbytes;
	uint64_t random = 1;
	int r;

	nbytes = nbytes / 4 < MOST_DEVICE_NBYTES ? nbytes / 4 : MOST_DEVICE_NBYTES;
	trial->n = nbytes / record_nbytes;
	if (trial->n < MERGED_RUNS)
		return -ENOMEM;
	trial->nbytes = trial->n * record_nbytes;
	trial->scratch_nbytes = trial_scratch_nbytes(trial) + 1;
	for (int i = 0; i < 2; i++)
		trial->edges[i] = malloc(layout->item_nbytes);
	r = backend->lane_open(engine->device, LANE_NORMAL, &trial->lane);
	if (r == 0)
		r = backend->mark_open(engine->device, &trial->mark);
	if (r == 0)
		r = backend->alloc(engine->device, MEMORY_HOST, trial->nbytes, &trial->host);
	if (r == 0)
		r = backend->alloc(engine->device, MEMORY_DEVICE, trial->nbytes, &trial->a);
	if (r == 0)
		r = backend->alloc(engine->device, MEMORY_DEVICE, trial->nbytes, &trial->b);
	if (r == 0)
		r = backend->alloc(engine->device, MEMORY_DEVICE, trial->scratch_nbytes,
				   &trial->scratch);
	for (size_t i = 0; r == 0 && i + 8 <= trial->nbytes; i += 8) {
		random = digest_mix64(random + i);
		memcpy((char *)trial->host + i, &random, 8);
	}
	return r == 0 && trial->edges[0] && trial->edges[1] ? 0 : -ENOMEM;
}

static void trial_close(struct trial *trial)
{
	const struct engine *engine = trial->engine;
	const struct backend *backend = engine->backend;

	if (trial->lane)
		backend->lane_close(trial->lane);
	if (trial->mark)
		backend->mark_close(trial->mark);
	backend->release(engine->device, MEMORY_HOST, trial->host, trial->nbytes);
	backend->release(engine->device, MEMORY_DEVICE, trial->a, trial->nbytes);
	backend->release(engine->device, MEMORY_DEVICE, trial->b, trial->nbytes);
	backend->release(engine->device, MEMORY_DEVICE, trial->scratch, trial->scratch_nbytes);
	free(trial->edges[0]);
	free(trial->edges[1]);
}

/* Sort n of the records of a, from number `first` on, into b, or in a if they are codes. */
static int queue_sort(struct trial *trial, uint64_t first, uint64_t n)
{
	const struct engine *engine = trial->engine;
	const struct layout *layout = engine->layout;

	if (layout->kind == LAYOUT_RECORDS)
		return engine->backend->sort_records(
			trial->lane,
			&(struct sort_records_op){
				.layout = layout,
				.records = (char *)trial->a + first * layout->record_nbytes,
				.items = (char *)trial->b + first * layout->item_nbytes,
				.n = n,
				.limit = UINT64_MAX,
				.scratch = trial->scratch,
				.ret_read = &trial->read,
				.ret = &trial->arranged,
			});
	return engine->backend->sort(
		trial->lane, &(struct sort_op){
				     .elements = (char *)trial->a + first * layout->element_nbytes,
				     .n = n,
				     .scratch = trial->scratch,
				     .element_nbytes = layout->element_nbytes,
			     });
}

static int queue_merge(struct trial *trial)
{
	const struct engine *engine = trial->engine;
	const struct layout *layout = engine->layout;

	if (layout->kind == LAYOUT_RECORDS)
		return engine->backend->merge_records(trial->lane,
						      &(struct merge_records_op){
							      .layout = layout,
							      .slices = trial->slices,
							      .k = MERGED_RUNS,
							      .out = trial->a,
							      .limit = UINT64_MAX,
							      .scratch = trial->scratch,
							      .ret_first = trial->edges[0],
							      .ret_last = trial->edges[1],
							      .ret = &trial->arranged,
						      });
	return engine->backend->merge(trial->lane, &(struct merge_op){
							   .slices = trial->slices,
							   .k = MERGED_RUNS,
							   .element_nbytes = layout->element_nbytes,
							   .out = trial->b,
							   .scratch = trial->scratch,
						   });
}

/* The rate of what was queued, over the trial's bytes; 0 after an error. */
static double trial_rate(struct trial *trial, int queued, uint64_t begin_ns, uint64_t nbytes)
{
	if (queued < 0 || trial_wait(trial) < 0)
		return 0;
	return (double)nbytes / ((double)(trace_now_ns() - begin_ns) * 1e-9);
}

static double time_copy(struct trial *trial, void *to, const void *from)
{
	const uint64_t begin_ns = trace_now_ns();
	int r = trial->engine->backend->copy(trial->lane, to, from, trial->nbytes);

	return trial_rate(trial, r, begin_ns, trial->nbytes);
}

static double time_sort(struct trial *trial)
{
	const uint64_t begin_ns = trace_now_ns();
	int r = queue_sort(trial, 0, trial->n);

	return trial_rate(trial, r, begin_ns, trial->n * trial->engine->layout->record_nbytes);
}

/* Sort eighths, then merge them. */
static double time_merge(struct trial *trial)
{
	const struct layout *layout = trial->engine->layout;
	const char *sorted = layout->kind == LAYOUT_RECORDS ? trial->b : trial->a;
	const uint64_t n = trial->n / MERGED_RUNS;
	uint64_t begin_ns;
	int r = trial->engine->backend->copy(trial->lane, trial->a, trial->host, trial->nbytes);

	for (uint32_t i = 0; i < MERGED_RUNS && r == 0; i++) {
		r = queue_sort(trial, i * n, n);
		trial->slices[i] = (struct slice){ sorted + i * n * layout->resident_nbytes, n };
	}
	if (r < 0 || trial_wait(trial) < 0)
		return 0;
	begin_ns = trace_now_ns();
	r = queue_merge(trial);
	return trial_rate(trial, r, begin_ns, MERGED_RUNS * n * layout->record_nbytes);
}

/* One lane's operations; on a unified device all lanes together do so many times as much. */
static void measure_device(const struct engine *engine, uint64_t nbytes, struct link_rates *rates)
{
	struct trial trial = { .engine = engine };
	const double lanes = engine->info.unified ? engine->info.n_lanes : 1;
	double upload;

	if (trial_open(&trial, nbytes) == 0) {
		time_merge(&trial); /* memory is touched, and what starts late starts, untimed */
		rates->rates[STAGE_MERGE] = lanes * time_merge(&trial);
		upload = time_copy(&trial, trial.a, trial.host);
		rates->rates[STAGE_SORT] = lanes * time_sort(&trial);
		if (!engine->info.unified) {
			rates->rates[STAGE_UPLOAD] = upload;
			rates->rates[STAGE_DOWNLOAD] = time_copy(&trial, trial.host, trial.b);
		}
	}
	trial_close(&trial);
}

void links_measure(const struct engine *engine, const struct options *options, uint64_t nbytes,
		   struct link_rates *ret_rates)
{
	*ret_rates = (struct link_rates){ 0 };
	status_mute(true);
	measure_files(engine, options, nbytes, ret_rates);
	measure_device(engine, nbytes, ret_rates);
	status_mute(false);
}
