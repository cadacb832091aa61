/*
 * sort_scenarios.h - the ways to run gsort
 *
 * Two programs have a table each: sort_scenarios.c and sort_scenarios_cuda.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "tests/fault/expected_outputs.h"
#include "tests/fault/fault_points.h"

/* The checkpoint that exists when the sort begins. */
enum resume_state {
	RESUME_NOTHING,
	RESUME_RUNS,
	RESUME_PART_FILE_RUNS, /* of a sort into part files */
	RESUME_LINE_RUNS,      /* of a sort of lines */
	RESUME_MERGE,          /* all runs: the final merge was interrupted */
	N_RESUME_STATES,
};

/* The older output has more part files than the new one. */
enum { N_NEW_PARTS = 3, N_OLD_PARTS = 5 };

struct sort_scenario {
	const char *name;
	const char *arguments; /* separated by blanks; the output is "output", or "input" */
	enum expected_output expected_output;
	enum test_device_kind device_kind;
	unsigned n_devices;       /* required; 0: none */
	bool from_pipe;           /* standard input is a pipe with the input */
	bool input_is_npy;        /* the pipe has the sorted .npy file instead */
	bool to_pipe;             /* standard output is a pipe */
	bool in_place;            /* the output is the input */
	bool verifies;            /* --verify: reads its output back */
	bool output_is_zst;       /* the output is compressed */
	bool has_part_files;      /* the output is a directory of N_NEW_PARTS part files */
	bool calibrates;          /* measures file rates, too, which need not succeed */
	bool has_cold_cache;      /* the page cache is empty and too small: direct I/O */
	bool may_bypass_cache;    /* the policy allows direct I/O, which is used where possible */
	bool is_slow;             /* without --all, one call of each kind fails, not three */
	bool has_device_fallback; /* sorts on the CPU if opening the device fails */
	bool loses_one_device;    /* the only faults are permanent losses of one device */
	bool has_checkpoint;      /* in "state" */
	enum resume_state resume_from;
	bool is_interrupted; /* in addition to the fault, before the output is complete */
	int status;          /* without a fault */
};

extern const struct sort_scenario sort_scenarios[];
extern const size_t n_sort_scenarios;

/* Return whether the output is a file. */
static inline bool sort_scenario_has_output(const struct sort_scenario *scenario)
{
	return strstr(scenario->arguments, "-o ") != NULL;
}
