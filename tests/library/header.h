/*
 * header - a function that uses gsort.h, compiled as C and as C++
 */
#pragma once

#include <gsort.h>

static int use_header(void)
{
	struct gsort *sort;
	struct gsort_stats stats;
	struct gsort_progress progress;
	size_t n_received = 1;
	char byte;
	int r = gsort_open(&sort);

	if (r < 0)
		return 1;
	gsort_get_progress(sort, &progress, sizeof progress);
	r = gsort_finish(sort);
	if (r == 0)
		r = gsort_get(sort, &byte, 1, &n_received);
	if (r == 0)
		r = gsort_get_stats(sort, &stats, sizeof stats);
	gsort_close(sort);
	return r < 0 || n_received != 0 || stats.n_records_out != 0;
}
