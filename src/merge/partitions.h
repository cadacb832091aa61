/*
 * partitions - one merge as several, side by side, each of a part of the output
 *
 *	run 0   [ 1 1 2 3 | 5 6 8 | 8 9 ]
 *	run 1   [ 1 4 | 5 5 7 | 8 8 8 9 ]	cut at 5 and at 8 of run 1
 *	         range 0   range 1  range 2
 *
 * A range is whatever can be merged alone: between two splitters, at which every run is cut
 * exactly. It is merged as if its parts of the runs were all that there is (run_open_subrun()),
 * with windows, an order, a thread that feeds and one that writes of its own, and memory for
 * windows that is divided by their number. Its place in the output is known from the beginning:
 * it is the sum of the cuts. So many writers are at work far apart, which is what they need to be
 * as fast as the memory (io/output/output.h), and the bytes do not depend on how many there are.
 *
 * A splitter is the first item of a block, known by its key, run and block, which is an order of
 * all blocks, also of equal keys. It is found among the first keys of the blocks of all runs, by
 * how many items come before them; so ranges are equal to within a block of each run. Of keys
 * longer than what is known of blocks, all that begin alike stay together.
 *
 * The last item of a range and the first of the next are compared like those of two windows, and
 * what each range has found is added up.
 */
#pragma once

#include "src/merge/sink.h"

/*
 * Merge like merge_runs(), in as many partitions as the plan says and memory has room for; into a
 * run, in as many as there are devices. It is one partition if there is a limit with -u, or if the
 * sink must know positions in advance with -u. The sink's writes must not wait for each other. The
 * runs stay the caller's, and must not be read any more.
 */
int merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			uint64_t memory_nbytes, const struct sink *sink,
			struct merge_result *ret_result);
