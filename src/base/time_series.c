/*
 * time_series.c - a sort over time as a bounded histogram (see time_series.h)
 */
#include "src/base/time_series.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"

enum { FIRST_BIN_NS = 100000 };

int time_series_open(struct time_series **ret_series)
{
	struct time_series *series = calloc(1, sizeof *series);

	if (!series)
		return fail(-ENOMEM, "no memory for a history of the sort");
	series->begin_ns = series->end_ns = clock_now_ns();
	series->bin_ns = FIRST_BIN_NS;
	*ret_series = series;
	return 0;
}

void time_series_close(struct time_series *series)
{
	if (!series)
		return;
	free(series->queues);
	free(series);
}

/* Merge pairs of bins; clears the second half. */
static void merge_bins(uint64_t numbers[static TIME_SERIES_BINS])
{
	for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
		numbers[i] = i < TIME_SERIES_BINS / 2 ? numbers[2 * i] + numbers[2 * i + 1] : 0;
}

static void merge_busy_bins(struct stage_busy_times *work)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		merge_bins(work->busy_ns[stage]);
}

static struct time_series_gauges max_gauges(struct time_series_gauges a,
					    struct time_series_gauges b)
{
	return (struct time_series_gauges){ u64_max(a.memory_nbytes, b.memory_nbytes),
					    u64_max(a.temporary_nbytes, b.temporary_nbytes),
					    u64_max(a.written_nbytes, b.written_nbytes) };
}

/* Merge bins until the last one includes time_ns. */
static void extend_to(struct time_series *series, uint64_t time_ns)
{
	const struct time_series_gauges empty = { 0 };
	struct time_series_gauges *gauges = series->gauges;

	while (time_ns - series->begin_ns > TIME_SERIES_BINS * series->bin_ns) {
		merge_busy_bins(&series->host);
		for (uint32_t i = 0; i < series->n_queues; i++)
			merge_busy_bins(&series->queues[i]);
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			merge_bins(series->nbytes[stage]);
		for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
			gauges[i] = i < TIME_SERIES_BINS / 2 ?
					    max_gauges(gauges[2 * i], gauges[2 * i + 1]) :
					    empty;
		series->bin_ns *= 2;
	}
	series->end_ns = u64_max(series->end_ns, time_ns);
}

/* Return the times of a queue, or NULL if it is not distinguished or memory is short. */
static struct stage_busy_times *find_queue(struct time_series *series, uint32_t queue)
{
	struct stage_busy_times *grown;

	if (queue < series->n_queues)
		return &series->queues[queue];
	if (queue >= TIME_SERIES_MAX_QUEUES)
		return NULL;
	grown = reallocarray(series->queues, queue + 1, sizeof *grown);
	if (!grown)
		return NULL;
	series->queues = grown;
	while (series->n_queues <= queue)
		grown[series->n_queues++] = (struct stage_busy_times){ 0 };
	return &grown[queue];
}

/* Spread `sum` over the bins in proportion to their share of the time from begin to end. */
static void distribute(uint64_t bins[static TIME_SERIES_BINS], uint64_t bin_ns, uint64_t begin,
		       uint64_t end, uint64_t sum)
{
	const double per_ns = end > begin ? (double)sum / (double)(end - begin) : 0;
	uint64_t remaining = sum;

	for (uint64_t i = begin / bin_ns; i < TIME_SERIES_BINS && remaining; i++) {
		const uint64_t until = (i + 1) * bin_ns;
		const uint64_t amount = until < end ? (uint64_t)((double)(until - begin) * per_ns) :
						      remaining;
		const uint64_t added = amount < remaining ? amount : remaining;

		bins[i] += added;
		remaining -= added;
		begin = until;
	}
}

void time_series_add(struct time_series *series, enum stage stage, uint32_t queue,
		     uint64_t begin_ns, uint64_t end_ns, uint64_t nbytes)
{
	const uint64_t end = u64_max(end_ns, series->begin_ns) - series->begin_ns;
	const uint64_t begin = u64_max(begin_ns, series->begin_ns) - series->begin_ns;
	struct stage_busy_times *work;

	if (begin > end)
		return;
	extend_to(series, series->begin_ns + end);
	distribute(series->nbytes[stage], series->bin_ns, begin, end, nbytes);
	work = queue ? find_queue(series, queue - 1) : &series->host;
	if (work)
		distribute(work->busy_ns[stage], series->bin_ns, begin, end, end - begin);
}

void time_series_sample(struct time_series *series, uint64_t time_ns,
			const struct time_series_gauges *gauges)
{
	uint64_t bin;

	if (time_ns < series->begin_ns)
		return;
	extend_to(series, time_ns);
	bin = (time_ns - series->begin_ns) / series->bin_ns;
	if (bin == TIME_SERIES_BINS) /* the end of the last bin */
		bin--;
	series->gauges[bin] = max_gauges(series->gauges[bin], *gauges);
}

uint32_t time_series_n_bins(const struct time_series *series)
{
	const uint64_t n =
		(series->end_ns - series->begin_ns + series->bin_ns - 1) / series->bin_ns;

	return n ? (uint32_t)n : 1;
}
