/*
 * print_diagnostics - messages, as lines on standard error (see print_diagnostics.h)
 */
#include "tools/cli/print_diagnostics.h"

#include <stdio.h>

#include "src/base/quote.h"
#include "src/options/hint_text.h"

static struct {
	struct messages messages;
	const char *program;
	char line[LEGIBLE_NBYTES(MESSAGE_NBYTES)];
} printer;

static void print(void *context, const struct message *message)
{
	struct message_words words;

	(void)context;
	legible(message->text, printer.line, sizeof printer.line);
	if (message->kind == MESSAGE_DETAIL) {
		fprintf(stderr, "%s\n", printer.line);
		return;
	}
	messages_word(message, &words);
	fprintf(stderr, "%s: %s%s%s%s\n", printer.program,
		message->kind == MESSAGE_WARNING ? "warning: " : "", words.before, printer.line,
		words.after);
}

void messages_print_as(const char *program)
{
	printer.program = program;
	messages_init(&printer.messages, print, NULL);
	messages_enter(&printer.messages);
}
