/*
 * status - the error vocabulary (see status.h)
 *
 * The only mutable global state of gsort lives here: the program's name, and whether its one line
 * has been printed.
 */
#include "src/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
	pthread_mutex_t lock;
	const char *program;
	bool failed;
	bool quiet;
	bool muted;
	char last[1024];
} status = { .lock = PTHREAD_MUTEX_INITIALIZER, .program = "gsort" };

void status_set_program(const char *name)
{
	status.program = name;
}

int fail(int r, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&status.lock);
	if (!status.failed && !status.muted) {
		status.failed = true;
		va_start(args, format);
		errno = -r;
		vsnprintf(status.last, sizeof status.last, format, args);
		va_end(args);
		if (!status.quiet)
			fprintf(stderr, "%s: %s\n", status.program, status.last);
	}
	pthread_mutex_unlock(&status.lock);
	return r;
}

/* A line that is no failure. */
static void print(const char *prefix, const char *format, va_list args)
{
	char text[1024];

	vsnprintf(text, sizeof text, format, args);
	pthread_mutex_lock(&status.lock);
	if (!status.quiet && !status.muted)
		fprintf(stderr, "%s: %s%s\n", status.program, prefix, text);
	pthread_mutex_unlock(&status.lock);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("warning: ", format, args);
	va_end(args);
}

void tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("", format, args);
	va_end(args);
}

void status_mute(bool muted)
{
	pthread_mutex_lock(&status.lock);
	status.muted = muted;
	pthread_mutex_unlock(&status.lock);
}

bool status_failed(void)
{
	bool failed;

	pthread_mutex_lock(&status.lock);
	failed = status.failed;
	pthread_mutex_unlock(&status.lock);
	return failed;
}

void status_reset(bool quiet)
{
	pthread_mutex_lock(&status.lock);
	status.failed = false;
	status.quiet = quiet;
	status.last[0] = '\0';
	pthread_mutex_unlock(&status.lock);
}

const char *status_last(void)
{
	return status.last;
}
