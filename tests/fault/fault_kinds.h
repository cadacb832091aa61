/*
 * fault_kinds - what can go wrong at the fault points, and what must come of it
 *
 * One of two tables, each for a program of its own: fault_kinds.c (the system, and back ends as a
 * whole) and fault_kinds_cuda.c (the calls of CUDA's runtime).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/fault/fault_run.h"

struct fault_kind {
	enum fault_point point;
	enum fault_effect effect;
	int error; /* errno's, or CUDA's */
	unsigned n_times;
	enum expected_outcome expected_outcome;
	enum byte_position {
		BYTE_FIRST,
		BYTE_LAST,
		BYTE_RANDOM
	} byte_position; /* of the byte in question */
};

extern const struct fault_kind fault_kinds[];
extern const size_t n_fault_kinds;

/* Can it be made to happen here? */
bool fault_kind_is_possible(const struct fault_kind *kind);

/* Is it what a device does that is lost for good? */
bool fault_kind_is_device_loss(const struct fault_kind *kind);

/* What the message of a refusal must contain; NULL: anything. */
const char *fault_kind_expected_message(const struct fault_kind *kind);

/* What happens, for complaints. */
const char *fault_kind_name(const struct fault_kind *kind);

/* For the tables. */
#define FAULT_KIND(p, e, errno_, n, d)                                                             \
	{                                                                                          \
		.point = p, .effect = e, .error = errno_, .n_times = n, .expected_outcome = d      \
	}

#define ONCE_AND_FOREVER(point, error)                                                             \
	FAULT_KIND(point, EFFECT_FAIL, error, 1, EXPECT_EITHER),                                   \
		FAULT_KIND(point, EFFECT_FAIL, error, FAULT_FOREVER, EXPECT_EITHER)
