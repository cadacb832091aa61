/*
 * endpoint - files that have no path: a descriptor that is open, or a thread at the other end
 *
 * Where a path can be named, one of these can stand in its place. The path is then what messages
 * call it.
 */
#pragma once

struct rendezvous;

struct endpoint {
	enum {
		ENDPOINT_PATH,       /* nothing: the path is one */
		ENDPOINT_DESCRIPTOR, /* fd, used from where it stands; stays open */
		ENDPOINT_RENDEZVOUS, /* bytes, in order */
	} kind;
	int fd;
	struct rendezvous *rendezvous;
};
