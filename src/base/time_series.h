/*
 * time_series - a sort over time, in so few numbers that a picture can be made of them
 *
 * Time is divided into HISTORY_BINS bins at most. When they are full, two neighbours become one, so
 * the memory is the same for a second and for a week, and so is what a picture of it takes.
 *
 *	0 1 2 3 4 5 6 7		a bin is 100 us
 *	0   1   2   3   4 ...	from here on 200 us
 *
 * By one thread at a time (timeline.h); read when all is done.
 */
#pragma once

#include "src/base/stats.h"
#include "src/base/tracks.h"

enum { HISTORY_BINS = 256 };

/* Lanes of a device that are told apart; what others do is not shown. */
enum { HISTORY_LANES = 8 };

/* Of a bin, what gauges have shown in it at most; all 0: nobody has looked. */
struct history_gauges {
	uint64_t memory_nbytes, temporary_nbytes, written_nbytes;
};

/* Of each stage in each bin; time is added up over all who were at work. */
struct history_work {
	uint64_t busy_ns[N_STAGES][HISTORY_BINS];
};

struct history {
	uint64_t begin_ns, end_ns; /* clock_now_ns(); of all that is in it */
	uint64_t bin_ns;
	struct history_work host;                /* of all threads */
	struct history_work *lanes;              /* n_lanes of a device apart; NULL: none */
	uint32_t n_lanes;                        /* at most HISTORY_LANES */
	uint64_t nbytes[N_STAGES][HISTORY_BINS]; /* moved by all */
	struct history_gauges gauges[HISTORY_BINS];
	struct {
		uint64_t begin_ns, end_ns; /* both 0: it did not take place */
	} phases[N_PHASES];
};

/* It begins now. 0, or -ENOMEM after a message. */
int history_open(struct history **ret_history);

/* NULL is fine. */
void history_close(struct history *history);

/* A piece of work, spread evenly over its time. lane: of a device apart, from 0. */
struct history_piece {
	enum stage stage;
	uint64_t begin_ns, end_ns, nbytes;
	bool is_of_lane;
	uint32_t lane;
};
void history_add(struct history *history, const struct history_piece *piece);

/* What was seen then. */
void history_look(struct history *history, uint64_t at_ns, const struct history_gauges *gauges);

/* Bins that are in use, from the first. */
uint32_t history_n_bins(const struct history *history);
