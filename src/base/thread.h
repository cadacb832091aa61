/*
 * thread.h - start threads that report to the diagnostics of their creator
 *
 * All threads are started here, so that their messages reach the diagnostics of their job. Threads
 * that serve several jobs set the diagnostics of each piece of work (thread_pool.c, queue_pool.c).
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * Start a thread that calls run(argument); the caller must join it. stack_nbytes: the stack size;
 * 0: the default, which is enough for most. Returns 0, or a negative errno without a message.
 */
int thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
		 pthread_t *ret_thread);

/*
 * Write the end of a message about a thread that could not be started, to follow %m of r (a
 * negative errno): for -EAGAIN the limits that may be the reason; else "". Returns `text`.
 */
enum { THREAD_LIMITS_NBYTES = 160 };
const char *thread_format_limits(int r, char text[static THREAD_LIMITS_NBYTES]);

/* Block all signals in the calling thread until thread_restore_signals(). */
void thread_block_signals(sigset_t *ret_mask);
void thread_restore_signals(const sigset_t *mask);
