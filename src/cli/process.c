/*
 * process - what this process has once, and lends to the jobs in it (see process.h)
 */
#include "src/cli/process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

struct process process;

static struct sigaction older_action;
static struct syscalls lent;
static bool is_lent;

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
	const int saved_errno = errno;
	const bool is_fault = info->si_code > 0; /* else somebody has sent it */

	(void)context;
	if (!is_fault || !mapping_guards_catch(&process.guards, info->si_addr)) {
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

void process_lend(void)
{
	lent = syscalls_plain;
	lent.names = &process.names;
	lent.commitment = &process.commitment;
	lent.guards = handle_bus_errors() == 0 ? &process.guards : NULL;
	is_lent = true;
}

void process_allow_files(unsigned n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

const struct syscalls *process_calls(void)
{
	return is_lent ? &lent : &syscalls_plain;
}
