/*
 * timed_run - run a program and say what it cost (see timed_run.h)
 */
#include "tools/bench/timed_run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/base/trace.h"

static uint64_t timeval_to_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static int spawn_program(const char *const *argv, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int error;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv,
				     environ);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

int timed_run(const char *const *argv, struct run_cost *ret_cost)
{
	const uint64_t begin_ns = clock_now_ns();
	struct rusage usage;
	int status, r;
	pid_t pid;

	r = spawn_program(argv, &pid);
	if (r < 0)
		return fail(r, "%s: cannot be started: %m", argv[0]);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return fail(-errno, "%s: cannot wait for it: %m", argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail(-ECHILD, "%s failed: wait status %#x", argv[0], (unsigned)status);
	*ret_cost = (struct run_cost){
		.elapsed_ns = clock_now_ns() - begin_ns,
		.cpu_ns = timeval_to_ns(usage.ru_utime) + timeval_to_ns(usage.ru_stime),
		.peak_rss_nbytes = (uint64_t)usage.ru_maxrss * 1024,
	};
	return 0;
}
