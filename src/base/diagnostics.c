/*
 * diagnostics.c - report errors, warnings and notices of a job (see diagnostics.h)
 *
 * The diagnostics of the current thread are the only mutable state of the library that is not in a
 * struct of a job. Passing them as an argument would concern nearly every function, with the same
 * value throughout a job.
 */
#include "src/base/diagnostics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct diagnostics *current_diagnostics;

void diagnostics_init(struct diagnostics *diagnostics, message_callback *callback, void *context)
{
	diagnostics->callback = callback;
	diagnostics->context = context;
	pthread_mutex_init(&diagnostics->lock, NULL);
	diagnostics->failed = false;
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

/* Call with the lock held. */
static void emit_message(const struct diagnostics *diagnostics, const struct message *message)
{
	if (diagnostics->callback)
		diagnostics->callback(diagnostics->context, message);
}

int fail(int r, const char *format, ...)
{
	struct diagnostics *diagnostics = current_diagnostics;
	va_list args;

	if (!diagnostics)
		return r;
	va_start(args, format);
	pthread_mutex_lock(&diagnostics->lock);
	if (!diagnostics->failed) {
		char *text = diagnostics->text;
		size_t n;

		diagnostics->failed = true;
		errno = -r;
		vsnprintf(text, MESSAGE_NBYTES, format, args);
		n = strlen(text);
		/* A relayed error has the hint already. */
		if (r == -EMFILE && !strstr(text, "ulimit"))
			snprintf(text + n, MESSAGE_NBYTES - n,
				 "; ulimit -n raises the limit on open files");
		emit_message(diagnostics, &(struct message){ MESSAGE_ERROR, text });
	}
	pthread_mutex_unlock(&diagnostics->lock);
	va_end(args);
	return r;
}

void message_report(enum message_kind kind, const char *format, ...)
{
	struct diagnostics *diagnostics = current_diagnostics;
	char text[MESSAGE_NBYTES];
	va_list args;

	if (!diagnostics)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&diagnostics->lock);
	emit_message(diagnostics, &(struct message){ kind, text });
	pthread_mutex_unlock(&diagnostics->lock);
}

/* Too large for the stack of a thread (thread.c): allocated. */
struct message_capture {
	struct diagnostics diagnostics, *previous;
};

static void relay_message(void *context, const struct message *message)
{
	const struct message_capture *capture = context;
	struct diagnostics *capturing;

	if (message->kind == MESSAGE_ERROR)
		return;
	capturing = diagnostics_push(capture->previous);
	message_report(message->kind, "%s", message->text);
	diagnostics_push(capturing);
}

int message_capture_begin(struct message_capture **ret_capture)
{
	struct message_capture *capture = malloc(sizeof *capture);

	if (!capture)
		return -ENOMEM;
	diagnostics_init(&capture->diagnostics, relay_message, capture);
	capture->previous = diagnostics_push(&capture->diagnostics);
	*ret_capture = capture;
	return 0;
}

void message_capture_end(struct message_capture *capture, struct captured_error *ret_error)
{
	const struct diagnostics *diagnostics = &capture->diagnostics;

	diagnostics_push(capture->previous);
	*ret_error = (struct captured_error){ .text = diagnostics->failed ?
							      strdup(diagnostics->text) :
							      NULL };
	diagnostics_destroy(&capture->diagnostics);
	free(capture);
}
