/*
 * thread - threads that work for the same job as whoever starts them
 *
 * All threads are started here, so that what is said in them comes to the messages of their job.
 * Those that outlive a job, or work for several, enter the messages of what they do (thread_pool.c,
 * queue_pool.c).
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * Start a thread that calls run(argument), with the messages of the calling one; it is to be
 * joined. stack_nbytes: what is enough for it; 0: what mostly is. Returns 0, or a negative errno
 * without a message.
 */
int thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
		 pthread_t *ret_thread);

/*
 * What a message about a thread that could not be started ends with, after %m of `r`, a negative
 * errno: of -EAGAIN the limits that may be the reason; else nothing. Returns `text`.
 */
enum { THREAD_LIMITS_NBYTES = 160 };
const char *thread_format_limits(int r, char text[static THREAD_LIMITS_NBYTES]);

/* No signal interrupts the calling thread any more, until thread_restore_signals(). */
void thread_block_signals(sigset_t *ret_mask);
void thread_restore_signals(const sigset_t *mask);
