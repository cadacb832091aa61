/*
 * sort_scenarios - the ways to run gsort
 *
 * One of two tables, each for a program of its own: sort_scenarios.c and sort_scenarios_cuda.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "tests/fault/expected_outputs.h"
#include "tests/fault/fault_points.h"

/* What there is of a checkpoint when it begins. */
enum resume_state {
	RESUME_NOTHING,
	RESUME_RUNS,
	RESUME_PART_FILE_RUNS, /* of a sort into part files */
	RESUME_MERGE,          /* all runs: the final merge was under way */
	N_RESUME_STATES,
};

/* Of older parts there are more. */
enum { N_NEW_PARTS = 3, N_OLD_PARTS = 5 };

struct sort_scenario {
	const char *name;
	const char *arguments; /* separated by blanks; the output is "output", or "input" */
	enum expected_output expected_output;
	enum test_device_kind device_kind;
	unsigned n_devices;  /* that it takes; 0: one, or none */
	bool from_pipe;      /* standard input is a pipe with the input, ... */
	bool input_is_npy;   /* ... or with an array of numpy, in order */
	bool to_pipe;        /* standard output is a pipe */
	bool in_place;       /* the output is the input */
	bool verifies;       /* --verify: reads its output back */
	bool output_is_zst;  /* the output is compressed */
	bool has_part_files; /* and a list of them, in place of one output: N_NEW_PARTS */
	bool calibrates;     /* also tries how fast files are, which need not succeed */
	bool has_cold_cache; /* nothing is in the page cache, and nothing fits in it: direct I/O */
	bool may_bypass_cache;    /* the page cache may be passed by, and is where it can be */
	bool is_slow;             /* without --all, one call of each kind fails, not three */
	bool has_device_fallback; /* a device that cannot be opened need not be: first calls fail */
	bool loses_one_device;    /* of its devices, for good, and nothing else goes wrong */
	bool has_checkpoint;      /* in "state" */
	enum resume_state resume_from;
	bool is_interrupted; /* besides any fault, before the output is done */
	int status;          /* when all goes well */
};

extern const struct sort_scenario sort_scenarios[];
extern const size_t n_sort_scenarios;

/* Does it write to a file? */
static inline bool sort_scenario_has_output(const struct sort_scenario *scenario)
{
	return strstr(scenario->arguments, "-o ") != NULL;
}
