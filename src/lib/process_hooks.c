/*
 * process_hooks.c - process-wide state that the sorts of a process share (see process_hooks.h)
 */
#include "src/lib/process_hooks.h"

#include <errno.h>
#include <stdlib.h>

int gsort_open_process(struct gsort_process **ret_process)
{
	struct gsort_process *process;

	if (!ret_process)
		return -EINVAL;
	process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->calls = syscalls_plain;
	process->calls.mappings = &process->guards;
	process->calls.undo = &process->undo;
	*ret_process = process;
	return 0;
}

void gsort_close_process(struct gsort_process *process)
{
	free(process);
}

void process_set_output_committed(struct gsort_process *process)
{
	if (process)
		atomic_store(&process->is_output_committed, true);
}

void process_wait_if_terminating(const struct gsort_process *process)
{
	if (process)
		undo_wait_if_aborting(&process->undo);
}

const struct syscalls *process_syscalls(const struct gsort_process *process)
{
	return process ? &process->calls : &syscalls_plain;
}

int gsort_handle_sigbus(struct gsort_process *process, const void *address)
{
	return process && mapping_table_handle_fault(&process->guards, address);
}

enum gsort_signal_action gsort_signal_action(struct gsort_process *process, int signal_number)
{
	if (!process || undo_signal_may_kill(&process->undo, signal_number))
		return GSORT_SIGNAL_TERMINATE;
	return atomic_load(&process->is_output_committed) ? GSORT_SIGNAL_TERMINATE_AFTER_REPORT :
							    GSORT_SIGNAL_IGNORE;
}

void gsort_cleanup_files(struct gsort_process *process)
{
	if (process)
		undo_abort(&process->undo);
}

int gsort_pending_signal(const struct gsort_process *process)
{
	return process ? undo_pending_signal(&process->undo) : 0;
}
