/*
 * sort_summary - what is known about a sort as a whole when it is done
 *
 * Of phases and stages the stats know more (src/base/stats.h).
 */
#pragma once

#include "io/output/output.h"
#include "io/spill/compression_policy.h"
#include "src/base/stats.h"
#include "src/plan/plan.h"
#include "src/record/key_type.h"

/*
 * If record_nbytes is 0, nothing is known; if `backend` is empty, as after a check, only what
 * stands before it is.
 */
struct sort_summary {
	uint64_t record_nbytes;
	char type[KEYS_TEXT_NBYTES]; /* of the records: "u64le" */
	uint64_t n_records_in;       /* or checked: until a disorder was found */
	char backend[128];           /* "CPU, 2 threads" */
	struct plan plan;            /* what was planned */
	uint64_t n_records_out;
	uint64_t buffer_nbytes; /* of the host's memory, as decided */
	uint64_t chunk_nbytes;
	bool input_is_mapped; /* chunks are of records that stay there */
	uint64_t n_runs;      /* formed, or the inputs of a merge */
	uint64_t n_runs_spilled;
	uint64_t n_partitions; /* in which the final merge was made */
	uint64_t n_passes;     /* merges that a record went through, the final one included */
	uint64_t n_windows;
	struct file_writer_stats written;
	uint64_t peak_temp_nbytes;
	struct compression_totals spilled; /* codec: NULL if unknown */
	/* Of several devices: which they are, and as what they are counted (worker.place). */
	uint32_t n_devices; /* 0: there is one */
	struct {
		unsigned number;
		uint32_t ordinal;
	} devices[STATS_MAX_DEVICES];
	/* Bytes per second that a stage can do alone, as measured afterwards; 0: unknown. */
	double peak_rates[N_STAGES];
};
