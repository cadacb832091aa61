/*
 * thread.h - start threads that report to the diagnostics of their creator
 *
 * All threads are started here, so that their messages reach the diagnostics of their job. Threads
 * that serve several jobs set the diagnostics of each piece of work (thread_pool.c, queue_pool.c).
 */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Start a thread that calls run(argument); the caller must join it. stack_nbytes: the stack size;
 * 0: the default, which is enough for most. Returns 0, or a negative errno without a message.
 */
int thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
		 pthread_t *ret_thread);

/*
 * Format the end of a message about a thread that could not be started, to follow %m of r (a
 * negative errno): for -EAGAIN the limits that may be the reason; else "".
 */
struct thread_limits_text {
	char text[160];
};
struct thread_limits_text thread_format_limits(int r);

/*
 * Initialise a condition for timed waits, and wait for it at most until a time of clock_now_ns().
 * thread_wait_until() returns whether that time has come.
 */
void thread_init_timed_condition(pthread_cond_t *condition);
bool thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns);

static inline pthread_mutex_t *scoped_lock_acquire(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void scoped_lock_release(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/* Lock a mutex until the end of the block, also if it is left by return. */
#define SCOPED_LOCK(mutex)                                                                         \
	__attribute__((cleanup(scoped_lock_release), unused))                                      \
	pthread_mutex_t *scoped_lock = scoped_lock_acquire(mutex)

/* Block all signals in the calling thread until thread_restore_signals(). */
void thread_block_signals(sigset_t *ret_mask);
void thread_restore_signals(const sigset_t *mask);

/*
 * --- NUMA nodes ---
 *
 * A copy between a device and memory of another node crosses one more link, which all devices
 * share. So memory for a device, and the threads that read and write it, should be on the device's
 * node.
 *
 * A node is the kernel's number plus one. NUMA_NODE_ANY: unknown, or there is only one node. All of
 * this affects speed only, so failures are ignored without a message.
 */

enum { NUMA_NODE_ANY = 0 };

/* The default of `sysfs`; tests pass a tree of their own. */
#define NUMA_SYSFS "/sys"

/* Return the node of a PCI device, given as "0000:65:00.0". */
int numa_node_of_pci(const char *sysfs, const char *bus_id);

/* Allocate untouched pages of the memory, which begins at a page, preferably on the node. */
void numa_prefer_node(void *memory, size_t nbytes, int node);

/*
 * Restrict the calling thread, and threads that it starts, to its CPUs that belong to the node, if
 * there are any. numa_unbind_thread() undoes this.
 */
struct numa_binding {
	cpu_set_t saved_cpus;
	int is_bound;
};
struct numa_binding numa_bind_thread(const char *sysfs, int node);
void numa_unbind_thread(const struct numa_binding *binding);
