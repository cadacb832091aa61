/*
 * links - how fast the machine can do what each stage does (see links.h)
 *
 * Files are read and written as the sort does it, in parts and by its threads; what is written has
 * no name and is given back. What the back end does is measured by trial.c.
 */
#include "src/measure/links.h"

#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/status.h"
#include "src/measure/trial.h"
#include "src/plan/page_cache.h"

enum {
	N_PARTS = 64, /* of a file, */
	LEAST_PART_NBYTES = 4 << 10,
	MOST_PART_NBYTES = 4 << 20,
	ROUNDS = 3,
	MOST_THREADS = 16,
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
				  const char *const *directories, size_t n, enum page_cache_use use,
				  double *ret_read)
{
	const uint64_t needed_nbytes = 2 * ROUNDS * N_PARTS * parts->part_nbytes;
	uint64_t free_nbytes;
	double rate = 0;

	if (spill_open(engine->io, directories, n, SPILL_UNLIMITED, 0, &parts->spill) < 0)
		return 0;
	page_cache_tell_spill(use, parts->spill);
	if (spill_free_nbytes(parts->spill, &free_nbytes) == 0 && free_nbytes >= needed_nbytes)
		rate = time_parts(parts, engine->plan.n_writers, write_part);
	if (rate > 0 && ret_read)
		*ret_read = time_parts(parts, 1, read_back);
	spill_close(parts->spill);
	return rate;
}

static enum page_cache_use use_for_output(const struct engine *engine)
{
	const uint64_t nbytes = engine->plan.input_nbytes;

	return page_cache_use(engine, nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
}

static void measure_output(const struct engine *engine, const char *path, struct parts *parts,
			   struct link_rates *rates)
{
	char *copy = path ? strdup(path) : NULL;
	const char *directory = copy ? dirname(copy) : NULL;

	if (directory)
		rates->rates[STAGE_WRITE] = measure_directories(engine, parts, &directory, 1,
								use_for_output(engine), NULL);
	free(copy);
}

static void measure_files(const struct engine *engine, const struct options *options,
			  uint64_t nbytes, struct link_rates *rates)
{
	struct parts parts = { .part_nbytes = nbytes / N_PARTS };

	if (parts.part_nbytes > MOST_PART_NBYTES)
		parts.part_nbytes = MOST_PART_NBYTES;
	parts.part_nbytes -= parts.part_nbytes % LEAST_PART_NBYTES;
	parts.data = parts.part_nbytes ?
			     aligned_alloc(SPILL_ALIGN_NBYTES, N_PARTS * parts.part_nbytes) :
			     NULL;
	if (!parts.data)
		return;
	memset(parts.data, 1, N_PARTS * parts.part_nbytes);
	measure_input(engine, &parts, rates);
	if (!engine->plan.fits && options->temp_dirs && !parts.error)
		rates->rates[STAGE_SPILL] = measure_directories(
			engine, &parts, options->temp_dirs, options->n_temp_dirs,
			page_cache_use(engine, engine->plan.temporary_nbytes),
			&rates->rates[STAGE_FETCH]);
	if (!parts.error)
		measure_output(engine, options->output_path, &parts, rates);
	free(parts.data);
}

void links_measure(const struct engine *engine, const struct options *options, uint64_t nbytes,
		   struct link_rates *ret_rates)
{
	*ret_rates = (struct link_rates){ 0 };
	status_mute(true);
	measure_files(engine, options, nbytes, ret_rates);
	trial_measure(engine, nbytes, ret_rates);
	status_mute(false);
}
