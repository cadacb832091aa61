/*
 * fault_kinds.h - the faults of each fault point, and their expected outcomes
 *
 * Two programs have a table each: fault_kinds.c (system calls, and back ends as a whole) and
 * fault_kinds_cuda.c (calls of CUDA's runtime).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/fault/fault_run.h"

struct fault_kind {
	enum fault_point point;
	enum fault_effect effect;
	int error; /* an errno, or a CUDA error */
	unsigned n_times;
	enum expected_outcome expected_outcome;
	enum byte_position {
		BYTE_FIRST,
		BYTE_LAST,
		BYTE_RANDOM
	} byte_position; /* of the byte that is changed, or at which the file is cut */
};

extern const struct fault_kind fault_kinds[];
extern const size_t n_fault_kinds;

/* Return whether this program can inject the fault. */
bool fault_kind_is_possible(const struct fault_kind *kind);

/* Return whether the fault is the permanent loss of a device. */
bool fault_kind_is_device_loss(const struct fault_kind *kind);

/* Return a text that the error message must contain; NULL: none. */
const char *fault_kind_expected_message(const struct fault_kind *kind);

/* Return the name of the fault, for reports. */
const char *fault_kind_name(const struct fault_kind *kind);

/* Rows of the tables. */
#define FAULT_KIND(p, e, errno_, n, d)                                                             \
	{                                                                                          \
		.point = p, .effect = e, .error = errno_, .n_times = n, .expected_outcome = d      \
	}

#define ONCE_AND_FOREVER(point, error)                                                             \
	FAULT_KIND(point, EFFECT_FAIL, error, 1, EXPECT_EITHER),                                   \
		FAULT_KIND(point, EFFECT_FAIL, error, FAULT_FOREVER, EXPECT_EITHER)
