/*
 * transport.h - interface to a library that carries messages between processes
 *
 * Messages are delivered once and whole, or the transport reports an error. Messages with the same
 * sender, receiver and tag are received in the order in which they were sent. A transport need not
 * notice that a process has died or is stopped (see watchdog.h).
 *
 * All functions except `abort_job` are called by the thread that opened the transport. None of them
 * blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct transport;

enum { TRANSPORT_ANY_RANK = -1 };

/*
 * A send or receive in progress. The caller owns it, and neither moves nor frees it until poll()
 * has returned it or the transport is closed.
 */
struct transport_request {
	void *owner; /* for the caller; not used by the transport */
	/* Results of a receive. */
	int peer; /* the sender */
	size_t nbytes;
	bool is_truncated; /* the message was longer than the buffer */
};

struct transport_ops {
	const char *name; /* for messages */
	/* nbytes and capacity fit an int. Tags are from 0 to 0x7fff, as MPI guarantees. */
	int (*send)(struct transport *transport, int to, int tag, const void *data, size_t nbytes,
		    struct transport_request *request);
	int (*receive)(struct transport *transport, int from, int tag, void *data, size_t capacity,
		       struct transport_request *request);
	/* Return a request that is done, in any order, or NULL. */
	int (*poll)(struct transport *transport, struct transport_request **ret_request);
	/*
	 * Return whether the peer has ended and no message of it is left for a posted receive.
	 * NULL: the transport cannot tell.
	 */
	bool (*is_disconnected)(struct transport *transport, int peer);
	/* End all other processes, and this one if possible. Thread-safe, at any time. */
	void (*abort_job)(struct transport *transport, int status);
	/* Cancel posted receives and free the transport. Requires that all sends are done. */
	int (*close)(struct transport *transport);
};

/* The first member of each transport. */
struct transport {
	const struct transport_ops *ops;
	int rank, size;
};

/*
 * Open MPI as a transport (mpi/transport_mpi.c): a transport_open_fn (comm.h). May be called once
 * per process. `argument` is unused.
 */
int transport_mpi_open(void *argument, struct transport **ret_transport);
