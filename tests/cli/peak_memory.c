/*
 * peak_memory - run a command and compare its peak resident size with a limit
 *
 *	peak_memory LIMIT_KIB COMMAND [ARGUMENT]...
 *
 * Exit status: that of the command if it is not 0; otherwise 0 within the limit, and 1 above it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char **argv)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("peak_memory");
		return 127;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	long limit_kib;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: peak_memory LIMIT_KIB COMMAND [ARGUMENT]...\n");
		return 127;
	}
	limit_kib = strtol(argv[1], NULL, 10);
	status = run(argv + 2);
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("peak %ld KiB, limit %ld KiB\n", usage.ru_maxrss, limit_kib);
	if (status != 0)
		return status;
	return usage.ru_maxrss > limit_kib;
}
