/*
 * messages - the error vocabulary (see messages.h)
 *
 * The only mutable global state of gsort lives here: the program's name, and whether its one line
 * has been printed.
 */
#include "src/base/messages.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/legible.h"

/* Of a message: two of the longest names, and what is said of them. */
enum { MESSAGE_NBYTES = 9216 };

static struct {
	pthread_mutex_t lock;
	const char *program;
	bool failed;
	bool quiet;
	bool muted;
	char last[MESSAGE_NBYTES], last_warning[MESSAGE_NBYTES];
	char line[LEGIBLE_NBYTES(MESSAGE_NBYTES)]; /* that is being printed */
} status = { .lock = PTHREAD_MUTEX_INITIALIZER, .program = "gsort" };

void messages_set_program(const char *name)
{
	status.program = name;
}

/* Under the lock. */
static void print(const char *prefix, const char *text)
{
	if (!status.quiet && !status.muted)
		fprintf(stderr, "%s: %s%s\n", status.program, prefix,
			legible(text, status.line, sizeof status.line));
}

int fail(int r, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&status.lock);
	if (!status.failed) {
		va_start(args, format);
		errno = -r;
		vsnprintf(status.last, sizeof status.last, format, args);
		va_end(args);
		status.failed = !status.muted;
		if (status.failed)
			print("", status.last);
	}
	pthread_mutex_unlock(&status.lock);
	return r;
}

void warn(const char *format, ...)
{
	char text[sizeof status.last_warning];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&status.lock);
	print("warning: ", text);
	if (!status.muted)
		strcpy(status.last_warning, text);
	pthread_mutex_unlock(&status.lock);
}

void tell(const char *format, ...)
{
	char text[MESSAGE_NBYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&status.lock);
	print("", text);
	pthread_mutex_unlock(&status.lock);
}

void messages_mute(bool muted)
{
	pthread_mutex_lock(&status.lock);
	status.muted = muted;
	pthread_mutex_unlock(&status.lock);
}

bool messages_failed(void)
{
	bool failed;

	pthread_mutex_lock(&status.lock);
	failed = status.failed;
	pthread_mutex_unlock(&status.lock);
	return failed;
}

void messages_reset(bool quiet)
{
	pthread_mutex_lock(&status.lock);
	status.failed = false;
	status.quiet = quiet;
	status.last[0] = '\0';
	status.last_warning[0] = '\0';
	pthread_mutex_unlock(&status.lock);
}

const char *messages_last(void)
{
	return status.last;
}

const char *messages_last_warning(void)
{
	return status.last_warning;
}
