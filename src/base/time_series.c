/*
 * time_series - a sort over time, in few numbers (see time_series.h)
 */
#include "src/base/time_series.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/diagnostics.h"

enum { FIRST_BIN_NS = 100000 };

int history_open(struct history **ret_history)
{
	struct history *history = calloc(1, sizeof *history);

	if (!history)
		return fail(-ENOMEM, "no memory for a history of the sort");
	history->begin_ns = history->end_ns = clock_now_ns();
	history->bin_ns = FIRST_BIN_NS;
	*ret_history = history;
	return 0;
}

void history_close(struct history *history)
{
	if (!history)
		return;
	free(history->lanes);
	free(history);
}

/* Two neighbours become one, and the second half is free. */
static void halve(uint64_t numbers[static HISTORY_BINS])
{
	for (uint32_t i = 0; i < HISTORY_BINS; i++)
		numbers[i] = i < HISTORY_BINS / 2 ? numbers[2 * i] + numbers[2 * i + 1] : 0;
}

static void halve_work(struct history_work *work)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		halve(work->busy_ns[stage]);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct history_gauges most_of(struct history_gauges a, struct history_gauges b)
{
	return (struct history_gauges){ larger(a.memory_nbytes, b.memory_nbytes),
					larger(a.temporary_nbytes, b.temporary_nbytes),
					larger(a.written_nbytes, b.written_nbytes) };
}

static void halve_gauges(struct history_gauges gauges[static HISTORY_BINS])
{
	const struct history_gauges none = { 0 };

	for (uint32_t i = 0; i < HISTORY_BINS; i++)
		gauges[i] = i < HISTORY_BINS / 2 ? most_of(gauges[2 * i], gauges[2 * i + 1]) : none;
}

/* There are bins up to that moment. */
static void reach(struct history *history, uint64_t at_ns)
{
	while (at_ns - history->begin_ns > HISTORY_BINS * history->bin_ns) {
		halve_work(&history->host);
		for (uint32_t i = 0; i < history->n_lanes; i++)
			halve_work(&history->lanes[i]);
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			halve(history->nbytes[stage]);
		halve_gauges(history->gauges);
		history->bin_ns *= 2;
	}
	history->end_ns = larger(history->end_ns, at_ns);
}

/* The lanes of a device; NULL: there is no memory for that one, or it is not told apart. */
static struct history_work *find_lane(struct history *history, uint32_t lane)
{
	struct history_work *grown;

	if (lane < history->n_lanes)
		return &history->lanes[lane];
	if (lane >= HISTORY_LANES)
		return NULL;
	grown = reallocarray(history->lanes, lane + 1, sizeof *grown);
	if (!grown)
		return NULL;
	history->lanes = grown;
	while (history->n_lanes <= lane)
		grown[history->n_lanes++] = (struct history_work){ 0 };
	return &grown[lane];
}

/* Add `sum` to bins, as the time from begin to end, since the beginning, is in each of them. */
static void spread(uint64_t bins[static HISTORY_BINS], uint64_t bin_ns, uint64_t begin,
		   uint64_t end, uint64_t sum)
{
	const double each = end > begin ? (double)sum / (double)(end - begin) : 0;
	uint64_t left = sum;

	for (uint64_t i = begin / bin_ns; i < HISTORY_BINS && left; i++) {
		const uint64_t until = (i + 1) * bin_ns;
		const uint64_t part = until < end ? (uint64_t)((double)(until - begin) * each) :
						    left;
		const uint64_t added = part < left ? part : left;

		bins[i] += added;
		left -= added;
		begin = until;
	}
}

void history_add(struct history *history, const struct history_piece *piece)
{
	const uint64_t end_ns = larger(piece->end_ns, history->begin_ns);
	const uint64_t begin_ns = larger(piece->begin_ns, history->begin_ns);
	const uint64_t begin = begin_ns - history->begin_ns, end = end_ns - history->begin_ns;
	struct history_work *work = &history->host;

	if (begin_ns > end_ns)
		return;
	reach(history, end_ns);
	spread(history->nbytes[piece->stage], history->bin_ns, begin, end, piece->nbytes);
	if (piece->is_of_lane)
		work = find_lane(history, piece->lane);
	if (work)
		spread(work->busy_ns[piece->stage], history->bin_ns, begin, end, end - begin);
}

void history_look(struct history *history, uint64_t at_ns, const struct history_gauges *gauges)
{
	uint64_t bin;

	if (at_ns < history->begin_ns)
		return;
	reach(history, at_ns);
	bin = (at_ns - history->begin_ns) / history->bin_ns;
	if (bin == HISTORY_BINS) /* the very end of the last one */
		bin--;
	history->gauges[bin] = most_of(history->gauges[bin], *gauges);
}

uint32_t history_n_bins(const struct history *history)
{
	const uint64_t n =
		(history->end_ns - history->begin_ns + history->bin_ns - 1) / history->bin_ns;

	return n ? (uint32_t)n : 1;
}
