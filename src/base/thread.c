/*
 * thread.c - start threads that report to the diagnostics of their creator (see thread.h)
 */
#include "src/base/thread.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

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

static int create_thread(struct thread_start_args *args, size_t stack_nbytes, pthread_t *ret_thread)
{
	pthread_attr_t attributes;
	int r = -pthread_attr_init(&attributes);

	if (r < 0)
		return r;
	r = -pthread_attr_setstacksize(&attributes, stack_nbytes ? stack_nbytes : STACK_NBYTES);
	if (r == 0)
		r = -pthread_create(ret_thread, &attributes, thread_entry, args);
	pthread_attr_destroy(&attributes);
	return r;
}

int thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
		 pthread_t *ret_thread)
{
	struct thread_start_args *args = malloc(sizeof *args);
	int r;

	if (!args)
		return -ENOMEM;
	*args = (struct thread_start_args){ run, argument, diagnostics_current() };
	r = create_thread(args, stack_nbytes, ret_thread);
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
const char *thread_format_limits(int r, char text[static THREAD_LIMITS_NBYTES])
{
	const char *separator = "; what limits it is mostly";
	size_t n = 0;

	text[0] = '\0';
	if (r != -EAGAIN)
		return text;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
			continue;
		n += (size_t)snprintf(text + n, THREAD_LIMITS_NBYTES - n, "%s %s, which is %ju",
				      separator, limits[i].name,
				      (uintmax_t)limit.rlim_cur / limits[i].unit_nbytes);
		separator = ", or";
	}
	if (n == 0)
		snprintf(text, THREAD_LIMITS_NBYTES,
			 "; what limits it is the system's, or a container's, number of processes");
	return text;
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
