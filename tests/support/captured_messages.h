/*
 * captured_messages - what the code under test says, for the test to look at
 *
 * What the calling thread says after captured_messages_reset(), and those say that it starts, is
 * kept and not printed.
 */
#pragma once

#include <stdbool.h>

#include "src/base/diagnostics.h"

/*
 * Hear the calling thread, and forget what was heard before: nothing has failed, there was no
 * warning. quiet: true; what is heard is not printed.
 */
void captured_messages_reset(bool quiet);

/* The same is said to it by another way, from any thread. */
void captured_messages_add(enum message_kind kind, const char *text);

/* Has fail() been called? */
bool captured_messages_has_error(void);

/* The text of the first fail(); "" if none. */
const char *captured_messages_error(void);

/* The text of the last warn(); "" if none. */
const char *captured_messages_warning(void);
