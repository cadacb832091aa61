/*
 * run_in_pty - run a command with standard input and standard error at a terminal
 *
 *	run_in_pty FILE COMMAND [ARGUMENT]...
 *
 * Types the contents of FILE, then the end of input. Copies the output of the terminal to standard
 * error. Exits with the status of the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { GIVE_UP_S = 60 };

/* Turn off the echo of the terminal. */
static int be_quiet(int terminal)
{
	struct termios settings;

	if (tcgetattr(terminal, &settings) < 0)
		return -1;
	settings.c_lflag &= ~(tcflag_t)ECHO;
	return tcsetattr(terminal, TCSANOW, &settings);
}

/* Make the terminal that of a new session. */
static void open_controlling_terminal(const char *name)
{
	int fd;

	setsid();
	fd = open(name, O_RDWR);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(127);
	close(fd);
}

static void type_all(int terminal, const char *path)
{
	static const char end[] = { 4, 4 }; /* Ctrl-D twice: the first may only end a line */
	char data[512];
	int file = open(path, O_RDONLY);
	ssize_t n = file < 0 ? -1 : read(file, data, sizeof data); /* the limit of a terminal */

	if (n < 0 || write(terminal, data, (size_t)n) != n ||
	    write(terminal, end, sizeof end) != sizeof end) {
		perror(path);
		exit(127);
	}
	close(file);
}

static void show_all(int terminal)
{
	char data[512];
	ssize_t n;

	/* On Linux, read() fails with EIO after the other side was closed. */
	while ((n = read(terminal, data, sizeof data)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && write(STDERR_FILENO, data, (size_t)n) != n)
			exit(127);
}

int main(int argc, char **argv)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), keeper, status;
	const char *name;
	pid_t pid;

	if (argc < 3 || terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0 ||
	    !(name = ptsname(terminal)) || (keeper = open(name, O_RDWR | O_NOCTTY)) < 0 ||
	    be_quiet(keeper) < 0) {
		fprintf(stderr, "usage: run_in_pty FILE COMMAND [ARGUMENT]...\n");
		return 127;
	}
	pid = fork();
	if (pid == 0) {
		open_controlling_terminal(name);
		close(terminal);
		close(keeper);
		alarm(GIVE_UP_S); /* end a command that waits for more input */
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	type_all(terminal, argv[1]);
	close(keeper);
	show_all(terminal);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
