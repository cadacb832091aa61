/*
 * process_setup - what this process has once, and lends to the sorts in it (see process_setup.h)
 */
#include "src/cli/process_setup.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Of threads: what the system has for a default may be too little (ulimit -s), or 8 MiB. */
enum { STACK_NBYTES = 512 << 10 };

static struct sigaction previous_action;
static struct gsort_process *_Atomic shared_process;

int process_start_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread)
{
	pthread_attr_t attributes;
	int r = pthread_attr_init(&attributes);

	if (r)
		return -r;
	r = pthread_attr_setstacksize(&attributes, STACK_NBYTES);
	if (r == 0)
		r = pthread_create(ret_thread, &attributes, run, argument);
	pthread_attr_destroy(&attributes);
	return -r;
}

struct main_call {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
	sigset_t signals;
};

static void *run_main_call(void *argument)
{
	struct main_call *call = argument;

	pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
	call->status = call->run(call->argc, call->argv);
	return NULL;
}

/* What ends or asks the process is for threads that know of it: the first one only waits. */
int process_run_main(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct main_call call = { .run = run, .argc = argc, .argv = argv };
	struct rlimit stack;
	pthread_t thread;
	sigset_t all_signals;

	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= STACK_NBYTES)
		return run(argc, argv);
	sigfillset(&all_signals);
	pthread_sigmask(SIG_BLOCK, &all_signals, &call.signals);
	if (process_start_thread(run_main_call, &call, &thread) == 0)
		pthread_join(thread, NULL);
	else
		run_main_call(&call); /* it may go well, and who needs threads says so */
	return call.status;
}

struct gsort_process *process_get(void)
{
	return atomic_load(&shared_process);
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const bool is_fault = info->si_code > 0; /* else somebody has sent it */

	(void)context;
	if (!is_fault || !gsort_handle_sigbus(process_get(), info->si_addr)) {
		/* A fault comes again by itself. */
		sigaction(signal_number, &previous_action, NULL);
		if (!is_fault)
			raise(signal_number);
	}
	errno = saved_errno;
}

static int handle_bus_errors(void)
{
	const struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct sigaction current;

	if (sigaction(SIGBUS, NULL, &current) < 0)
		return -errno;
	if (current.sa_sigaction == on_bus_error)
		return 0;
	previous_action = current;
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int process_setup(void)
{
	struct gsort_process *process = process_get();
	int r = process ? 0 : gsort_open_process(&process);

	if (r == 0 && handle_bus_errors() == 0)
		atomic_store(&shared_process, process);
	return r;
}

void process_raise_file_limit(unsigned n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void process_allow_memory_read(bool allow)
{
	prctl(PR_SET_PTRACER, allow ? PR_SET_PTRACER_ANY : 0, 0, 0, 0);
}
