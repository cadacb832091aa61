/*
 * wrapper.h - define a double that passes a fault point, and fails or calls the system
 */
#pragma once

#include "tests/fault/fault_points.h"

/* Define a double of a function. type: of the result; parameters, arguments: in parentheses. */
#define WRAP_CALL(point, type, failure, name, parameters, arguments)                               \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fault_point_fails_at(point, __builtin_return_address(0)) ?                  \
			       (failure) :                                                         \
			       __real_##name arguments;                                            \
	}
