/*
 * deadly_signals - whatever ends the process, no unfinished file is left (see deadly_signals.h)
 */
#include "src/cli/deadly_signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "io/output/output.h"

enum { EXIT_BY_SIGNAL = 128 }; /* and its number: what a shell says of who died of it */

/* Those that by default stop the process, let it go on, or do nothing; two cannot be caught. */
static bool is_deadly(int signal_number)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
				      SIGCONT, SIGCHLD, SIGURG,  SIGWINCH };

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (signal_number == others[i])
			return false;
	return true;
}

/* Its action is the default one again (SA_RESETHAND), and it is not held back (SA_NODEFER). */
static void die(int signal_number)
{
	output_cleanup_from_signal();
	raise(signal_number);
	/* Default actions do nothing to the first process of a container. */
	_exit(EXIT_BY_SIGNAL + signal_number);
}

void deadly_signals_handle(void)
{
	const struct sigaction action = { .sa_handler = die,
					  .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction old;

	/* The C library refuses those that it uses itself. */
	for (int i = 1; i <= SIGRTMAX; i++)
		if (is_deadly(i) && sigaction(i, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(i, &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk: EFBIG, not a signal */
}
