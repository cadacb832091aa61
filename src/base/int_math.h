/*
 * int_math - whole numbers of something, and enough of them
 */
#pragma once

#include <stdint.h>

/* How many of `by` hold the value. by > 0 */
static inline uint64_t divide_up(uint64_t value, uint64_t by)
{
	return value / by + (value % by != 0);
}

/* The least multiple of `to` that is not below the value; must fit. to > 0 */
static inline uint64_t round_up(uint64_t value, uint64_t to)
{
	return divide_up(value, to) * to;
}
