/*
 * measure_command - run a command and write its CPU time and memory
 *
 *	measure_command FILE COMMAND [ARGUMENT]...
 *
 * Writes one line to FILE: CPU time in microseconds and peak resident size in KiB, as measured by
 * the kernel. Exits with the status of the command.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long to_microseconds(struct timeval time)
{
	return (long long)time.tv_sec * 1000000 + time.tv_usec;
}

int main(int argc, char **argv)
{
	FILE *file = argc < 3 ? NULL : fopen(argv[1], "w");
	struct rusage usage;
	int status;
	pid_t pid;

	if (!file) {
		fprintf(stderr, "usage: measure_command FILE COMMAND [ARGUMENT]...\n");
		return 127;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("measure_command");
		return 127;
	}
	fprintf(file, "%lld %ld\n",
		to_microseconds(usage.ru_utime) + to_microseconds(usage.ru_stime), usage.ru_maxrss);
	fclose(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
