/*
 * captured_messages.c - capture the messages of the code under test (see captured_messages.h)
 */
#include "tests/support/captured_messages.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/diagnostics.h"

static struct {
	struct diagnostics diagnostics;
	bool quiet;
	char warning[MESSAGE_NBYTES];
} captured;

static void capture_message(void *context, const struct message *message)
{
	(void)context;
	if (message->kind == MESSAGE_WARNING)
		snprintf(captured.warning, sizeof captured.warning, "%s", message->text);
	if (!captured.quiet)
		fprintf(stderr, "%s\n", message->text);
}

void captured_messages_reset(bool quiet)
{
	diagnostics_init(&captured.diagnostics, capture_message, NULL);
	captured.quiet = quiet;
	captured.warning[0] = '\0';
	diagnostics_push(&captured.diagnostics);
}

void captured_messages_add(enum message_kind kind, const char *text)
{
	struct diagnostics *previous = diagnostics_push(&captured.diagnostics);

	if (kind == MESSAGE_ERROR)
		fail(-EIO, "%s", text);
	else if (kind == MESSAGE_WARNING)
		warn("%s", text);
	else
		notice("%s", text);
	diagnostics_push(previous);
}

bool captured_messages_has_error(void)
{
	return captured.diagnostics.failed;
}

const char *captured_messages_error(void)
{
	return captured.diagnostics.text;
}

const char *captured_messages_warning(void)
{
	return captured.warning;
}
