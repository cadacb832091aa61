/*
 * comm.h - the ranks of a job and the messages between them
 *
 * A job has `size` processes on one or more machines. Each is a rank, numbered from 0. Ranks send
 * each other messages and take part in collectives, which are built from messages (collectives.c).
 * A transport carries the messages (transport.h): MPI (mpi/transport_mpi.c), or a test's.
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
 * (watchdog.h). If the caller does not end the process then, or the transport never returns, the
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

#include "src/base/stats.h"
#include "src/comm/transport.h"

struct comm;

/*
 * The tags of all messages. Each kind of message has its own tag, so that modules which communicate
 * at the same time do not receive each other's messages.
 */
enum comm_tag {
	COMM_TAG_COLLECTIVES = 1,  /* collectives.c */
	COMM_TAG_PEER_MEMORY,      /* handshakes on a host (peer_memory.c) */
	COMM_TAG_PROGRESS,         /* queries of rank 0 and replies (rank_progress.c) */
	COMM_TAG_TRACE,            /* clock readings and traces, to rank 0 */
	COMM_TAG_RANK_STATS,       /* summaries, to rank 0 (rank_stats.c) */
	COMM_TAG_PARTITION_BOUNDS, /* to the previous rank: where the sender's partition begins */
	COMM_TAG_SEGMENT_DESCS,    /* to each rank: the segments that follow (all_to_all.c) */
	COMM_TAG_SEGMENTS,         /* those segments */
	COMM_TAG_REQUESTS,         /* to the servers of a rank (remote_runs.c) */
	COMM_TAG_STRIPES,          /* bytes of a stripe of the output, to its writer */
	COMM_TAG_RESPONSES,        /* from a server to the reader; the first of many */
	COMM_TAG_LIMIT = 0x7fff,   /* all tags but the next are less */
	COMM_TAG_HEARTBEAT = COMM_TAG_LIMIT, /* comm.c; the largest tag that MPI guarantees */
};

enum { COMM_HOST_NBYTES = 64 }; /* of a host name, with its NUL */

struct comm_params {
	uint64_t timeout_ns; /* see comm_set_timeout(); also bounds comm_open() */
	/*
	 * The time after which a process that comm_abort() has not ended is ended; 0: 5 s. After a
	 * failure the caller has a fifth of this time to call comm_abort().
	 */
	uint64_t abort_timeout_ns;
	size_t fragment_nbytes; /* longer messages are split for the transport; 0: 32 MiB */
	const char *version;    /* the same on all ranks; at most 47 bytes; NULL: gsort's */
	/*
	 * Called once, by any thread, before the job is aborted: the last chance to remove
	 * temporary files. May be NULL.
	 */
	void (*before_abort)(void *context);
	void *context;
	/*
	 * Allow other processes of this user to read the memory of this one, or stop allowing it.
	 * May be NULL.
	 */
	void (*allow_peer_access)(bool is_allowed);
	/* End the process at once, without exit handlers. */
	void (*exit_process)(int status) __attribute__((noreturn));
};

/*
 * Open the transport. Called by the thread that will be the only one to use it, with the
 * diagnostics of the caller of comm_open().
 */
typedef int transport_open_fn(void *argument, struct transport **ret_transport);

/*
 * Collective. Start the ranks' communication. All ranks must have the same version and byte order.
 * Fails after the timeout if a rank is missing.
 */
int comm_open(const struct comm_params *params, transport_open_fn *transport_open,
	      void *transport_argument, struct comm **ret_comm);

/*
 * Collective. Only receives for which nothing is sent may be in progress; they are cancelled. After
 * a failure call comm_abort() instead, also if this function fails. NULL is ignored.
 */
int comm_close(struct comm *comm);

/*
 * Fail a rank from which something is awaited after it was silent for timeout_ns. The same limit
 * applies to a call of the transport. 0: never.
 */
void comm_set_timeout(struct comm *comm, uint64_t timeout_ns);

/* Call comm_params.allow_peer_access. */
void comm_allow_peer_access(const struct comm *comm, bool is_allowed);

unsigned comm_rank(const struct comm *comm);
unsigned comm_size(const struct comm *comm);

/* Return the host name of a rank. Valid as long as the comm. */
const char *comm_host(const struct comm *comm, unsigned rank);

/* Return the number of ranks on this host, this one included. *ret_first: the lowest of them. */
unsigned comm_host_size(const struct comm *comm, unsigned *ret_first);

/* Collectives: every rank calls the same ones in the same order, one thread at a time. */

/* Copy the data of rank 0 to all ranks. */
int comm_broadcast(struct comm *comm, void *data, size_t nbytes);

/* Gather nbytes of every rank, by rank. own_data may be the rank's own place in ret_data. */
int comm_allgather(struct comm *comm, const void *own_data, size_t nbytes, void *ret_data);

/*
 * Like comm_allgather(), with a different size on each rank: ret_sizes[rank]. Free *ret_data with
 * free().
 */
int comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
		    size_t *ret_sizes);

/* Replace each value by the sum over all ranks, modulo 2^64. */
int comm_allreduce_sum(struct comm *comm, uint64_t *values, size_t count);

/*
 * Replace row i by the one whose first word is the minimum over all ranks' rows i. A row has
 * `width` words. If several rows have the minimum, any of them, but the same one on all ranks.
 */
int comm_allreduce_min(struct comm *comm, uint64_t *rows, size_t count, size_t width);

/* Return when all ranks have called it. */
int comm_barrier(struct comm *comm);

enum { COMM_ANY_RANK = 0x7fffffff /* receive from any sender */ };

/* Flags of comm_receive(). */
enum {
	COMM_MAY_BE_SHORTER = 1, /* nbytes is the maximum, which is at most fragment_nbytes */
	COMM_UNWATCHED = 2,      /* the message may never be sent; the heartbeat ignores that */
};

/*
 * A message in progress. The caller owns it, and neither moves nor frees it or its data until it is
 * done. The first two members are results; the others belong to comm.c.
 */
struct comm_transfer {
	unsigned from; /* of a receive: the sender */
	size_t nbytes; /* of a receive: the number of bytes received */

	struct comm_transfer *next;
	unsigned peer, tag, flags;
	char *data;
	size_t capacity;
	struct transport_request request;    /* of a message that is not split */
	struct transport_request *fragments; /* of a message that is split */
	size_t n_pending;                    /* requests that are not done */
	struct comm_waiter *waiter;          /* NULL: no thread waits for it */
	bool is_receive, is_done;
};

/*
 * Begin to send nbytes, which may be 0, with a tag. Messages with the same tag arrive in
 * the order in which they were sent; those with different tags can be received in any order. A
 * rank may send to itself. `data` must not change until the transfer is done.
 */
int comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
	      struct comm_transfer *ret_transfer);

/*
 * Begin to receive a message of nbytes with this tag. A message of another length fails the job
 * (-EMSGSIZE). `from` may be COMM_ANY_RANK if nbytes is at most fragment_nbytes. flags: usually 0.
 */
int comm_receive(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes,
		 unsigned flags, struct comm_transfer *ret_transfer);

/* Set the volumes that were sent to and received from other ranks so far. comm: NULL is ignored. */
void comm_get_volumes(const struct comm *comm, struct stats_volumes *ret_volumes);

/* Wait until the transfer is done, without using CPU time. */
int comm_wait(struct comm *comm, struct comm_transfer *transfer);

/* Send or receive a message, and wait until that is done. */
int comm_send_wait(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes);
int comm_receive_wait(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes);

/* Like comm_wait(), but at most until until_ns (clock_now_ns()). */
int comm_wait_until(struct comm *comm, struct comm_transfer *transfer, uint64_t until_ns,
		    bool *ret_done);

/*
 * Fail the job with r, which all later calls return. On return no transfer is in progress. Returns
 * r, or the error of an earlier failure. Unless comm_abort() is called within a fifth of
 * abort_timeout_ns, the progress thread aborts the job.
 */
int comm_fail(struct comm *comm, int r);

/*
 * Wait for the failure of another rank, which may be the cause of an error on this one. Waits
 * abort_timeout_ns at most. Returns the error of that failure, or 0 if there was none.
 */
int comm_wait_remote_failure(struct comm *comm);

/* End this process and all others of the job with this status. The reason has been reported. */
_Noreturn void comm_abort(struct comm *comm, int status);
