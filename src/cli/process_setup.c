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

static struct sigaction older_action;
static struct gsort_process *_Atomic lent;

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

struct program {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
	sigset_t signals;
};

static void *run_program(void *argument)
{
	struct program *program = argument;

	pthread_sigmask(SIG_SETMASK, &program->signals, NULL);
	program->status = program->run(program->argc, program->argv);
	return NULL;
}

/* What ends or asks the process is for threads that know of it: the first one only waits. */
int process_run_program(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct program program = { .run = run, .argc = argc, .argv = argv };
	struct rlimit stack;
	pthread_t thread;
	sigset_t all;

	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= STACK_NBYTES)
		return run(argc, argv);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &program.signals);
	if (process_start_thread(run_program, &program, &thread) == 0)
		pthread_join(thread, NULL);
	else
		run_program(&program); /* it may go well, and who needs threads says so */
	return program.status;
}

struct gsort_process *process_lent(void)
{
	return atomic_load(&lent);
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const bool is_fault = info->si_code > 0; /* else somebody has sent it */

	(void)context;
	if (!is_fault || !gsort_handle_sigbus(process_lent(), info->si_addr)) {
		/* A fault comes again by itself. */
		sigaction(signal_number, &older_action, NULL);
		if (!is_fault)
			raise(signal_number);
	}
	errno = saved_errno;
}

static int handle_bus_errors(void)
{
	const struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now) < 0)
		return -errno;
	if (now.sa_sigaction == on_bus_error)
		return 0;
	older_action = now;
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int process_lend(void)
{
	struct gsort_process *process = process_lent();
	int r = process ? 0 : gsort_open_process(&process);

	if (r == 0 && handle_bus_errors() == 0)
		atomic_store(&lent, process);
	return r;
}

void process_allow_files(unsigned n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void process_allow_reading(bool is_allowed)
{
	prctl(PR_SET_PTRACER, is_allowed ? PR_SET_PTRACER_ANY : 0, 0, 0, 0);
}
