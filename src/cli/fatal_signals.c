/*
 * fatal_signals.c - signals that end the process leave no unfinished file (see fatal_signals.h)
 */
#include "src/cli/fatal_signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "config.h"
#include "src/cli/exit_status.h"
#include "src/cli/process_setup.h"

enum { EXIT_SIGNAL_BASE = 128 }; /* as a shell reports a process that a signal has ended */

static bool is_one_of(int signal_number, const int *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (signal_number == set[i])
			return true;
	return false;
}
#define IS_ONE_OF(signal_number, some)                                                             \
	is_one_of(signal_number, some, sizeof(some) / sizeof(some)[0])

/* The other signals stop or continue the process, do nothing, or cannot be caught. */
static bool is_fatal_signal(int signal_number)
{
	static const int nonfatal[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
					SIGCONT, SIGCHLD, SIGURG,  SIGWINCH };

	return !IS_ONE_OF(signal_number, nonfatal);
}

/* The thread cannot continue. */
static bool is_fault_signal(int signal_number)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	return IS_ONE_OF(signal_number, faults);
}

static void terminate_by_signal(int signal_number)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* it is not blocked (SA_NODEFER) */
	/* The default action has no effect on the first process of a container. */
	_exit(EXIT_SIGNAL_BASE + signal_number);
}

/*
 * Claim the end of the process for this signal. Later signals must not end the process before files
 * are removed and truncated, and are ignored; timeout(1), for example, sends each signal twice. A
 * thread that has a fault meanwhile cannot continue, and waits for the end. If the fault is in the
 * claiming thread, the process dies at once.
 */
static bool is_first_fatal_signal(int signal_number)
{
	static atomic_flag is_claimed = ATOMIC_FLAG_INIT;
	static _Thread_local bool is_claimant;

	if (!atomic_flag_test_and_set(&is_claimed)) {
		is_claimant = true;
		return true;
	}
	if (is_claimant && is_fault_signal(signal_number))
		terminate_by_signal(signal_number);
	while (is_fault_signal(signal_number))
		pause();
	return false;
}

/* The output is committed; whoever has sent the signal does not wait for reports. */
static void exit_without_reports(void)
{
	static const char text[] = GSORT_PROGRAM
		": ended by a signal: the output is complete, but reports "
		"are missing\n";

	gsort_cleanup_files(process_get());
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

/* While only reports are missing, SIGPIPE is ignored: the failed write is reported. */
static void handle_fatal_signal(int signal_number)
{
	const enum gsort_signal_action action =
		is_fault_signal(signal_number) ? GSORT_SIGNAL_TERMINATE :
						 gsort_signal_action(process_get(), signal_number);

	if (action == GSORT_SIGNAL_IGNORE ||
	    (action == GSORT_SIGNAL_TERMINATE_AFTER_REPORT && signal_number == SIGPIPE))
		return;
	if (!is_first_fatal_signal(signal_number))
		return;
	if (action == GSORT_SIGNAL_TERMINATE_AFTER_REPORT)
		exit_without_reports();
	gsort_cleanup_files(process_get());
	terminate_by_signal(signal_number);
}

void fatal_signals_ignore_size_limit(void)
{
	signal(SIGXFSZ, SIG_IGN);
}

void fatal_signals_install(void)
{
	struct sigaction action = { .sa_handler = handle_fatal_signal,
				    .sa_flags = SA_NODEFER | SA_RESTART };
	struct sigaction old;

	/* The C library refuses the signals that it uses itself. */
	for (int i = 1; i <= SIGRTMAX; i++)
		if (is_fatal_signal(i) && sigaction(i, NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			sigaction(i, &action, NULL);
	fatal_signals_ignore_size_limit();
}

void fatal_signals_raise_pending(void)
{
	const int pending = gsort_pending_signal(process_get());

	if (pending)
		raise(pending);
}
