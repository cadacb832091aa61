/*
 * hint_text - what helps, in the words of the options
 *
 * Below this folder nobody knows options: a message carries a hint (src/base/hints.h), for which
 * there is a row here.
 */
#pragma once

#include "src/base/diagnostics.h"

/* What the options of the command line have to do with a message: around its text. */
struct message_words {
	const char *before;
	char after[256];
};

void messages_word(const struct message *message, struct message_words *ret_words);
