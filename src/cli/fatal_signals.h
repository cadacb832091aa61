/*
 * fatal_signals.h - signals that end the process leave no unfinished file behind
 */
#pragma once

/*
 * Install handlers for all signals that end a process by default and that can be caught. A handler
 * removes unfinished files (gsort_cleanup_files()), however many more signals arrive meanwhile.
 * Then the process dies of the first signal. If signals cannot end it, because it is process 1 of a
 * container, it exits with 128 plus the number of the signal. Signals that are ignored when the
 * process starts stay ignored, and existing handlers are kept.
 *
 * When the output gets its name, signals other than faults are ignored and the process finishes. If
 * only reports are missing, which may depend on other processes, a signal ends the process with a
 * message and EXIT_TROUBLE.
 */
void fatal_signals_install(void);

/* Ignore SIGXFSZ: the limit on the size of files is reported by the failed write (EFBIG). */
void fatal_signals_ignore_size_limit(void);

/* At the end: die of a signal that was ignored for a commit that then failed. */
void fatal_signals_raise_pending(void);
