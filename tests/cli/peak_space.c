/*
 * peak_space - run a command and compare the disk space that it uses with a limit
 *
 *	peak_space LIMIT_KIB COMMAND [ARGUMENT]...
 *
 * The space is that of all regular files that the process has open, with or without names: its
 * input, its temporary files and its output, each once. It is measured inside the process before
 * space is released (peak_space_hooks.c), so the result is the exact peak on a busy machine, too.
 *
 * Exit status: that of the command if it is not 0; otherwise 0 within the limit, and 1 above it.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(char **command, int report)
{
	char self[4096] = "", hooks[4200], number[16];

	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		_exit(127);
	snprintf(hooks, sizeof hooks, "%s/libpeak_space_hooks.so", dirname(self));
	snprintf(number, sizeof number, "%d", report);
	setenv("LD_PRELOAD", hooks, 1);
	setenv("PEAK_SPACE_FD", number, 1);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	long long limit_kib, peak_kib = -1;
	int status, ends[2];
	FILE *report;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: peak_space LIMIT_KIB COMMAND [ARGUMENT]...\n");
		return 127;
	}
	limit_kib = strtoll(argv[1], NULL, 10);
	if (pipe(ends) < 0 || (pid = fork()) < 0) {
		perror("peak_space");
		return 127;
	}
	if (pid == 0)
		run(argv + 2, ends[1]);
	close(ends[1]);
	report = fdopen(ends[0], "r");
	if (!report || fscanf(report, "%lld", &peak_kib) != 1)
		fprintf(stderr, "peak_space: the command reported nothing\n");
	if (waitpid(pid, &status, 0) < 0)
		return 127;
	printf("peak %lld KiB, limit %lld KiB\n", peak_kib, limit_kib);
	if (!WIFEXITED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : peak_kib < 0 || peak_kib > limit_kib;
}
