/*
 * message_capture - what may fail without harm, and why it has (see message_capture.h)
 */
#include "src/base/message_capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

/* Not for a small stack. */
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
	if (message->kind == MESSAGE_WARNING)
		warn("%s", message->text);
	else
		notice("%s", message->text);
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
