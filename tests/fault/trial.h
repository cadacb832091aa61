/*
 * trial - one run of gsort, and what it must come to
 *
 *	status 0	the right bytes
 *	status 2	one message, the input and the older output as they were
 *	both		no file, descriptor, thread, mapping or device memory left behind
 *
 * But a checkpoint is left by a run that is refused, and what cannot be removed, which a warning
 * names; what another run makes of them is judged too (test_dir.c).
 */
#pragma once

#include "tests/fault/sort_scenarios.h"

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

enum outcome {
	OUTCOME_DONE,
	OUTCOME_REFUSED,
	OUTCOME_BROKEN,
	OUTCOME_UNMET, /* as it should be, but the fault's call was not made this time */
	N_OUTCOMES,
};

/* What runs find. */
struct surroundings {
	struct answers answers;
	char older[100]; /* in "output" */
	unsigned n_fds;  /* open between runs */
};

/* What a run has come to. */
struct result {
	int status;
	struct bytes streamed; /* what came out of the pipe; data to be freed */
	struct points_balance balance;
};

/* Complains of what is wrong. */
enum outcome trial_judge(const struct trial *trial, const struct result *result,
			 const struct surroundings *around);

/* A trial has come to something else than it may. printf's arguments. */
void trial_complain(const struct trial *trial, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Descriptors of this process. */
unsigned count_fds(void);
