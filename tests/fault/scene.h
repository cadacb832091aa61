/*
 * scene - a directory with inputs, and whole runs of gsort in it, judged
 *
 * The program under test is gsort's own main(), called in this process. What a run may leave is
 * known before it starts:
 *
 *	status 0	the right bytes
 *	status 2	one message, the input and the older output as they were
 *	both		no file, descriptor, thread, mapping or device memory left behind
 *
 * Whatever else happens is a line on standard error, and counted. A run that does not end in time
 * is named and aborted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/fault/points.h"

/* The right result. */
enum answer {
	ANSWER_SORTED, /* the keys */
	ANSWER_UNIQUE, /* without those that are equal to the one before */
	ANSWER_RECORDS,
	ANSWER_FIRST_RECORDS,
	ANSWER_LONG_KEYS,
	N_ANSWERS,
};

/* A way to run gsort. */
struct mode {
	const char *name;
	const char *arguments; /* separated by blanks; the output is "output", or "input" */
	enum answer answer;
	enum device_shape shape;
	bool from_pipe; /* standard input is a pipe with the input */
	bool to_pipe;   /* standard output is a pipe */
	bool in_place;  /* the output is the input */
	bool verifies;  /* --verify: reads its output back */
	bool is_zst;    /* the output is compressed */
	bool measures;  /* also tries how fast files are, which need not succeed */
	int status;     /* when all goes well */
};

extern const struct mode modes[];
extern const size_t n_modes;

/* What a run must come to. */
enum demand {
	DEMAND_EITHER,  /* the right bytes, or a refusal */
	DEMAND_SUCCESS, /* the fault is none: it must be got over */
	DEMAND_FAILURE,
};

struct trial {
	const struct mode *mode;
	const struct fault *fault; /* NULL: none */
	enum demand demand;
	const char *reason; /* what the message of a refusal must say; NULL: anything */
	const char *text;   /* what the trial is, for complaints */
};

enum outcome { OUTCOME_DONE, OUTCOME_REFUSED, OUTCOME_BROKEN };

/* Make the directory and the inputs, and enter it. */
void scene_open(void);
void scene_close(void);

enum outcome scene_run(const struct trial *trial);

/* A trial has come to something else than it may. printf's arguments. */
void scene_complain(const struct trial *trial, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
