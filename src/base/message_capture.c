/*
 * message_capture - what may fail without harm, and why it has (see message_capture.h)
 */
#include "src/base/message_capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

/* Not for a small stack. */
struct attempt {
	struct messages messages, *before;
};

static void pass_on(void *context, const struct message *message)
{
	const struct attempt *attempt = context;
	struct messages *own;

	if (message->kind == MESSAGE_FAILURE)
		return;
	own = messages_enter(attempt->before);
	if (message->kind == MESSAGE_WARNING)
		warn_hint(message->hint, message->number, "%s", message->text);
	else
		tell("%s", message->text);
	messages_enter(own);
}

int attempt_begin(struct attempt **ret_attempt)
{
	struct attempt *attempt = malloc(sizeof *attempt);

	if (!attempt)
		return -ENOMEM;
	messages_init(&attempt->messages, pass_on, attempt);
	attempt->before = messages_enter(&attempt->messages);
	*ret_attempt = attempt;
	return 0;
}

void attempt_end(struct attempt *attempt, struct reason *ret_reason)
{
	const struct messages *said = &attempt->messages;

	messages_enter(attempt->before);
	*ret_reason = (struct reason){ .text = said->failed ? strdup(said->text) : NULL,
				       .hint = said->hint,
				       .number = said->number };
	messages_destroy(&attempt->messages);
	free(attempt);
}
