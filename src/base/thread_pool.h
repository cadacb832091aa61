/*
 * thread_pool - a few threads that do the parts of one job after the other
 *
 * A job is a number of parts, which any thread may do in any order; the caller of
 * thread_pool_run() does parts like the others and returns when all are done. For work that waits
 * for disks or decodes, where the parts are long and their number is known: back ends have queues.
 */
#pragma once

#include <stdint.h>

struct thread_pool;

/* Do part i. Returns 0 or a negative errno after a message. */
typedef int thread_pool_task(void *context, uint32_t i);

/*
 * n_threads: at work in a job, the caller's own included. Fewer, if so many cannot be started. 0,
 * or -ENOMEM without a message.
 */
int thread_pool_open(uint32_t n_threads, struct thread_pool **ret_pool);

/* NULL is fine. */
void thread_pool_close(struct thread_pool *pool);

/*
 * Do the parts 0 to n - 1. Returns 0 or the first failure, after which parts that were not begun
 * are left out. One job at a time.
 */
int thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context,
		    uint32_t n_tasks);

/*
 * Call work(context) on n_threads threads at once, the caller's included, and return when all have
 * returned: for one job whose threads claim what is next by themselves. Threads that cannot be had
 * are done without.
 */
void threads_run(uint32_t n_threads, void (*work)(void *context), void *context);

/*
 * The same, where each of them has something of its own to do: work(context, number, n), number 0
 * to n - 1, when all n that could be had have been started.
 */
typedef void numbered_thread_fn(void *context, uint32_t number, uint32_t n);
void threads_run_numbered(uint32_t n_threads, numbered_thread_fn *work, void *context);
