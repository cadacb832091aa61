/*
 * comm - the ranks of a job and the messages between them
 *
 * A job has `size` processes on one or more machines. Each is a rank, numbered from 0. Ranks send
 * each other messages and take part in collectives, which are built from messages (collectives.c).
 * A transport carries the messages (transport.h): MPI (mpi/transport_mpi.h), or a test's.
 *
 *	threads of the job             the progress thread               the transport
 *	comm_send()    --queue-->      begins sends and receives   -->   send, receive
 *	comm_receive()                 watches for silent ranks    <--   poll
 *	comm_wait()    <--done---
 *
 * The progress thread is the only thread that calls the transport. So messages make progress while
 * the job computes, and a library that supports only one thread will do. It sleeps between calls,
 * for 50 to 500 us if anything is in progress, because waits inside MPI spin.
 *
 * A rank from which something is awaited is asked for a sign of life when it has been silent for a
 * quarter of `timeout_ns`. At `timeout_ns` the job fails with a message that names the rank
 * (heartbeat.h). If the caller does not end the process then, or the transport never returns, the
 * process is ended for it (watchdog.h).
 *
 * After a failure the only thing left to do is comm_abort(), since other ranks wait for this one.
 * An error is returned when the progress thread has stopped: it no longer touches transfers and
 * their memory, so the caller may free both. A caller that fails for a reason of its own calls
 * comm_fail() first if it has transfers in progress.
 *
 * Any thread may call these functions, unless stated otherwise. Errors are negative errnos,
 * reported once; the first one is what all later calls return.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/comm/transport.h"

struct comm;

enum { COMM_HOST_NBYTES = 64 }; /* of a machine's name, with its end */

/* What a process has once, and how patient it is. */
struct comm_params {
	uint64_t timeout_ns; /* as of comm_set_timeout() */
	/*
	 * Ending all ranks may take so long, and so does after a failure a fifth of it until that
	 * is begun here; 0: 5 s.
	 */
	uint64_t abort_timeout_ns;
	size_t fragment_nbytes; /* longer messages are split for the transport; 0: 32 MiB */
	const char *version;    /* all ranks must have the same; below 48 bytes; NULL: gsort's */
	/*
	 * Called once, by any thread, before all ranks are ended: last chance to remove what
	 * others would find. May be NULL.
	 */
	void (*before_abort)(void *context);
	void *context;
	/*
	 * From now on other processes of this user may read the memory of this one, also where the
	 * system wants that said for each; or no more. May be NULL.
	 */
	void (*allow_peer_access)(bool is_allowed);
	/* End the process at once, with nothing done at its exit. */
	void (*exit_process)(int status) __attribute__((noreturn));
};

/*
 * Opens what carries the bytes, in the thread that will be the only one to use it, and which has
 * the messages of who calls comm_open(). Returns 0 or a negative errno, said by fail().
 */
typedef int transport_open_fn(void *argument, struct transport **ret_transport);

/*
 * Every rank calls it, and waits for all others; they must be of one version and byte order. The
 * caller's to close. Returns 0 or a negative errno.
 */
int comm_open(const struct comm_params *params, transport_open_fn *transport_open,
	      void *transport_argument, struct comm **ret_comm);

/*
 * Every rank calls it, and waits for all others. Nothing may be under way but receives that
 * nothing was sent for: they are forgotten. Not after a failure: comm_abort(). Returns 0 or a
 * negative errno (then comm_abort()). NULL is fine.
 */
int comm_close(struct comm *comm);

/*
 * From now on a rank that is awaited is given up when it has been silent for so long, and so is
 * what carries messages when it does not return; 0: never.
 */
void comm_set_timeout(struct comm *comm, uint64_t timeout_ns);

/* As the settings have it. */
void comm_allow_peer_access(const struct comm *comm, bool is_allowed);

unsigned comm_rank(const struct comm *comm);
unsigned comm_size(const struct comm *comm);

/* The name of the machine that a rank is on; as long as `ranks`. */
const char *comm_host(const struct comm *comm, unsigned rank);

/* How many ranks are on this one's machine, with it; *ret_first: the first of them. */
unsigned comm_host_size(const struct comm *comm, unsigned *ret_first);

/*
 * Collectives: every rank calls the same ones in the same order, a thread at a time. They return 0
 * or a negative errno.
 */

/* The bytes of `root` become everybody's. */
int comm_broadcast(struct comm *comm, void *data, size_t nbytes, unsigned root);

/* nbytes of every rank, by rank. `mine` may be its own place in ret_data. */
int comm_allgather(struct comm *comm, const void *own_data, size_t nbytes, void *ret_data);

/*
 * The same, when ranks have different numbers of bytes: ret_sizes[] of each. *ret_data is the
 * caller's to free.
 */
int comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
		    size_t *ret_sizes);

/* Each value becomes the sum of all ranks' values, modulo 2^64. */
int comm_allreduce_sum(struct comm *comm, uint64_t *values, size_t count);

/*
 * `count` rows of `width` words each: row i becomes that of all ranks' rows i of which the first
 * word is least; of several such, any, but the same everywhere.
 */
int comm_allreduce_min(struct comm *comm, uint64_t *rows, size_t count, size_t width);

/* Nobody returns before all have called it. */
int comm_barrier(struct comm *comm);

enum { COMM_ANY_RANK = 0x7fffffff /* receive from whoever sends */ };

/*
 * A message in progress. The caller owns it, and neither moves nor frees it or its data until it
 * is done. The first two members are results; the others belong to comm.c.
 */
struct comm_transfer {
	unsigned from; /* of a receive: the sender */
	size_t nbytes; /* and the number of bytes received */

	struct comm_transfer *next;
	unsigned peer, tag;
	char *data;
	size_t capacity;
	struct transport_request request;    /* of a message that is not split */
	struct transport_request *fragments; /* of others */
	size_t n_pending;                    /* requests that are not done */
	struct comm_waiter *waiter;          /* NULL: no thread waits for it */
	bool is_receive, is_unwatched, may_be_shorter, is_done;
};

/*
 * Begin to send nbytes, which may be 0, with a tag (tags.h). Messages with the same tag arrive in
 * the order in which they were sent; those with different tags can be received in any order. A
 * rank may send to itself. `data` must not change until the transfer is done.
 */
int comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
	      struct comm_transfer *ret_transfer);

/*
 * Begin to receive a message of nbytes with this tag. A message of another length fails the job
 * (-EMSGSIZE). from: may be COMM_ANY_RANK if nbytes is at most fragment_nbytes.
 */
int comm_receive(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes,
		 struct comm_transfer *ret_transfer);

/* Begin to receive a message of up to `capacity` bytes, which is at most fragment_nbytes. */
int comm_receive_up_to(struct comm *comm, unsigned from, unsigned tag, void *data, size_t capacity,
		       struct comm_transfer *ret_transfer);

/*
 * Begin to receive a message that may come at any time, or never: its sender is neither asked for a
 * sign of life nor missed because of it.
 */
int comm_receive_unwatched(struct comm *comm, unsigned from, unsigned tag, void *data,
			   size_t nbytes, struct comm_transfer *ret_transfer);

/* Bytes of messages between this rank and others so far. */
struct comm_traffic {
	uint64_t sent_nbytes, received_nbytes;
};
void comm_get_traffic(const struct comm *comm, struct comm_traffic *ret_traffic);

/* Is it done? Returns at once. */
int comm_test(struct comm *comm, struct comm_transfer *transfer, bool *ret_done);

/* Wait until it is done. Costs no processor time. */
int comm_wait(struct comm *comm, struct comm_transfer *transfer);

/* The same, but at most until then (clock_now_ns()). Is it done? */
int comm_wait_until(struct comm *comm, struct comm_transfer *transfer, uint64_t until_ns,
		    bool *ret_done);

/*
 * This rank has failed with r, which is what all later calls return: nothing is under way any more,
 * as after any error. Returns r, or the error of what has failed before. If comm_abort() is not
 * called then within a fifth of abort_timeout_ns, that is done here.
 */
int comm_fail(struct comm *comm, int r);

/*
 * What looks like a fault here may follow from another rank's failure, which ends this process
 * soon: waits as long as that may take (abort_timeout_ns). Returns the error of what has failed
 * meanwhile, or 0: nothing has.
 */
int comm_wait_remote_failure(struct comm *comm);

/*
 * End this process, and all others of the job, with this status. What was said by fail() is the
 * reason.
 */
_Noreturn void comm_abort(struct comm *comm, int status);
