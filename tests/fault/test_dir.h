/*
 * test_dir - a directory with inputs, and whole runs of gsort in it, judged
 *
 * The program under test is gsort's own main(), called in this process. What a run may leave is
 * known before it starts (fault_run.h).
 *
 * Whatever else happens is a line on standard error, and counted. A run that does not end in time
 * is named and aborted.
 */
#pragma once

#include "tests/fault/fault_run.h"

/* Make the directory and the inputs, and enter it. */
void test_dir_open(void);
void test_dir_close(void);

/*
 * Run gsort. If that leaves a checkpoint or a part of one, run it again without a fault, which must
 * give the right bytes, or may find the damage that the fault has done.
 */
enum run_outcome test_dir_run(const struct fault_run *fault_run);

/* How often it passed the point, before it was gone on with. */
unsigned test_dir_n_passed(enum fault_point point);

/* As fault_points_get_sites(), of the same. */
size_t test_dir_get_sites(struct call_site ret_sites[static MAX_CALL_SITES]);

/* How many runs were gone on with so. */
unsigned test_dir_n_resumed(void);
