/*
 * print_diagnostics - messages, as lines on standard error (see print_diagnostics.h)
 */
#include "tools/cli/print_diagnostics.h"

#include <stdio.h>

#include "src/base/text.h"

static struct {
	struct diagnostics messages;
	const char *program;
	char line[QUOTED_NBYTES(MESSAGE_NBYTES)];
} printer;

static void print_diagnostic(void *context, const struct message *message)
{
	(void)context;
	quote_text(message->text, printer.line, sizeof printer.line);
	if (message->kind == MESSAGE_DEBUG) {
		fprintf(stderr, "%s\n", printer.line);
		return;
	}
	fprintf(stderr, "%s: %s%s\n", printer.program,
		message->kind == MESSAGE_WARNING ? "warning: " : "", printer.line);
}

void print_diagnostics_as(const char *program)
{
	printer.program = program;
	diagnostics_init(&printer.messages, print_diagnostic, NULL);
	diagnostics_push(&printer.messages);
}
