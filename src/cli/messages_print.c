/*
 * messages_print - messages, as lines on standard error (see messages_print.h)
 */
#include "src/cli/messages_print.h"

#include <stdio.h>

#include "src/base/legible.h"
#include "src/base/messages.h"

static struct {
	struct messages messages;
	const char *program;
	char line[LEGIBLE_NBYTES(MESSAGE_NBYTES)];
} printer;

static void print(void *context, const struct message *message)
{
	(void)context;
	fprintf(stderr, "%s: %s%s\n", printer.program,
		message->kind == MESSAGE_WARNING ? "warning: " : "",
		legible(message->text, printer.line, sizeof printer.line));
}

void messages_print_as(const char *program)
{
	printer.program = program;
	messages_init(&printer.messages, print, NULL);
	messages_enter(&printer.messages);
}
