/*
 * process_setup.c - the process: stack, signals, limits (see process_setup.h)
 */
#include "src/cli/process_setup.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"

/* Stack of threads. The default of the system may be too small (ulimit -s), or 8 MiB. */
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

/* A main thread that only waits blocks all signals. */
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
		run_main_call(&call); /* --help needs no thread; a sort reports the error */
	return call.status;
}

struct gsort_process *process_get(void)
{
	return atomic_load(&shared_process);
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const bool is_fault = info->si_code > 0; /* else kill(2) sent it */

	(void)context;
	if (!is_fault || !gsort_handle_sigbus(process_get(), info->si_addr)) {
		/* The instruction repeats a fault. */
		sigaction(signal_number, &previous_action, NULL);
		if (!is_fault)
			raise(signal_number);
	}
	errno = saved_errno;
}

int process_setup(void)
{
	const struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct gsort_process *process = process_get();
	struct sigaction current;
	int r = process ? 0 : gsort_open_process(&process);

	if (r < 0 || sigaction(SIGBUS, NULL, &current) < 0)
		return r;
	if (current.sa_sigaction != on_bus_error) {
		previous_action = current;
		if (sigaction(SIGBUS, &action, NULL) < 0)
			return r;
	}
	atomic_store(&shared_process, process);
	return r;
}

/* --- Signals that end the process --- */

enum { EXIT_SIGNAL_BASE = 128 }; /* plus the signal: the exit status in shells */

static bool is_one_of(int signal_number, const int *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (signal_number == set[i])
			return true;
	return false;
}
#define IS_ONE_OF(signal_number, some)                                                             \
	is_one_of(signal_number, some, sizeof(some) / sizeof(some)[0])

/* Return whether the default action ends the process and the signal can be caught. */
static bool is_fatal_signal(int signal_number)
{
	static const int nonfatal[] = { SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
					SIGCONT, SIGCHLD, SIGURG,  SIGWINCH };

	return !IS_ONE_OF(signal_number, nonfatal);
}

/* Return whether the thread cannot continue after the signal. */
static bool is_fault_signal(int signal_number)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	return IS_ONE_OF(signal_number, faults);
}

static void terminate_by_signal(int signal_number)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* not blocked, because of SA_NODEFER */
	/* Default actions do not end process 1 of a container. */
	_exit(EXIT_SIGNAL_BASE + signal_number);
}

/*
 * Return whether this signal is the first one. Later signals (timeout(1) sends each twice) must not
 * end the process before the files are removed, and are ignored. A thread with a fault waits for
 * the end; a fault of the thread that cleans up ends the process at once.
 */
static bool is_first_fatal_signal(int signal_number)
{
	static atomic_flag is_claimed = ATOMIC_FLAG_INIT;
	static _Thread_local bool is_claimant;

	if (!atomic_flag_test_and_set(&is_claimed)) {
		is_claimant = true;
		return true;
	}
	if (is_claimant && is_fault_signal(signal_number))
		terminate_by_signal(signal_number);
	while (is_fault_signal(signal_number))
		pause();
	return false;
}

/* End the process after the commit without writing the reports. */
static void exit_without_reports(void)
{
	static const char text[] = GSORT_PROGRAM
		": terminated by a signal; output complete, but reports are missing\n";

	gsort_cleanup_files(process_get());
	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(EXIT_TROUBLE);
	_exit(EXIT_TROUBLE);
}

/* After the commit SIGPIPE is ignored: the failing write is reported instead. */
static void handle_fatal_signal(int signal_number)
{
	const enum gsort_signal_action action =
		is_fault_signal(signal_number) ? GSORT_SIGNAL_TERMINATE :
						 gsort_signal_action(process_get(), signal_number);

	if (action == GSORT_SIGNAL_IGNORE ||
	    (action == GSORT_SIGNAL_TERMINATE_AFTER_REPORT && signal_number == SIGPIPE))
		return;
	if (!is_first_fatal_signal(signal_number))
		return;
	if (action == GSORT_SIGNAL_TERMINATE_AFTER_REPORT)
		exit_without_reports();
	gsort_cleanup_files(process_get());
	terminate_by_signal(signal_number);
}

void fatal_signals_ignore_size_limit(void)
{
	signal(SIGXFSZ, SIG_IGN);
}

void fatal_signals_install(void)
{
	struct sigaction action = { .sa_handler = handle_fatal_signal,
				    .sa_flags = SA_NODEFER | SA_RESTART };
	struct sigaction old;

	/* sigaction() refuses signals that the C library uses. */
	for (int i = 1; i <= SIGRTMAX; i++)
		if (is_fatal_signal(i) && sigaction(i, NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			sigaction(i, &action, NULL);
	fatal_signals_ignore_size_limit();
}

void fatal_signals_raise_pending(void)
{
	const int pending = gsort_pending_signal(process_get());

	if (pending)
		raise(pending);
}

/* --- Limits --- */

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

#if HAVE_HIGHWAY
/*
 * Replace a function of libhwy 1.0. When libhwy is loaded, it measures for 3 ms how exact a clock
 * is that only its own benchmarks use. That is half of the time of a short sort.
 */
__attribute__((visibility("default"))) uint64_t
measure_no_clock(void) __asm__("_ZN3hwy8platform15TimerResolutionEv");
uint64_t measure_no_clock(void)
{
	return 1;
}
#endif
