/*
 * process_setup.h - the process: stack, signals, limits, exit status
 *
 * Signals belong to the process, and the library does not handle them. The handlers here ask the
 * struct gsort_process that the process shares with its sorts (include/gsort.h).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "include/gsort.h"

/* Exit statuses. Disorder is the result of a check; trouble is any error. */
enum exit_status { EXIT_SORTED = 0, EXIT_DISORDER = 1, EXIT_TROUBLE = 2 };

/* --- Threads --- */

/*
 * Return run(argc, argv). If the stack of the main thread (ulimit -s) is too small, another thread
 * runs it.
 */
int process_run_main(int (*run)(int argc, char **argv), int argc, char **argv);

/* Start a joinable thread with a stack of fixed size. Returns 0 or a negative errno (silent). */
int process_start_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread);

/* --- The process that sorts share --- */

/*
 * Create the struct gsort_process and handle SIGBUS: pages of a sort that cannot be read become
 * zeros; other faults have their previous effect. Idempotent; one thread. If SIGBUS cannot be
 * handled, process_get() stays NULL. Returns 0 or -ENOMEM (silent).
 */
int process_setup(void);

/* Return the struct gsort_process; NULL: none. Async-signal-safe. */
struct gsort_process *process_get(void);

/* --- Signals that end the process --- */

/*
 * Handle all catchable signals that would end the process, except those that are ignored or have a
 * handler. The first signal removes unfinished files; signals meanwhile are ignored. Then the
 * process dies of the signal, or exits with 128 plus its number where signals have no effect
 * (process 1 of a container).
 *
 * While the output is being committed, and afterwards, signals are ignored, except faults of the
 * program. Once only reports are missing, a signal ends the process with a message and
 * EXIT_TROUBLE.
 */
void fatal_signals_install(void);

/* Ignore SIGXFSZ, so that writes beyond a file size limit fail with EFBIG. */
void fatal_signals_ignore_size_limit(void);

/* After the sort: die of a signal that was ignored for a commit that then failed. */
void fatal_signals_raise_pending(void);

/* --- Limits --- */

/* Raise the limit on open files to n, as far as the hard limit permits. */
void process_raise_file_limit(unsigned n);

/*
 * Allow or forbid other processes of the user to read the memory of this process, where Yama
 * restricts that.
 */
void process_allow_memory_read(bool allow);
