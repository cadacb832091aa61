/*
 * captured_messages - what the code under test says, for the test to look at (see captured_messages.h)
 */
#include "tests/support/captured_messages.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/diagnostics.h"

static struct {
	struct messages messages;
	bool quiet;
	char warning[MESSAGE_NBYTES];
	enum hint warning_hint;
} heard;

static void hear(void *context, const struct message *message)
{
	(void)context;
	if (message->kind == MESSAGE_WARNING) {
		snprintf(heard.warning, sizeof heard.warning, "%s", message->text);
		heard.warning_hint = message->hint;
	}
	if (!heard.quiet)
		fprintf(stderr, "%s\n", message->text);
}

void messages_reset(bool quiet)
{
	messages_init(&heard.messages, hear, NULL);
	heard.quiet = quiet;
	heard.warning[0] = '\0';
	heard.warning_hint = HINT_NONE;
	messages_enter(&heard.messages);
}

void messages_keep(enum message_kind kind, const char *text)
{
	struct messages *before = messages_enter(&heard.messages);

	if (kind == MESSAGE_FAILURE)
		fail(-EIO, "%s", text);
	else if (kind == MESSAGE_WARNING)
		warn("%s", text);
	else
		tell("%s", text);
	messages_enter(before);
}

bool messages_failed(void)
{
	return heard.messages.failed;
}

const char *messages_last(void)
{
	return heard.messages.text;
}

enum hint messages_last_hint(void)
{
	return heard.messages.hint;
}

uint64_t messages_last_number(void)
{
	return heard.messages.number;
}

const char *messages_last_warning(void)
{
	return heard.warning;
}

enum hint messages_last_warning_hint(void)
{
	return heard.warning_hint;
}
