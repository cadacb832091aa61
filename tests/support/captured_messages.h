/*
 * captured_messages.h - capture the messages of the code under test
 *
 * After captured_messages_reset() the messages of the calling thread, and of threads that it
 * starts, are kept and not printed.
 */
#pragma once

#include <stdbool.h>

#include "src/base/diagnostics.h"

/* Capture the messages of the calling thread and forget earlier ones. `quiet` must be true. */
void captured_messages_reset(bool quiet);

/* Capture a message that comes another way, from any thread. */
void captured_messages_add(enum message_kind kind, const char *text);

/* Return whether fail() was called. */
bool captured_messages_has_error(void);

/* Return the text of the first fail(), or "". */
const char *captured_messages_error(void);

/* Return the text of the last warn(), or "". */
const char *captured_messages_warning(void);
