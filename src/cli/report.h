/*
 * report - what a person (--stats) and a program (--stats-json) are told at the end
 *
 * Of the whole what sort.c and check.c know (struct report_facts), of each phase and stage what
 * stats.h has counted.
 */
#pragma once

#include <stdio.h>

#include "io/store/compression.h"
#include "src/base/stats.h"

/*
 * What is known about the sort as a whole. If record_nbytes is 0, nothing is, and reports leave all
 * of this out; if `backend` is empty, as after a check, what follows it is.
 */
struct report_facts {
	const char *type; /* "u64" */
	uint64_t record_nbytes;
	uint64_t n_records_in; /* or checked: until a disorder was found */
	char backend[128];     /* "CPU, 2 threads" */
	uint64_t n_records_out;
	uint64_t buffer_nbytes; /* -S, as decided */
	uint64_t chunk_nbytes;
	bool input_is_mapped; /* chunks are of records that stay there */
	uint64_t n_runs;      /* formed, or given with -m */
	uint64_t n_runs_spilled;
	uint64_t n_passes; /* merges that a record went through, the final one included */
	uint64_t n_windows;
	uint64_t peak_temp_nbytes;
	struct compression_totals spilled; /* codec: NULL if unknown */
	/* Bytes per second that a stage can do alone, as measured afterwards; 0: unknown. */
	double ceilings[N_STAGES];
};

/* The table of --stats. Nothing if stats is NULL. */
void report_print(struct stats *stats, const struct report_facts *facts, FILE *stream);

/*
 * The JSON of --stats-json (schema in docs/cli.md). Nothing if stats is NULL. Whoever owns the
 * stream finds out whether it could be written.
 */
void report_write_json(struct stats *stats, const struct report_facts *facts, FILE *stream);
