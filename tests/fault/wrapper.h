/*
 * wrapper - the commonest twin of a function of the system: it passes a point, and fails or does
 * the same (see fault_points.h)
 */
#pragma once

#include "tests/fault/fault_points.h"

/* A twin of a function of the type, with parameters and arguments in parentheses. */
#define WRAP_CALL(point, type, failure, name, parameters, arguments)                               \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fault_point_fails_at(point, __builtin_return_address(0)) ?                  \
			       (failure) :                                                         \
			       __real_##name arguments;                                            \
	}
