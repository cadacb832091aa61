/*
 * fault_run - one run of gsort, and what it must come to
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
enum expected_outcome {
	EXPECT_EITHER,  /* the right bytes, or a refusal */
	EXPECT_SUCCESS, /* the fault is none: it must be got over */
	EXPECT_FAILURE,
};

struct fault_run {
	const struct sort_scenario *scenario;
	const struct fault *fault; /* NULL: none */
	enum expected_outcome expected_outcome;
	const char *expected_message; /* what the message of a refusal must say; NULL: anything */
	const char *description;      /* what the trial is, for complaints */
};

enum run_outcome {
	OUTCOME_SUCCEEDED,
	OUTCOME_REFUSED,
	OUTCOME_BROKEN,
	OUTCOME_NOT_REACHED, /* as it should be, but the fault's call was not made this time */
	N_OUTCOMES,
};

/* What runs find. */
struct test_environment {
	struct expected_output_set expected;
	char old_output[100]; /* in "output" */
	unsigned n_fds;       /* open between runs */
};

/* What a run has come to. */
struct fault_run_result {
	int status;
	struct byte_buffer piped_output; /* what came out of the pipe; data to be freed */
	struct resource_balance balance;
};

/* Complains of what is wrong. */
enum run_outcome fault_run_check(const struct fault_run *fault_run,
				 const struct fault_run_result *result,
				 const struct test_environment *environment);

/* A trial has come to something else than it may. printf's arguments. */
void fault_run_report(const struct fault_run *fault_run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Descriptors of this process. */
unsigned count_fds(void);
