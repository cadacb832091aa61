/*
 * bench_competitors - the programs that bench_file compares, each from one file to another
 */
#pragma once

#include <stdint.h>

#include "tools/bench/timed_run.h"

enum bench_competitor {
	BENCH_CP,
	BENCH_GSORT,         /* plain keys */
	BENCH_GSORT_RECORDS, /* of the sort benchmark */
	BENCH_SORT_TEXT,     /* xxd | sort | xxd, of plain keys */
	BENCH_SORT_LINES,    /* GNU sort of lines, with as many threads as it may have */
};

struct competitor_params {
	const char *gsort; /* which one */
	const char *input, *output;
	const char *temp_dir;
	uint64_t memory_nbytes; /* for those that take a limit */
};

/* Returns as timed_run() does. */
int bench_competitor_run(enum bench_competitor competitor, const struct competitor_params *params,
			 struct run_cost *ret_cost);
