/*
 * fatal_signals - whatever ends the process, no unfinished file is left (see fatal_signals.h)
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

enum { EXIT_SIGNAL_BASE = 128 }; /* and its number: what a shell says of who died of it */

static bool is_one_of(int signal_number, const int *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (signal_number == set[i])
			return true;
	return false;
}
#define IS_ONE_OF(signal_number, some)                                                             \
	is_one_of(signal_number, some, sizeof(some) / sizeof(some)[0])

/* Those that by default stop the process, let it go on, or do nothing; two cannot be caught. */
static bool is_fatal_signal(int signal_number)
{
	static const int nonfatal[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
					SIGCONT, SIGCHLD, SIGURG,  SIGWINCH };

	return !IS_ONE_OF(signal_number, nonfatal);
}

/* The program cannot go on from where it is. */
static bool is_fault_signal(int signal_number)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	return IS_ONE_OF(signal_number, faults);
}

static void terminate_by_signal(int signal_number)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* it is not held back (SA_NODEFER) */
	/* Default actions do nothing to the first process of a container. */
	_exit(EXIT_SIGNAL_BASE + signal_number);
}

/*
 * Is this signal the one that ends the process? Others may come while it is at it, as timeout(1)
 * sends each twice: they must not end the process before the files are cut and removed, and are
 * passed over. A thread that has a fault meanwhile cannot go on, and waits for the end; if it is
 * this one, nothing can be done any more.
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

/* Nobody waits for the rest: what the signal is to end is done. */
static void exit_without_reports(void)
{
	static const char text[] = GSORT_PROGRAM
		": ended by a signal: the output is complete, and what "
		"was to be told of it is not\n";

	gsort_cleanup_files(process_get());
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

/* A reader that has gone is no reason to end: that nothing can be written is. */
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
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk: EFBIG, not a signal */
}

void fatal_signals_install(void)
{
	struct sigaction action = { .sa_handler = handle_fatal_signal,
				    .sa_flags = SA_NODEFER | SA_RESTART };
	struct sigaction old;

	/* The C library refuses those that it uses itself. */
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
