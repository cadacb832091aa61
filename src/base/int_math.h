/*
 * int_math - whole numbers of something, and enough of them
 */
#pragma once

#include <stdint.h>

/* How many of `by` hold the value. by > 0 */
static inline uint64_t divide_up(uint64_t value, uint64_t divisor)
{
	return value / divisor + (value % divisor != 0);
}

/* The least multiple of `to` that is not below the value; must fit. to > 0 */
static inline uint64_t round_up(uint64_t value, uint64_t multiple)
{
	return divide_up(value, multiple) * multiple;
}
