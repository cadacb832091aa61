/*
 * open_input.h - open files of plain records
 */
#pragma once

#include "io/input/input.h"

/* Open n paths as one stream of records, without headers and trailers. */
static inline int input_open(const struct syscalls *calls, const char *const *paths, size_t n,
			     uint64_t record_nbytes, struct input **ret_input)
{
	const struct framing framing = { .record_nbytes = record_nbytes };

	return input_open_endpoints(calls, paths, NULL, n, &framing, ret_input);
}
