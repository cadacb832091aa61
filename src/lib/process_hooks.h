/*
 * process_hooks.h - process-wide state that the sorts of a process share
 *
 * Signals belong to the whole process, and with them faults in mappings and the names that must not
 * be left behind. Code below src/lib/ does not touch signals: it gets this state together with the
 * system calls (struct syscalls). The program has the handlers (include/gsort.h).
 */
#pragma once

#include "include/gsort.h"
#include "io/file/mapping.h"
#include "io/output/undo.h"

struct gsort_process {
	struct mapping_table guards;
	struct undo_table undo;
	struct syscalls calls; /* the system's, with the members above */
	atomic_bool is_output_committed;
};

/* Record that only reports are missing. NULL is ignored. */
void process_set_output_committed(struct gsort_process *process);

/*
 * Do not return if a signal is ending the process: it has removed files, or made writes fail. NULL
 * is ignored.
 */
void process_wait_if_terminating(const struct gsort_process *process);

/* Return the system calls with the state of the process; NULL: without. */
const struct syscalls *process_syscalls(const struct gsort_process *process);
