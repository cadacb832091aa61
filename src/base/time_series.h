/*
 * time_series - a sort over time, in so few numbers that a picture can be made of them
 *
 * Time is divided into TIME_SERIES_BINS bins at most. When they are full, two neighbours become
 * one, so the memory is the same for a second and for a week, and so is what a picture of it takes.
 *
 *	0 1 2 3 4 5 6 7		a bin is 100 us
 *	0   1   2   3   4 ...	from here on 200 us
 *
 * By one thread at a time (timeline.h); read when all is done.
 */
#pragma once

#include "src/base/stats.h"
#include "src/base/tracks.h"

enum { TIME_SERIES_BINS = 256 };

/* Queues of a device that are told apart; what others do is not shown. */
enum { TIME_SERIES_MAX_QUEUES = 8 };

/* Of a bin, what gauges have shown in it at most; all 0: nobody has looked. */
struct time_series_gauges {
	uint64_t memory_nbytes, temporary_nbytes, written_nbytes;
};

/* Of each stage in each bin; time is added up over all who were at work. */
struct stage_busy_times {
	uint64_t busy_ns[N_STAGES][TIME_SERIES_BINS];
};

struct time_series {
	uint64_t begin_ns, end_ns; /* clock_now_ns(); of all that is in it */
	uint64_t bin_ns;
	struct stage_busy_times host;                /* of all threads */
	struct stage_busy_times *queues;             /* n_queues of a device apart; NULL: none */
	uint32_t n_queues;                           /* at most TIME_SERIES_MAX_QUEUES */
	uint64_t nbytes[N_STAGES][TIME_SERIES_BINS]; /* moved by all */
	struct time_series_gauges gauges[TIME_SERIES_BINS];
	struct {
		uint64_t begin_ns, end_ns; /* both 0: it did not take place */
	} phases[N_PHASES];
};

/* It begins now. 0, or -ENOMEM after a message. */
int time_series_open(struct time_series **ret_series);

/* NULL is fine. */
void time_series_close(struct time_series *series);

/* A piece of work, spread evenly over its time. queue: of a device apart, from 0. */
struct time_series_event {
	enum stage stage;
	uint64_t begin_ns, end_ns, nbytes;
	bool is_device_queue;
	uint32_t queue;
};
void time_series_add(struct time_series *series, const struct time_series_event *event);

/* What was seen then. */
void time_series_sample(struct time_series *series, uint64_t time_ns,
			const struct time_series_gauges *gauges);

/* Bins that are in use, from the first. */
uint32_t time_series_n_bins(const struct time_series *series);
