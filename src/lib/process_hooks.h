/*
 * process_hooks - what a process has once, and lends to the sorts in it
 *
 * Signals, and with them pages that cannot be had and names that must not be left behind, are of
 * the whole process. What is below src/lib/ does not touch them: it gets here what it needs of
 * them, beside the system's calls (struct syscalls). Handlers are the program's (include/gsort.h).
 */
#pragma once

#include "include/gsort.h"
#include "io/file/mapping.h"
#include "io/output/commit_point.h"
#include "io/output/truncate_on_abort.h"
#include "io/output/unlink_on_abort.h"

struct gsort_process {
	struct mapping_table guards;
	struct temp_names temp_names;
	struct truncate_table truncations;
	struct commit_point commit_point;
	struct syscalls calls; /* the system's, with these */
	atomic_bool is_output_committed;
};

/* The output has its name, and what is left to do is to tell of it. NULL is fine. */
void process_set_output_committed(struct gsort_process *process);

/*
 * Does not return if a signal is ending the process, and has made its writes fail. NULL is fine.
 */
void process_wait_if_terminating(const struct gsort_process *process);

/* The system's calls with what is lent; process NULL: nothing is. */
const struct syscalls *process_syscalls(const struct gsort_process *process);
