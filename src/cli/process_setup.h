/*
 * process_setup - what this process has once, and lends to the sorts in it
 *
 * Signals are of the whole process, and the library does not touch them: it is asked by the
 * handlers here and in fatal_signals.c (gsort_set_process()).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "include/gsort.h"

/*
 * Of main(): run(argc, argv), and return what it returns. The first thread of a process has the
 * stack that the system gives it (ulimit -s); if that is too little, another one runs it.
 */
int process_run_main(int (*run)(int argc, char **argv), int argc, char **argv);

/*
 * Start a thread that calls run(argument), with a stack of our choice; it is to be joined. Returns
 * 0 or a negative errno, without a message.
 */
int process_start_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread);

/*
 * Handle SIGBUS: what is mapped and cannot be had becomes zeros; any other does what it would have
 * done before. Once more is fine. One thread. Returns 0, or -ENOMEM without a message; where the
 * signal cannot be handled nothing is lent.
 */
int process_setup(void);

/* What is lent; NULL: nothing is. Async-signal-safe. */
struct gsort_process *process_get(void);

/*
 * So many files will be open at a time: let the process have them, as far as it may. What it may
 * not, whoever opens them will say.
 */
void process_raise_file_limit(unsigned n);

/*
 * From now on any process of this user may read the memory of this one, also where a process is
 * read by those only of whom it has said so (Yama); or no more.
 */
void process_allow_memory_read(bool allow);
