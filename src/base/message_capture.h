/*
 * message_capture - what may fail without harm, and why it has
 *
 * What is done between begin and end says why it fails to nobody but whoever tries it; what it
 * warns of goes where it went before.
 */
#pragma once

struct message_capture;

/* Why something is done without. */
struct captured_error {
	char *text; /* NULL: nothing was said. For free() */
};

/* Of the calling thread, until message_capture_end(). 0, or -ENOMEM without a message. */
int message_capture_begin(struct message_capture **ret_capture);

void message_capture_end(struct message_capture *capture, struct captured_error *ret_error);
