/*
 * fatal_signals - whatever ends the process, no unfinished file is left (see fatal_signals.h)
 */
#include "src/cli/fatal_signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "src/cli/exit_status.h"
#include "src/cli/process_setup.h"

enum { EXIT_BY_SIGNAL = 128 }; /* and its number: what a shell says of who died of it */

static bool is_one_of(int signal_number, const int *some, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (signal_number == some[i])
			return true;
	return false;
}
#define IS_ONE_OF(signal_number, some)                                                             \
	is_one_of(signal_number, some, sizeof(some) / sizeof(some)[0])

/* Those that by default stop the process, let it go on, or do nothing; two cannot be caught. */
static bool is_deadly(int signal_number)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
				      SIGCONT, SIGCHLD, SIGURG,  SIGWINCH };

	return !IS_ONE_OF(signal_number, others);
}

/* The program cannot go on from where it is. */
static bool is_fault(int signal_number)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	return IS_ONE_OF(signal_number, faults);
}

static void end_by(int signal_number)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* it is not held back (SA_NODEFER) */
	/* Default actions do nothing to the first process of a container. */
	_exit(EXIT_BY_SIGNAL + signal_number);
}

/*
 * Is this signal the one that ends the process? Others may come while it is at it, as timeout(1)
 * sends each twice: they must not end the process before the files are cut and removed, and are
 * passed over. A thread that has a fault meanwhile cannot go on, and waits for the end; if it is
 * this one, nothing can be done any more.
 */
static bool is_first(int signal_number)
{
	static atomic_flag has_come = ATOMIC_FLAG_INIT;
	static _Thread_local bool is_here;

	if (!atomic_flag_test_and_set(&has_come)) {
		is_here = true;
		return true;
	}
	if (is_here && is_fault(signal_number))
		end_by(signal_number);
	while (is_fault(signal_number))
		pause();
	return false;
}

/* Nobody waits for the rest: what the signal is to end is done. */
static void leave_without_reports(void)
{
	static const char text[] = "gsort: ended by a signal: the output is complete, and what "
				   "was to be told of it is not\n";

	gsort_cleanup_files(process_lent());
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

/* A reader that has gone is no reason to end: that nothing can be written is. */
static void handle(int signal_number)
{
	const enum gsort_signal_action verdict =
		is_fault(signal_number) ? GSORT_SIGNAL_TERMINATE :
					  gsort_signal_action(process_lent(), signal_number);

	if (verdict == GSORT_SIGNAL_IGNORE ||
	    (verdict == GSORT_SIGNAL_TERMINATE_AFTER_REPORT && signal_number == SIGPIPE))
		return;
	if (!is_first(signal_number))
		return;
	if (verdict == GSORT_SIGNAL_TERMINATE_AFTER_REPORT)
		leave_without_reports();
	gsort_cleanup_files(process_lent());
	end_by(signal_number);
}

void deadly_signals_ignore_limit(void)
{
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk: EFBIG, not a signal */
}

void deadly_signals_handle(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_NODEFER | SA_RESTART };
	struct sigaction old;

	/* The C library refuses those that it uses itself. */
	for (int i = 1; i <= SIGRTMAX; i++)
		if (is_deadly(i) && sigaction(i, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(i, &action, NULL);
	deadly_signals_ignore_limit();
}

void deadly_signals_make_up(void)
{
	const int missed = gsort_pending_signal(process_lent());

	if (missed)
		raise(missed);
}
