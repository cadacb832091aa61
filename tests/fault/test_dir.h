/*
 * test_dir.h - run gsort in a directory with inputs, and check each run
 *
 * The program under test is gsort's own main(), called in this process. fault_run.h checks what it
 * did. A defect is printed on standard error and counted. A run that does not end in time is named
 * and aborted.
 */
#pragma once

#include "tests/fault/fault_run.h"

/* Make the directory and the inputs, and change to it. */
void test_dir_open(void);
void test_dir_close(void);

/*
 * Run gsort. If it leaves a checkpoint or a part of one, run it again without a fault. The second
 * run must give the right bytes; it may fail if the fault damaged data.
 */
enum run_outcome test_dir_run(const struct fault_run *fault_run);

/* Return how often the last run passed the point, without the resumed run. */
unsigned test_dir_n_passed(enum fault_point point);

/* Get the call sites of the last run, without the resumed run. Returns their number. */
size_t test_dir_get_sites(struct call_site ret_sites[static MAX_CALL_SITES]);

/* Return how many sorts were resumed from a checkpoint. */
unsigned test_dir_n_resumed(void);
