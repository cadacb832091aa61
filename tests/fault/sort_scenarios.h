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
enum taken_up {
	TAKEN_UP_NOTHING,
	TAKEN_UP_RUNS,
	TAKEN_UP_RUNS_OF_PARTS, /* of which nothing else is kept */
	TAKEN_UP_OUTPUT, /* all runs, and a part of the output */
	N_TAKEN_UP,
};

/* Of older parts there are more. */
enum { N_NEW_PARTS = 3, N_OLDER_PARTS = 5 };

struct mode {
	const char *name;
	const char *arguments; /* separated by blanks; the output is "output", or "input" */
	enum answer answer;
	enum device_shape shape;
	unsigned n_devices;   /* that it takes; 0: one, or none */
	bool from_pipe;       /* standard input is a pipe with the input, ... */
	bool is_array;        /* ... or with an array of numpy, in order */
	bool to_pipe;         /* standard output is a pipe */
	bool in_place;        /* the output is the input */
	bool verifies;        /* --verify: reads its output back */
	bool is_zst;          /* the output is compressed */
	bool has_parts;       /* and a list of them, in place of one output: N_NEW_PARTS */
	bool measures;        /* also tries how fast files are, which need not succeed */
	bool is_cold;         /* nothing is in the page cache, and nothing fits in it: direct I/O */
	bool goes_either_way; /* the page cache may be passed by, and is where it can be */
	bool is_slow;         /* without --all, one call of each kind fails, not three */
	bool has_choice;      /* a device that cannot be opened need not be: first calls fail */
	bool loses_one;       /* of its devices, for good, and nothing else goes wrong */
	bool has_checkpoint;  /* in "state" */
	enum taken_up taken_up;
	bool is_broken_off; /* besides any fault, before the output is done */
	int status;         /* when all goes well */
};

extern const struct mode modes[];
extern const size_t n_modes;

/* Does it write to a file? */
static inline bool mode_has_output(const struct mode *mode)
{
	return strstr(mode->arguments, "-o ") != NULL;
}
