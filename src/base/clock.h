/*
 * clock.h - a monotonic clock
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Return nanoseconds since an arbitrary point in time. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
