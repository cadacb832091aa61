/*
 * time_series.h - stages and phases of a sort, and a sort over time as a bounded histogram
 *
 * Time is divided into at most TIME_SERIES_BINS bins. When they are full, neighbours are merged, so
 * memory and the size of a chart are the same for a second and for a week.
 *
 *	0 1 2 3 4 5 6 7		a bin is 100 us
 *	0   1   2   3   4 ...	after a merge, 200 us
 *
 * Used by one thread at a time (trace.h); read when the sort is done.
 */
#pragma once

#include <stdint.h>

enum stage {
	STAGE_READ,     /* input file or pipe to memory */
	STAGE_UPLOAD,   /* host memory to device memory */
	STAGE_ENCODE,   /* records to elements */
	STAGE_SORT,     /* a chunk is sorted */
	STAGE_FETCH,    /* spilled blocks back to memory */
	STAGE_UNPACK,   /* spilled blocks to elements, on a device with its own memory */
	STAGE_CUT,      /* splitters of a window are searched */
	STAGE_MERGE,    /* a window is merged */
	STAGE_DECODE,   /* elements to records, with checks */
	STAGE_PACK,     /* elements to blocks to be spilled, on a device with its own memory */
	STAGE_DOWNLOAD, /* device memory to host memory */
	STAGE_SPILL,    /* blocks to temporary files */
	STAGE_WRITE,    /* output file or pipe */
	STAGE_VERIFY,   /* the output is read back */
	N_STAGES
};

enum phase {
	PHASE_RUN_GENERATION, /* sort chunks, spill if necessary; progress: STAGE_READ */
	PHASE_MERGE_PASSES,   /* runs are merged into fewer, longer ones; progress: STAGE_SPILL */
	PHASE_FINAL_MERGE,    /* runs are merged into the output; progress: STAGE_WRITE */
	PHASE_VERIFY,         /* -c or --verify; progress: STAGE_VERIFY */
	N_PHASES
};

enum { TIME_SERIES_BINS = 256 };

/* Queues of a device that are distinguished; the work of others is not shown. */
enum { TIME_SERIES_MAX_QUEUES = 8 };

/* The maximum of each gauge in a bin; all 0: there was no sample. */
struct time_series_gauges {
	uint64_t memory_nbytes, temporary_nbytes, written_nbytes;
};

/* For each stage and bin the time that all threads together spent. */
struct stage_busy_times {
	uint64_t busy_ns[N_STAGES][TIME_SERIES_BINS];
};

struct time_series {
	uint64_t begin_ns, end_ns; /* clock_now_ns(); of the whole series */
	uint64_t bin_ns;
	struct stage_busy_times host; /* of all CPU threads */
	struct stage_busy_times
		*queues;   /* n_queues queues of devices with their own memory; may be NULL */
	uint32_t n_queues; /* at most TIME_SERIES_MAX_QUEUES */
	uint64_t nbytes[N_STAGES][TIME_SERIES_BINS]; /* moved by all */
	struct time_series_gauges gauges[TIME_SERIES_BINS];
	struct {
		uint64_t begin_ns, end_ns; /* both 0: the phase did not take place */
	} phases[N_PHASES];
};

/* Start a series now. Returns 0, or -ENOMEM after a message. */
int time_series_open(struct time_series **ret_series);

/* NULL is fine. */
void time_series_close(struct time_series *series);

/* Add a piece of work, spread evenly over its time. queue: of a device, from 1; 0: the host. */
void time_series_add(struct time_series *series, enum stage stage, uint32_t queue,
		     uint64_t begin_ns, uint64_t end_ns, uint64_t nbytes);

/* Record the gauges at a time. */
void time_series_sample(struct time_series *series, uint64_t time_ns,
			const struct time_series_gauges *gauges);

/* Return the number of bins in use. */
uint32_t time_series_n_bins(const struct time_series *series);
