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

static _Thread_local struct messages *current;

void messages_init(struct messages *messages, messages_listener *listener, void *context)
{
	messages->listener = listener;
	messages->context = context;
	pthread_mutex_init(&messages->lock, NULL);
	messages->failed = false;
	messages->code = 0;
	messages->hint = HINT_NONE;
	messages->number = 0;
	messages->text[0] = '\0';
}

void messages_destroy(struct messages *messages)
{
	pthread_mutex_destroy(&messages->lock);
}

struct messages *messages_enter(struct messages *messages)
{
	struct messages *before = current;

	current = messages;
	return before;
}

struct messages *messages_current(void)
{
	return current;
}

/* Under the lock. */
static void give(const struct messages *messages, const struct message *message)
{
	if (messages->listener)
		messages->listener(messages->context, message);
}

static void say_failure(int r, enum hint hint, uint64_t number, const char *format, va_list args)
{
	struct messages *messages = current;

	if (!messages)
		return;
	pthread_mutex_lock(&messages->lock);
	if (!messages->failed) {
		messages->failed = true;
		messages->code = r;
		messages->hint = hint;
		messages->number = number;
		errno = -r;
		vsnprintf(messages->text, sizeof messages->text, format, args);
		give(messages,
		     &(struct message){ MESSAGE_FAILURE, r, messages->text, hint, number });
	}
	pthread_mutex_unlock(&messages->lock);
}

int fail(int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_failure(r, HINT_NONE, 0, format, args);
	va_end(args);
	return r;
}

int fail_hint(int r, enum hint hint, uint64_t number, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_failure(r, hint, number, format, args);
	va_end(args);
	return r;
}

static void say(enum message_kind kind, enum hint hint, uint64_t number, const char *format,
		va_list args)
{
	struct messages *messages = current;
	char text[MESSAGE_NBYTES];

	if (!messages)
		return;
	vsnprintf(text, sizeof text, format, args);
	pthread_mutex_lock(&messages->lock);
	give(messages, &(struct message){ kind, 0, text, hint, number });
	pthread_mutex_unlock(&messages->lock);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(MESSAGE_WARNING, HINT_NONE, 0, format, args);
	va_end(args);
}

void warn_hint(enum hint hint, uint64_t number, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(MESSAGE_WARNING, hint, number, format, args);
	va_end(args);
}

void tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(MESSAGE_NOTE, HINT_NONE, 0, format, args);
	va_end(args);
}

void detail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(MESSAGE_DETAIL, HINT_NONE, 0, format, args);
	va_end(args);
}
