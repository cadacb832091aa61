/*
 * clock - a clock to take differences of
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
