/*
 * endpoint - an input or output: a path, an open descriptor, or an in-process channel
 *
 * The path is given separately. For descriptors and channels it is the name in messages.
 */
#pragma once

struct rendezvous;

struct endpoint {
	enum {
		ENDPOINT_PATH,       /* the path names it */
		ENDPOINT_DESCRIPTOR, /* fd, used from its position; stays open */
		ENDPOINT_RENDEZVOUS, /* a byte channel between threads */
	} kind;
	int fd;
	struct rendezvous *rendezvous;
};
