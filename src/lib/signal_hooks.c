/*
 * signal_hooks - what a process has once, and lends to the sorts in it (see signal_hooks.h)
 */
#include "src/lib/signal_hooks.h"

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
	process->calls.guards = &process->guards;
	process->calls.names = &process->names;
	process->calls.cuts = &process->cuts;
	process->calls.commitment = &process->commitment;
	*ret_process = process;
	return 0;
}

void gsort_close_process(struct gsort_process *process)
{
	free(process);
}

void process_leave_reports(struct gsort_process *process)
{
	if (process)
		atomic_store(&process->only_reports_are_left, true);
}

void process_wait_if_ending(const struct gsort_process *process)
{
	if (process)
		cut_back_wait_for_end(&process->cuts);
}

const struct syscalls *process_calls(const struct gsort_process *process)
{
	return process ? &process->calls : &syscalls_plain;
}

int gsort_handle_sigbus(struct gsort_process *process, const void *address)
{
	return process && mapping_guards_catch(&process->guards, address);
}

enum gsort_signal_action gsort_signal_action(struct gsort_process *process, int signal_number)
{
	if (!process || commitment_lets_die(&process->commitment, signal_number))
		return GSORT_SIGNAL_TERMINATE;
	return atomic_load(&process->only_reports_are_left) ? GSORT_SIGNAL_TERMINATE_AFTER_REPORT :
							      GSORT_SIGNAL_IGNORE;
}

void gsort_cleanup_files(struct gsort_process *process)
{
	if (!process)
		return;
	hidden_names_end(&process->names);
	cut_back_all(&process->cuts);
}

int gsort_pending_signal(const struct gsort_process *process)
{
	return process ? commitment_missed(&process->commitment) : 0;
}
