/*
 * fault_run.h - check the outcome of one run of gsort
 *
 *	status 0	the right bytes
 *	status 2	one message; the input and the older output are unchanged
 *	both		no file, descriptor, thread, mapping or device memory left behind
 *
 * Exceptions: a failed run leaves its checkpoint, and files that cannot be removed, which a warning
 * names. The next run, which resumes, is checked, too (test_dir.c).
 */
#pragma once

#include "tests/fault/sort_scenarios.h"

/* The outcomes that are allowed for a run. */
enum expected_outcome {
	EXPECT_EITHER,  /* the right bytes, or an error */
	EXPECT_SUCCESS, /* the fault must be tolerated */
	EXPECT_FAILURE,
};

struct fault_run {
	const struct sort_scenario *scenario;
	const struct fault *fault; /* NULL: none */
	enum expected_outcome expected_outcome;
	const char *expected_message; /* a part of the error message; NULL: any */
	const char *description;      /* of the trial, for reports */
};

enum run_outcome {
	OUTCOME_SUCCEEDED,
	OUTCOME_REFUSED,
	OUTCOME_WRONG,
	OUTCOME_NOT_REACHED, /* right, but the call that should fail was not made this time */
	N_OUTCOMES,
};

/* The state before each run. */
struct test_environment {
	struct expected_output_set expected;
	char old_output[100]; /* the content of "output" */
	unsigned n_fds;       /* open between runs */
};

/* What a run did. */
struct fault_run_result {
	int status;
	struct byte_buffer piped_output; /* bytes from the pipe; the caller frees the data */
	struct resource_balance balance;
};

/* Check the result and report a defect. */
enum run_outcome fault_run_check(const struct fault_run *fault_run,
				 const struct fault_run_result *result,
				 const struct test_environment *environment);

/* Report a defect. Takes the arguments of printf(). */
void fault_run_report(const struct fault_run *fault_run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Return the number of open descriptors of this process. */
unsigned count_fds(void);
