/*
 * hint_text - what helps, in the words of the options
 *
 * Below this folder nobody knows options: a message carries a hint (src/base/message_hints.h),
 * for which there is a row here.
 */
#pragma once

#include "src/base/diagnostics.h"

/* What the options of the command line have to do with a message: around its text. */
struct hint_text {
	const char *prefix;
	char suffix[256];
};

void hint_text_get(const struct message *message, struct hint_text *ret_text);
