/*
 * transport - what carries bytes from one process to another
 *
 * A row for each way to do it. Messages between two processes that have the same tag arrive in
 * order, or there is an error; nothing else is asked of it: whether what arrives is right is seen
 * by others (message_header.h), and it need not notice that a process is gone (heartbeat.h).
 *
 * All functions but `abort_transport` are called by one thread, the one that opened it, and none
 * of them waits. They return 0 or a negative errno, said by fail().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct transport;

enum {
	TRANSPORT_ANY_RANK = -1,       /* receive from whoever sends */
	TRANSPORT_TAG_LIMIT = 1 << 15, /* tags are below it: MPI promises so many */
	TRANSPORT_MAX_NBYTES = 1 << 30 /* of one message: counts of MPI are int */
};

/* A message of the transport under way; its owner's, and stays where it is until it is taken. */
struct transport_request {
	int peer;      /* of a receive that is taken: who sent it */
	size_t nbytes; /* and how much it is */
};

struct transport_ops {
	const char *name; /* for people */
	int (*send)(struct transport *transport, int to, int tag, const void *data, size_t nbytes,
		    struct transport_request *request);
	int (*receive)(struct transport *transport, int from, int tag, void *data, size_t capacity,
		       struct transport_request *request);
	/* One that is done, in any order; NULL if there is none now. */
	int (*poll)(struct transport *transport, struct transport_request **ret_request);
	/* Has it gone, and left nothing that is being received? NULL: that is never known. */
	bool (*is_disconnected)(struct transport *transport, int peer);
	/* End the other processes, and this one if it can. Any thread, at any time. */
	void (*abort_job)(struct transport *transport, int status);
	/* Everything that was sent is done; receives are given up. The transport is freed. */
	int (*close)(struct transport *transport);
};

/* The beginning of each. */
struct transport {
	const struct transport_ops *ops;
	int rank, size;
};
