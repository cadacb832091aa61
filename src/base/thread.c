/*
 * thread.c - start threads that report to the diagnostics of their creator (see thread.h)
 */
#include "src/base/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

/*
 * No thread needs much stack. The system's default may reserve 8 MiB of address space for each
 * thread, which counts against limits, or may be too small (ulimit -s).
 */
enum { STACK_NBYTES = 512 << 10 };

/* Passed to the new thread, which frees it. */
struct thread_start_args {
	void *(*run)(void *argument);
	void *argument;
	struct diagnostics *diagnostics;
};

static void *thread_entry(void *argument)
{
	const struct thread_start_args args = *(struct thread_start_args *)argument;

	free(argument);
	diagnostics_push(args.diagnostics);
	return args.run(args.argument);
}

int thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
		 pthread_t *ret_thread)
{
	struct thread_start_args *args = malloc(sizeof *args);
	pthread_attr_t attributes;
	int r;

	if (!args)
		return -ENOMEM;
	*args = (struct thread_start_args){ run, argument, diagnostics_current() };
	r = -pthread_attr_init(&attributes);
	if (r == 0) {
		r = -pthread_attr_setstacksize(&attributes,
					       stack_nbytes ? stack_nbytes : STACK_NBYTES);
		if (r == 0)
			r = -pthread_create(ret_thread, &attributes, thread_entry, args);
		pthread_attr_destroy(&attributes);
	}
	if (r < 0)
		free(args);
	return r;
}

/* In the units of the shell. */
static const struct thread_limit {
	int resource;
	const char *name;
	unsigned unit_nbytes;
} limits[] = {
	{ RLIMIT_NPROC, "ulimit -u", 1 },
	{ RLIMIT_AS, "ulimit -v", 1024 },
	{ RLIMIT_DATA, "ulimit -d", 1024 },
};

/*
 * The C library also returns EAGAIN when the stack exceeds the limit of address space or of data.
 */
struct thread_limits_text thread_format_limits(int r)
{
	struct thread_limits_text hint = { "" };
	const char *separator = "; likely limits:";
	size_t n = 0;

	if (r != -EAGAIN)
		return hint;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

		getrlimit(limits[i].resource, &limit);
		if (limit.rlim_cur == RLIM_INFINITY)
			continue;
		n += (size_t)snprintf(hint.text + n, sizeof hint - n, "%s %s (%ju)", separator,
				      limits[i].name,
				      (uintmax_t)limit.rlim_cur / limits[i].unit_nbytes);
		separator = ", or";
	}
	if (n == 0)
		snprintf(hint.text, sizeof hint,
			 "; likely limit: number of processes of the system or container");
	return hint;
}

void thread_init_timed_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

bool thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
					.tv_nsec = (long)(until_ns % 1000000000) };

	return pthread_cond_timedwait(condition, mutex, &until) == ETIMEDOUT;
}

void thread_block_signals(sigset_t *ret_mask)
{
	sigset_t all_signals;

	sigfillset(&all_signals);
	pthread_sigmask(SIG_BLOCK, &all_signals, ret_mask);
}

void thread_restore_signals(const sigset_t *mask)
{
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* --- NUMA nodes --- */

enum { LINE_NBYTES = 4096, MAX_NODES = 64 };

/* MPOL_PREFERRED of mbind(2): falls back to other nodes. */
enum { POLICY_PREFERRED = 1 };

/* Read the first line of a file in the tree. Returns false if there is none. */
static bool read_line(const char *sysfs, const char *path, char line[static LINE_NBYTES])
{
	char full_path[LINE_NBYTES];
	FILE *file;
	bool is_read;

	if ((size_t)snprintf(full_path, sizeof full_path, "%s/%s", sysfs, path) >= sizeof full_path)
		return false;
	file = fopen(full_path, "re");
	if (!file)
		return false;
	is_read = fgets(line, LINE_NBYTES, file);
	fclose(file);
	return is_read;
}

/* Parse the next range of "0-3,8" and advance *text. Returns false if there is none. */
static bool parse_next_range(const char **text, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	*ret_first = *ret_last = strtoul(*text, &end, 10);
	if (end == *text)
		return false;
	if (*end == '-')
		*ret_last = strtoul(end + 1, &end, 10);
	*text = *end == ',' ? end + 1 : end;
	return true;
}

static bool has_multiple_nodes(const char *sysfs)
{
	char line[LINE_NBYTES];
	const char *position = line;
	unsigned long first, last, n = 0;

	if (!read_line(sysfs, "devices/system/node/online", line))
		return false;
	while (parse_next_range(&position, &first, &last))
		n += last >= first ? last - first + 1 : 0;
	return n > 1;
}

int numa_node_of_pci(const char *sysfs, const char *bus_id)
{
	char path[128], line[LINE_NBYTES];
	long node;

	snprintf(path, sizeof path, "bus/pci/devices/%s/numa_node", bus_id);
	if (!has_multiple_nodes(sysfs) || !read_line(sysfs, path, line))
		return NUMA_NODE_ANY;
	node = strtol(line, NULL, 10);
	return node >= 0 && node < MAX_NODES ? (int)node + 1 : NUMA_NODE_ANY;
}

void numa_prefer_node(void *memory, size_t nbytes, int node)
{
	const uint64_t mask = node == NUMA_NODE_ANY ? 0 : UINT64_C(1) << (node - 1);

	if (mask)
		(void)syscall(SYS_mbind, memory, nbytes, POLICY_PREFERRED, &mask, MAX_NODES + 1UL,
			      0UL);
}

static bool read_node_cpus(const char *sysfs, int node, cpu_set_t *ret_set)
{
	char path[64], line[LINE_NBYTES];
	const char *position = line;
	unsigned long first, last;

	CPU_ZERO(ret_set);
	snprintf(path, sizeof path, "devices/system/node/node%d/cpulist", node - 1);
	if (node == NUMA_NODE_ANY || !read_line(sysfs, path, line))
		return false;
	while (parse_next_range(&position, &first, &last))
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, ret_set);
	return true;
}

struct numa_binding numa_bind_thread(const char *sysfs, int node)
{
	struct numa_binding binding = { .is_bound = false };
	cpu_set_t node_cpus;

	if (!read_node_cpus(sysfs, node, &node_cpus) ||
	    sched_getaffinity(0, sizeof binding.saved_cpus, &binding.saved_cpus) < 0)
		return binding;
	CPU_AND(&node_cpus, &node_cpus, &binding.saved_cpus);
	binding.is_bound = CPU_COUNT(&node_cpus) > 0 &&
			   sched_setaffinity(0, sizeof node_cpus, &node_cpus) == 0;
	return binding;
}

void numa_unbind_thread(const struct numa_binding *binding)
{
	if (binding->is_bound)
		(void)sched_setaffinity(0, sizeof binding->saved_cpus, &binding->saved_cpus);
}
