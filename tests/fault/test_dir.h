/*
 * test_dir - a directory with inputs, and whole runs of gsort in it, judged
 *
 * The program under test is gsort's own main(), called in this process. What a run may leave is
 * known before it starts (trial.h).
 *
 * Whatever else happens is a line on standard error, and counted. A run that does not end in time
 * is named and aborted.
 */
#pragma once

#include "tests/fault/trial.h"

/* Make the directory and the inputs, and enter it. */
void scene_open(void);
void scene_close(void);

/*
 * Run gsort. If that leaves a checkpoint or a part of one, run it again without a fault, which must
 * give the right bytes, or may find the damage that the fault has done.
 */
enum outcome scene_run(const struct trial *trial);

/* How often it passed the point, before it was gone on with. */
unsigned scene_n_passed(enum point point);

/* As points_sites(), of the same. */
size_t scene_sites(struct site ret_sites[static MOST_SITES]);

/* How many runs were gone on with so. */
unsigned scene_n_resumed(void);
