/*
 * peak_space - run a command and hold the disk space that it takes against a limit
 *
 *	peak_space LIMIT_KIB COMMAND [ARGUMENT]...
 *
 * What counts is the space of all regular files that the process has open, with a name or without,
 * each once: its input, its temporary files and its output. It is sampled as often as possible, so
 * a peak can be missed, but none is made up: the command must stay below the limit at any time.
 *
 * Exit status: the command's if that is not 0; else 0 if it kept the limit, 1 if not.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FILES = 256 };

/* Has the file been counted in this sample? If not, it has now. */
static int was_seen(const struct stat *file, struct stat *seen, size_t *n_seen)
{
	for (size_t i = 0; i < *n_seen; i++)
		if (seen[i].st_dev == file->st_dev && seen[i].st_ino == file->st_ino)
			return 1;
	if (*n_seen < MOST_FILES)
		seen[(*n_seen)++] = *file;
	return 0;
}

static long long sample_kib(const char *descriptors)
{
	static struct stat seen[MOST_FILES];
	DIR *directory = opendir(descriptors);
	struct dirent *entry;
	long long n_blocks = 0;
	size_t n_seen = 0;

	while (directory && (entry = readdir(directory))) {
		struct stat file;

		if (fstatat(dirfd(directory), entry->d_name, &file, 0) == 0 &&
		    S_ISREG(file.st_mode) && !was_seen(&file, seen, &n_seen))
			n_blocks += file.st_blocks;
	}
	if (directory)
		closedir(directory);
	return n_blocks / 2;
}

int main(int argc, char **argv)
{
	long long limit_kib, peak_kib = 0;
	char descriptors[64];
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: peak_space LIMIT_KIB COMMAND [ARGUMENT]...\n");
		return 127;
	}
	limit_kib = strtoll(argv[1], NULL, 10);
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0) {
		perror("peak_space");
		return 127;
	}
	snprintf(descriptors, sizeof descriptors, "/proc/%d/fd", (int)pid);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		const long long kib = sample_kib(descriptors);

		peak_kib = kib > peak_kib ? kib : peak_kib;
		usleep(500);
	}
	printf("peak %lld KiB, limit %lld KiB\n", peak_kib, limit_kib);
	if (!WIFEXITED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : peak_kib > limit_kib;
}
