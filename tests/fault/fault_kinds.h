/*
 * fault_kinds - what can go wrong at the fault points, and what must come of it
 *
 * One of two tables, each for a program of its own: fault_kinds.c (the system, and back ends as a whole)
 * and fault_kinds_cuda.c (the calls of CUDA's runtime).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/fault/trial.h"

struct kind {
	enum point point;
	enum effect effect;
	int error; /* errno's, or CUDA's */
	unsigned n_times;
	enum demand demand;
	enum place { AT_FIRST, AT_LAST, AT_RANDOM } place; /* of the byte in question */
};

extern const struct kind kinds[];
extern const size_t n_kinds;

/* Can it be made to happen here? */
bool kind_can_be(const struct kind *kind);

/* Is it what a device does that is lost for good? */
bool kind_is_loss(const struct kind *kind);

/* What the message of a refusal must contain; NULL: anything. */
const char *kind_reason(const struct kind *kind);

/* What happens, for complaints. */
const char *kind_name(const struct kind *kind);

/* For the tables. */
#define KIND(p, e, errno_, n, d)                                                                   \
	{                                                                                          \
		.point = p, .effect = e, .error = errno_, .n_times = n, .demand = d                \
	}

#define ONCE_AND_FOR_GOOD(point, error)                                                            \
	KIND(point, EFFECT_FAIL, error, 1, DEMAND_EITHER),                                         \
		KIND(point, EFFECT_FAIL, error, FOR_GOOD, DEMAND_EITHER)
