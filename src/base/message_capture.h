/*
 * message_capture - what may fail without harm, and why it has
 *
 * What is done between begin and end says why it fails to nobody but whoever tries it; what it
 * warns of goes where it went before.
 */
#pragma once

#include <stdint.h>

#include "src/base/hints.h"

struct attempt;

/* Why something is done without. */
struct reason {
	char *text; /* NULL: nothing was said. For free() */
	enum hint hint;
	uint64_t number;
};

/* Of the calling thread, until attempt_end(). 0, or -ENOMEM without a message. */
int attempt_begin(struct attempt **ret_attempt);

void attempt_end(struct attempt *attempt, struct reason *ret_reason);
