/*
 * comm - several processes that do one job, and the messages between them
 *
 * A job has `size` processes, on one machine or many; each is a rank, numbered from 0. They send
 * each other messages of bytes, and meet in collectives, which are written over messages
 * (collectives.c). How bytes get from one to another is a transport's (transport.h): of a single
 * process (transport_single.h), of MPI (mpi/transport_mpi.h), of a test.
 *
 *	threads of the job          the carrier, a thread                    the transport
 *	comm_send()    --queue-->  p2p_protocol.c: announces, matches, posts -->  send, receive
 *	comm_receive()             heartbeat.c: who has been silent for long <--  take
 *	comm_test() <---done-----
 *
 * The carrier is the only thread that calls the transport, so messages go on while the job
 * computes, and a library that can have one thread only has one. Between calls it sleeps, for 50
 * to 500 us if something is under way: waits inside of MPI spin.
 *
 * What arrives is what was sent, or the job fails: every message has a number and checksums
 * (message_header.h). A rank from which something is awaited is asked whether it still lives when
 * it has been silent for a quarter of `timeout_ns`; at `timeout_ns` the job fails with a line
 * that names it. If whoever uses this does not end the process then, that is done for it
 * (watchdog.h), also when the transport never returns.
 *
 * After any failure there is nothing to be done but comm_abort(): the others wait for this rank.
 * Nothing is under way then: an error is returned when the carrier has stopped, and with it all
 * that is done to transfers and to the memory that they are about. So whoever hears of an error may
 * free both. Who has failed for a reason of its own, and has something under way, or not waited for
 * what other threads have, calls comm_fail() first.
 *
 * Any thread may call, unless said otherwise. Errors are negative errnos, said once by fail(); the
 * first one is what all later calls return.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm;
struct transport;

enum { COMM_HOST_NBYTES = 64 }; /* of a machine's name, with its end */

/* What a process has once, and how patient it is. */
struct comm_params {
	uint64_t timeout_ns; /* as of comm_set_timeout() */
	/*
	 * Ending all ranks may take so long, and so does after a failure a fifth of it until that
	 * is begun here; 0: 5 s.
	 */
	uint64_t abort_timeout_ns;
	size_t fragment_nbytes; /* larger messages are cut for the transport; 0: 16 MiB */
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
 * A message under way. It is the caller's and stays where it is until it is done, as does the
 * memory that it is about. Members in front are set then; all others are p2p_protocol.c's, but
 * for one.
 */
struct comm_transfer {
	unsigned from; /* of a receive: who sent it */
	size_t nbytes; /* and how much it is */

	struct comm_transfer *next;
	unsigned peer, tag;
	char *data;
	size_t capacity;
	uint64_t checksum;          /* of the data */
	unsigned n_pending;         /* of the transport, not done yet */
	struct comm_waiter *waiter; /* p2p.c's; NULL: nobody waits now */
	bool is_receive, is_unwatched, may_be_shorter, is_checked, is_done;
};

/*
 * Begin to send nbytes, which may be 0; tag: what it is about (tags.h). Messages with the same tag
 * arrive in the order in which they were sent; those with others may be received in any order. What
 * is sent to oneself arrives, too. `data` is not to be changed until it is done.
 */
int comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
	      struct comm_transfer *ret_transfer);

/*
 * Begin to receive a message with this tag. One of another length than nbytes is a failure of all
 * (-EMSGSIZE). from: may be COMM_ANY_RANK.
 */
int comm_receive(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes,
		 struct comm_transfer *ret_transfer);

/* The same of a message with up to so many bytes. */
int comm_receive_up_to(struct comm *comm, unsigned from, unsigned tag, void *data, size_t capacity,
		       struct comm_transfer *ret_transfer);

/*
 * As comm_receive(), of what may come at any time, or never: nobody is asked for it, nor missed
 * who is gone. A rank that sends it and is lost is noticed by whoever awaits something else of it.
 */
int comm_receive_unwatched(struct comm *comm, unsigned from, unsigned tag, void *data,
			   size_t nbytes, struct comm_transfer *ret_transfer);

/*
 * What has gone between this rank and others so far: the data of messages, and all that was given
 * to the transport for that, with what stands in front of each.
 */
struct comm_traffic {
	uint64_t sent_nbytes, received_nbytes;
	uint64_t wire_sent_nbytes, wire_received_nbytes;
};
void comm_get_traffic(const struct comm *comm, struct comm_traffic *ret_traffic);

/* Is it done? Returns at once. What has been received is compared with its checksum here. */
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
