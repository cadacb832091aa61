/*
 * endpoint - files that have no path: a descriptor that is open, or a thread at the other end
 *
 * Where a path can be named, one of these can stand in its place. The path is then what messages
 * call it.
 */
#pragma once

struct handover;

struct given {
	enum {
		GIVEN_PATH,       /* nothing: the path is one */
		GIVEN_DESCRIPTOR, /* fd, used from where it stands; stays open */
		GIVEN_HANDOVER,   /* bytes, in order */
	} kind;
	int fd;
	struct handover *handover;
};
