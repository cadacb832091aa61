/*
 * comm - several processes that do one job, and the messages between them
 *
 * A job has `size` processes, on one machine or many; each is a rank, numbered from 0. They send
 * each other messages of bytes, and meet in collectives, which are written over messages
 * (collectives.c). How bytes get from one to another is a transport's (transport.h): of a single
 * process (transport_single.h), of MPI (mpi/ranks_mpi.h), of a test.
 *
 *	threads of the job          the carrier, a thread                    the transport
 *	ranks_send()    --queue-->  p2p_protocol.c: announces, matches, posts -->  send, receive
 *	ranks_receive()             heartbeat.c: who has been silent for long <--  take
 *	ranks_test() <---done-----
 *
 * The carrier is the only thread that calls the transport, so messages go on while the job
 * computes, and a library that can have one thread only has one. Between calls it sleeps, for 50
 * to 500 us if something is under way: waits inside of MPI spin.
 *
 * What arrives is what was sent, or the job fails: every message has a number and checksums
 * (message_header.h). A rank from which something is awaited is asked whether it still lives when it has
 * been silent for a quarter of `stall_ns`; at `stall_ns` the job fails with a line that names it.
 * If whoever uses this does not end the process then, that is done for it (watchdog.h), also when the
 * transport never returns.
 *
 * After any failure there is nothing to be done but ranks_abort(): the others wait for this rank.
 * Nothing is under way then: an error is returned when the carrier has stopped, and with it all
 * that is done to transfers and to the memory that they are about. So whoever hears of an error may
 * free both. Who has failed for a reason of its own, and has something under way, or not waited for
 * what other threads have, calls ranks_give_up() first.
 *
 * Any thread may call, unless said otherwise. Errors are negative errnos, said once by fail(); the
 * first one is what all later calls return.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranks;
struct transport;

enum { RANKS_HOST_NBYTES = 64 }; /* of a machine's name, with its end */

/* What a process has once, and how patient it is. */
struct ranks_settings {
	uint64_t stall_ns; /* as of ranks_set_stall() */
	/*
	 * Ending all ranks may take so long, and so does after a failure a fifth of it until that
	 * is begun here; 0: 5 s.
	 */
	uint64_t end_ns;
	size_t piece_nbytes; /* larger messages are cut for the transport; 0: 16 MiB */
	const char *version; /* all ranks must have the same; below 48 bytes; NULL: gsort's */
	/*
	 * Called once, by any thread, before all ranks are ended: last chance to remove what
	 * others would find. May be NULL.
	 */
	void (*before_end)(void *context);
	void *context;
	/*
	 * From now on other processes of this user may read the memory of this one, also where the
	 * system wants that said for each; or no more. May be NULL.
	 */
	void (*allow_reading)(bool is_allowed);
	/* End the process at once, with nothing done at its exit. */
	void (*end)(int status) __attribute__((noreturn));
};

/*
 * Opens what carries the bytes, in the thread that will be the only one to use it, and which has
 * the messages of who calls ranks_open(). Returns 0 or a negative errno, said by fail().
 */
typedef int transport_opener(void *argument, struct transport **ret_transport);

/*
 * Every rank calls it, and waits for all others; they must be of one version and byte order. The
 * caller's to close. Returns 0 or a negative errno.
 */
int ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
	       struct ranks **ret_ranks);

/*
 * Every rank calls it, and waits for all others. Nothing may be under way but receives that
 * nothing was sent for: they are forgotten. Not after a failure: ranks_abort(). Returns 0 or a
 * negative errno (then ranks_abort()). NULL is fine.
 */
int ranks_close(struct ranks *ranks);

/*
 * From now on a rank that is awaited is given up when it has been silent for so long, and so is
 * what carries messages when it does not return; 0: never.
 */
void ranks_set_stall(struct ranks *ranks, uint64_t stall_ns);

/* As the settings have it. */
void ranks_allow_reading(const struct ranks *ranks, bool is_allowed);

unsigned ranks_rank(const struct ranks *ranks);
unsigned ranks_size(const struct ranks *ranks);

/* The name of the machine that a rank is on; as long as `ranks`. */
const char *ranks_host(const struct ranks *ranks, unsigned rank);

/* How many ranks are on this one's machine, with it; *ret_first: the first of them. */
unsigned ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first);

/*
 * Collectives: every rank calls the same ones in the same order, a thread at a time. They return 0
 * or a negative errno.
 */

/* The bytes of `root` become everybody's. */
int ranks_broadcast(struct ranks *ranks, void *data, size_t nbytes, unsigned root);

/* nbytes of every rank, by rank. `mine` may be its own place in ret_all. */
int ranks_gather_all(struct ranks *ranks, const void *mine, size_t nbytes, void *ret_all);

/*
 * The same, when ranks have different numbers of bytes: ret_sizes[] of each. *ret_all is the
 * caller's to free.
 */
int ranks_gather_all_varying(struct ranks *ranks, const void *mine, size_t nbytes, void **ret_all,
			     size_t *ret_sizes);

/* Each value becomes the sum of all ranks' values, modulo 2^64. */
int ranks_sum(struct ranks *ranks, uint64_t *values, size_t count);

/*
 * `count` rows of `width` words each: row i becomes that of all ranks' rows i of which the first
 * word is least; of several such, any, but the same everywhere.
 */
int ranks_least(struct ranks *ranks, uint64_t *rows, size_t count, size_t width);

/* Nobody returns before all have called it. */
int ranks_barrier(struct ranks *ranks);

enum { RANKS_ANY = 0x7fffffff /* receive from whoever sends */ };

/*
 * A message under way. It is the caller's and stays where it is until it is done, as does the
 * memory that it is about. Members in front are set then; all others are p2p_protocol.c's, but for one.
 */
struct ranks_transfer {
	unsigned from; /* of a receive: who sent it */
	size_t nbytes; /* and how much it is */

	struct ranks_transfer *next;
	unsigned peer, tag;
	char *data;
	size_t capacity;
	uint64_t checksum;           /* of the data */
	unsigned n_moves;            /* of the transport, not done yet */
	struct ranks_waiter *waiter; /* p2p.c's; NULL: nobody waits now */
	bool is_receive, is_patient, may_be_shorter, is_checked, is_done;
};

/*
 * Begin to send nbytes, which may be 0; tag: what it is about (tags.h). Messages with the same tag
 * arrive in the order in which they were sent; those with others may be received in any order. What
 * is sent to oneself arrives, too. `data` is not to be changed until it is done.
 */
int ranks_send(struct ranks *ranks, unsigned to, unsigned tag, const void *data, size_t nbytes,
	       struct ranks_transfer *ret_transfer);

/*
 * Begin to receive a message with this tag. One of another length than nbytes is a failure of all
 * (-EMSGSIZE). from: may be RANKS_ANY.
 */
int ranks_receive(struct ranks *ranks, unsigned from, unsigned tag, void *data, size_t nbytes,
		  struct ranks_transfer *ret_transfer);

/* The same of a message with up to so many bytes. */
int ranks_receive_up_to(struct ranks *ranks, unsigned from, unsigned tag, void *data,
			size_t capacity, struct ranks_transfer *ret_transfer);

/*
 * As ranks_receive(), of what may come at any time, or never: nobody is asked for it, nor missed
 * who is gone. A rank that sends it and is lost is noticed by whoever awaits something else of it.
 */
int ranks_receive_patiently(struct ranks *ranks, unsigned from, unsigned tag, void *data,
			    size_t nbytes, struct ranks_transfer *ret_transfer);

/*
 * What has gone between this rank and others so far: the data of messages, and all that was given
 * to the transport for that, with what stands in front of each.
 */
struct ranks_traffic {
	uint64_t sent_nbytes, received_nbytes;
	uint64_t wire_sent_nbytes, wire_received_nbytes;
};
void ranks_get_traffic(const struct ranks *ranks, struct ranks_traffic *ret_traffic);

/* Is it done? Returns at once. What has been received is compared with its checksum here. */
int ranks_test(struct ranks *ranks, struct ranks_transfer *transfer, bool *ret_done);

/* Wait until it is done. Costs no processor time. */
int ranks_wait(struct ranks *ranks, struct ranks_transfer *transfer);

/* The same, but at most until then (clock_now_ns()). Is it done? */
int ranks_wait_until(struct ranks *ranks, struct ranks_transfer *transfer, uint64_t until_ns,
		     bool *ret_done);

/*
 * This rank has failed with r, which is what all later calls return: nothing is under way any more,
 * as after any error. Returns r, or the error of what has failed before. If ranks_abort() is not
 * called then within a fifth of end_ns, that is done here.
 */
int ranks_give_up(struct ranks *ranks, int r);

/*
 * What looks like a fault here may follow from another rank's failure, which ends this process
 * soon: waits as long as that may take (end_ns). Returns the error of what has failed meanwhile, or
 * 0: nothing has.
 */
int ranks_await_failure(struct ranks *ranks);

/*
 * End this process, and all others of the job, with this status. What was said by fail() is the
 * reason.
 */
_Noreturn void ranks_abort(struct ranks *ranks, int status);
