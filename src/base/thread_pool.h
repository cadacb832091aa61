/*
 * thread_pool - a few threads that do the parts of one job after the other
 *
 * A job is a number of parts, which any thread may do in any order; the caller of crew_run() does
 * parts like the others and returns when all are done. For work that waits for disks or decodes,
 * where the parts are long and their number is known: back ends have lanes.
 */
#pragma once

#include <stdint.h>

struct crew;

/* Do part i. Returns 0 or a negative errno after a message. */
typedef int crew_part(void *context, uint32_t i);

/*
 * n_threads: at work in a job, the caller's own included. Fewer, if so many cannot be started. 0,
 * or -ENOMEM without a message.
 */
int crew_open(uint32_t n_threads, struct crew **ret_crew);

/* NULL is fine. */
void crew_close(struct crew *crew);

/*
 * Do the parts 0 to n - 1. Returns 0 or the first failure, after which parts that were not begun
 * are left out. One job at a time.
 */
int crew_run(struct crew *crew, crew_part *part, void *context, uint32_t n);

/*
 * Call work(context) on n_threads threads at once, the caller's included, and return when all have
 * returned: for one job whose threads claim what is next by themselves. Threads that cannot be had
 * are done without.
 */
void crew_share(uint32_t n_threads, void (*work)(void *context), void *context);

/*
 * The same, where each of them has something of its own to do: work(context, number, n), number 0
 * to n - 1, when all n that could be had have been started.
 */
typedef void crew_member(void *context, uint32_t number, uint32_t n);
void crew_share_numbered(uint32_t n_threads, crew_member *work, void *context);
