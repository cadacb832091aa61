/*
 * deadly_signals - whatever ends the process, no unfinished file is left (see deadly_signals.h)
 */
#include "src/cli/deadly_signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "src/cli/exit_status.h"
#include "src/cli/process.h"

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

/* Nobody waits for the rest: what the signal is to end is done. */
static void leave_without_reports(void)
{
	static const char text[] = "gsort: ended by a signal: the output is complete, and what "
				   "was to be told of it is not\n";

	gsort_remove_names(process_lent());
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

static void die(int signal_number)
{
	signal(signal_number, SIG_DFL);
	gsort_remove_names(process_lent());
	raise(signal_number); /* it is not held back (SA_NODEFER) */
	/* Default actions do nothing to the first process of a container. */
	_exit(EXIT_BY_SIGNAL + signal_number);
}

/* A reader that has gone is no reason to end: that nothing can be written is. */
static void handle(int signal_number)
{
	const enum gsort_verdict verdict =
		is_fault(signal_number) ? GSORT_DIE :
					  gsort_judge_signal(process_lent(), signal_number);

	if (verdict == GSORT_DIE)
		die(signal_number);
	else if (verdict == GSORT_REPORTS && signal_number != SIGPIPE)
		leave_without_reports();
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
	const int missed = gsort_get_missed_signal(process_lent());

	if (missed)
		raise(missed);
}
