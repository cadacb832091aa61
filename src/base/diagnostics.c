/*
 * diagnostics - the error vocabulary, and who hears what is said (see diagnostics.h)
 *
 * Whose messages a thread's are is the only state here, and each thread's own. It could be handed
 * to every function that can fail, which are nearly all; but it is the same for all of a job.
 */
#include "src/base/diagnostics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct diagnostics *current_diagnostics;

void diagnostics_init(struct diagnostics *diagnostics, message_callback *callback, void *context)
{
	diagnostics->callback = callback;
	diagnostics->context = context;
	pthread_mutex_init(&diagnostics->lock, NULL);
	diagnostics->failed = false;
	diagnostics->error = 0;
	diagnostics->text[0] = '\0';
}

void diagnostics_destroy(struct diagnostics *diagnostics)
{
	pthread_mutex_destroy(&diagnostics->lock);
}

struct diagnostics *diagnostics_push(struct diagnostics *diagnostics)
{
	struct diagnostics *previous = current_diagnostics;

	current_diagnostics = diagnostics;
	return previous;
}

struct diagnostics *diagnostics_current(void)
{
	return current_diagnostics;
}

/* Under the lock. */
static void emit_message(const struct diagnostics *diagnostics, const struct message *message)
{
	if (diagnostics->callback)
		diagnostics->callback(diagnostics->context, message);
}

/* Append the advice about the limit on open files, unless the text is a relayed error with it. */
static void append_file_limit_advice(char text[static MESSAGE_NBYTES])
{
	const size_t n = strlen(text);

	if (!strstr(text, "ulimit"))
		snprintf(text + n, MESSAGE_NBYTES - n,
			 "; ulimit -n raises the limit on open files");
}

static void report_error(int r, const char *format, va_list args)
{
	struct diagnostics *diagnostics = current_diagnostics;

	if (!diagnostics)
		return;
	pthread_mutex_lock(&diagnostics->lock);
	if (!diagnostics->failed) {
		diagnostics->failed = true;
		diagnostics->error = r;
		errno = -r;
		vsnprintf(diagnostics->text, sizeof diagnostics->text, format, args);
		if (r == -EMFILE)
			append_file_limit_advice(diagnostics->text);
		emit_message(diagnostics, &(struct message){ MESSAGE_ERROR, r, diagnostics->text });
	}
	pthread_mutex_unlock(&diagnostics->lock);
}

int fail(int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_error(r, format, args);
	va_end(args);
	return r;
}

static void report_message(enum message_kind kind, const char *format, va_list args)
{
	struct diagnostics *diagnostics = current_diagnostics;
	char text[MESSAGE_NBYTES];

	if (!diagnostics)
		return;
	vsnprintf(text, sizeof text, format, args);
	pthread_mutex_lock(&diagnostics->lock);
	emit_message(diagnostics, &(struct message){ kind, 0, text });
	pthread_mutex_unlock(&diagnostics->lock);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_message(MESSAGE_WARNING, format, args);
	va_end(args);
}

void notice(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_message(MESSAGE_NOTICE, format, args);
	va_end(args);
}

void debug_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report_message(MESSAGE_DEBUG, format, args);
	va_end(args);
}
