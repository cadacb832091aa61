/*
 * bench_median - the time that stands for several (see bench_median.h)
 */
#include "tools/bench/bench_median.h"

#include <stdlib.h>

static int compare_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double bench_median_ns(uint64_t *times_ns, unsigned n)
{
	qsort(times_ns, n, sizeof *times_ns, compare_ns);
	return (double)(times_ns[(n - 1) / 2] + times_ns[n / 2]) / 2;
}
