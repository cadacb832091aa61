/*
 * sort_summary.h - results of a sort, and callbacks on the way
 *
 * The statistics of phases and stages are in src/base/stats.h.
 */
#pragma once

#include "io/output/output.h"
#include "io/spill/compression_policy.h"
#include "src/base/stats.h"
#include "src/plan/plan.h"
#include "src/record/key_type.h"

struct input;
struct layout;
struct sort_spec;

/* The memory that a plan needs at most, and what the limits of the process allow. */
struct memory_estimate {
	uint64_t needed_nbytes;  /* of all ranks on this host; includes files in temp_dir */
	uint64_t allowed_nbytes; /* UINT64_MAX: no limit is known */
	const char *temp_dir;    /* a temporary directory in memory (tmpfs); NULL: none */
};

/* A check sets only the members before `backend`. */
struct sort_summary {
	uint64_t record_nbytes;      /* 0: the lengths vary */
	char type[KEYS_TEXT_NBYTES]; /* of the keys: "u64le"; "lines"; "": nothing was read */
	uint64_t n_records_in;       /* of a check: up to the first disorder */
	uint64_t input_nbytes;       /* of these records */
	char backend[128];           /* "CPU, 2 threads" */
	bool is_merge;               /* of sorted inputs */
	struct plan plan;
	uint64_t n_records_out;
	uint64_t buffer_nbytes; /* memory limit of the host */
	uint64_t chunk_nbytes;
	bool input_is_mapped; /* chunks refer to records in the mapped input */
	uint64_t n_runs;      /* generated, or the inputs of a merge */
	uint64_t n_runs_spilled;
	uint64_t n_partitions; /* partitions of the final merge */
	uint64_t n_passes;     /* merges of each record, the final merge included */
	uint64_t n_windows;
	struct file_writer_stats written;
	uint64_t peak_temp_nbytes;
	struct compression_totals spilled; /* codec NULL: unknown */
	/* If there are several devices: their numbers, and their indexes in the statistics. */
	uint32_t n_devices; /* 0: a single device */
	struct {
		unsigned number;
		uint32_t ordinal;
	} devices[STATS_MAX_DEVICES];
	/* Measured after the sort, in bytes per second; 0: unknown. */
	double peak_rates[N_STAGES];
};

/* Return whether anything was read: not if a resumed sort was complete already. */
static inline bool sort_summary_is_known(const struct sort_summary *summary)
{
	return summary->type[0];
}

/* Return what was read, in the plural. */
static inline const char *sort_summary_unit(const struct sort_summary *summary)
{
	return summary->record_nbytes > 0 ? "records" : summary->type;
}

/* Callbacks of a sort; each may be NULL. */
struct sort_observer {
	void *context;
	/*
	 * The inputs are open and the layout is known, but nothing has been read; the callback may
	 * use input_read_at(). A negative errno, after a message, ends the sort.
	 */
	int (*on_opened)(void *context, const struct sort_spec *spec, const struct layout *layout,
			 struct input *input);
	/* The devices are open. With several ranks called on rank 0, once per rank. */
	void (*on_device)(void *context, const char *name);
	/* The output is committed; the sort cannot fail any more. */
	void (*on_committed)(void *context);
};
