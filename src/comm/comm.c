/*
 * comm.c - ranks and the messages between them (see comm.h)
 *
 * The progress thread:
 *
 *	open the transport -> { begin submitted transfers, poll, wake waiters, pause }* -> close it
 *	                                  | failure or comm_abort()
 *	                                  +-> stop all transfers -> abort the job, exit
 *
 * Other threads put transfers into its queue. A thread that waits for a transfer has a condition
 * variable of its own, so that a completed transfer wakes only that thread.
 *
 * A message longer than fragment_nbytes is split by the sender and by the receiver, which knows its
 * length. Fragments have the tag of the message, because a transport keeps their order. If the
 * receiver does not know the sender or the length, the message must fit one fragment.
 */
#include "src/comm/comm.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/comm/watchdog.h"

enum {
	DEFAULT_FRAGMENT_NBYTES = 32 << 20, /* at least a stripe of an output, which is 16 MiB */
	VERSION_NBYTES = 48,
	EXIT_STATUS_FAILURE = 2, /* of a process that is aborted because a rank has failed */
	TIMEOUT_STEPS = 60,      /* per timeout; see staggered_timeout_ns() */
	PAUSE_DIVISOR = 8,       /* pause for 1/8 of the time without progress */
	STACK_NBYTES = 8 << 20,  /* for the transport's library */
};

/* The pause between two polls, while something is in progress and otherwise. */
static const uint64_t min_pause_ns = 50000, max_pause_ns = 500000, idle_pause_ns = 5000000;
static const uint64_t default_abort_timeout_ns = 5000000000;
static const uint64_t no_deadline_ns = INT64_MAX;

enum { PING, PONG }; /* of a COMM_TAG_HEARTBEAT message, which is a byte */

struct comm {
	struct comm_params params;
	transport_open_fn *transport_open;
	void *transport_argument;
	struct watchdog *watchdog;
	pthread_t progress_thread;
	unsigned rank, size;
	char (*_Atomic hosts)[COMM_HOST_NBYTES]; /* by rank; NULL: not known yet */
	atomic_uint_least64_t sent_nbytes, received_nbytes;

	pthread_mutex_t lock;
	pthread_cond_t work_available; /* for the progress thread */
	pthread_cond_t state_changed;  /* opened, receives cancelled, or stopped */
	struct comm_waiter *waiters;
	struct comm_transfer *submitted, **submitted_end;
	bool is_open, cancels_receives, is_closing, is_aborting, has_new_timeout;
	int abort_status; /* valid if is_aborting */
	int first_error;
	bool has_stopped; /* the progress thread does not touch transfers any more */

	/* Used only by the progress thread. */
	struct transport *transport;
	struct heartbeat heartbeat;
	struct transport_request inbox; /* the posted receive of pings and pongs */
	char inbox_byte;
	uint64_t n_sending; /* pending sends */
	struct comm_transfer *completed;
	uint64_t now_ns;           /* time of the current step */
	uint64_t last_progress_ns; /* when a request was last begun or completed */
};

/* A waiting thread, in a list. */
struct comm_waiter {
	struct comm_waiter *next, **link; /* link: the pointer that points to this waiter */
	pthread_cond_t wakeup;
};

/* A ping or pong being sent. */
struct heartbeat_send {
	struct transport_request request;
	char byte;
};

/* --- messages over the transport: called by the progress thread, without the lock --- */

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for messages between ranks");
}

/* "rank 3 on node17" */
struct rank_name {
	char text[COMM_HOST_NBYTES + 24];
};

static struct rank_name format_rank_name(const struct comm *comm, unsigned rank)
{
	const char(*hosts)[COMM_HOST_NBYTES] = (const char(*)[COMM_HOST_NBYTES])comm->hosts;
	struct rank_name name;

	snprintf(name.text, sizeof name, hosts ? "rank %u on %s" : "rank %u", rank,
		 hosts ? hosts[rank] : "");
	return name;
}

/* Return whether the heartbeat watches the peer because of this transfer. */
static bool is_monitored(const struct comm *comm, const struct comm_transfer *transfer)
{
	return transfer->peer != comm->rank && !(transfer->flags & COMM_UNWATCHED);
}

/* Return the peer's number for heartbeat.h. */
static unsigned heartbeat_peer(const struct comm *comm, const struct comm_transfer *transfer)
{
	return transfer->peer < comm->size ? transfer->peer : comm->size;
}

static int post_inbox(struct comm *comm)
{
	return comm->transport->ops->receive(comm->transport, TRANSPORT_ANY_RANK,
					     COMM_TAG_HEARTBEAT, &comm->inbox_byte, 1,
					     &comm->inbox);
}

static int send_heartbeat(struct comm *comm, unsigned to, char byte)
{
	struct heartbeat_send *beat = calloc(1, sizeof *beat);
	int r;

	if (!beat)
		return fail_memory();
	beat->byte = byte;
	r = comm->transport->ops->send(comm->transport, (int)to, COMM_TAG_HEARTBEAT, &beat->byte, 1,
				       &beat->request);
	if (r < 0)
		free(beat);
	else
		comm->n_sending++;
	return r;
}

/* Begin the send or receive of a fragment or of a whole message. */
static int begin_request(struct comm *comm, const struct comm_transfer *transfer, size_t offset,
			 size_t nbytes, struct transport_request *request)
{
	struct transport *transport = comm->transport;
	const int peer = transfer->peer == COMM_ANY_RANK ? TRANSPORT_ANY_RANK : (int)transfer->peer;

	request->owner = (void *)(uintptr_t)transfer;
	if (transfer->is_receive)
		return transport->ops->receive(transport, peer, (int)transfer->tag,
					       transfer->data + offset, nbytes, request);
	comm->n_sending++;
	if (transfer->peer != comm->rank)
		atomic_fetch_add_explicit(&comm->sent_nbytes, nbytes, memory_order_relaxed);
	return transport->ops->send(transport, peer, (int)transfer->tag, transfer->data + offset,
				    nbytes, request);
}

static int begin_transfer(struct comm *comm, struct comm_transfer *transfer)
{
	const size_t nbytes = transfer->is_receive ? transfer->capacity : transfer->nbytes;
	const size_t max_nbytes = comm->params.fragment_nbytes;
	struct transport_request *requests = &transfer->request;
	int r = 0;

	if (is_monitored(comm, transfer))
		heartbeat_begin_wait(&comm->heartbeat, heartbeat_peer(comm, transfer),
				     comm->now_ns);
	transfer->n_pending = nbytes > max_nbytes ? (nbytes - 1) / max_nbytes + 1 : 1;
	if (transfer->n_pending > 1) {
		transfer->fragments = calloc(transfer->n_pending, sizeof *transfer->fragments);
		requests = transfer->fragments;
	}
	if (!requests)
		return fail_memory();
	for (size_t i = 0; i < transfer->n_pending && r == 0; i++) {
		const size_t offset = i * max_nbytes, remaining = nbytes - offset;

		r = begin_request(comm, transfer, offset,
				  remaining < max_nbytes ? remaining : max_nbytes, &requests[i]);
	}
	return r;
}

static int complete_transfer(struct comm *comm, struct comm_transfer *transfer)
{
	/* Only different arguments make ranks call different collectives. */
	const char *hint = transfer->tag == COMM_TAG_COLLECTIVES ?
				   "; have all ranks been started with the same arguments?" :
				   "";

	if (is_monitored(comm, transfer))
		heartbeat_end_wait(&comm->heartbeat, heartbeat_peer(comm, transfer));
	free(transfer->fragments);
	transfer->fragments = NULL;
	if (transfer->is_receive && !(transfer->flags & COMM_MAY_BE_SHORTER) &&
	    transfer->nbytes != transfer->capacity)
		return fail(-EMSGSIZE, "%s has sent %zu bytes where %zu were expected%s",
			    format_rank_name(comm, transfer->from).text, transfer->nbytes,
			    transfer->capacity, hint);
	transfer->next = comm->completed;
	comm->completed = transfer;
	return 0;
}

static int accept_received(struct comm *comm, struct comm_transfer *transfer,
			   const struct transport_request *request)
{
	transfer->from = (unsigned)request->peer;
	transfer->nbytes += request->nbytes;
	heartbeat_record(&comm->heartbeat, transfer->from, comm->now_ns);
	if (transfer->from != comm->rank)
		atomic_fetch_add_explicit(&comm->received_nbytes, request->nbytes,
					  memory_order_relaxed);
	if (request->is_truncated)
		return fail(-EMSGSIZE, "%s has sent more than the %zu bytes that were expected",
			    format_rank_name(comm, transfer->from).text, transfer->capacity);
	return 0;
}

static int complete_request(struct comm *comm, struct transport_request *request)
{
	struct comm_transfer *transfer = request->owner;
	int r = 0;

	if (request == &comm->inbox) {
		heartbeat_record(&comm->heartbeat, (unsigned)request->peer, comm->now_ns);
		if (comm->inbox_byte == PING)
			r = send_heartbeat(comm, (unsigned)request->peer, PONG);
		return r < 0 ? r : post_inbox(comm);
	}
	if (transfer && transfer->is_receive)
		r = accept_received(comm, transfer, request);
	else
		comm->n_sending--;
	if (!transfer) /* a heartbeat_send */
		free(request);
	else if (r == 0 && --transfer->n_pending == 0)
		r = complete_transfer(comm, transfer);
	return r;
}

static int check_peers(struct comm *comm)
{
	struct transport *transport = comm->transport;
	const bool needs_check = heartbeat_needs_check(&comm->heartbeat, comm->now_ns);
	enum heartbeat_state state;
	int r = 0;

	for (unsigned rank = 0; rank < comm->size && r == 0; rank++) {
		if (transport->ops->is_disconnected &&
		    heartbeat_is_waiting(&comm->heartbeat, rank) &&
		    transport->ops->is_disconnected(transport, (int)rank))
			return fail(-EPIPE, "%s has ended", format_rank_name(comm, rank).text);
		state = needs_check && rank != comm->rank ?
				heartbeat_check(&comm->heartbeat, rank, comm->now_ns) :
				HEARTBEAT_OK;
		if (state == HEARTBEAT_PING)
			r = send_heartbeat(comm, rank, PING);
		if (state == HEARTBEAT_TIMEOUT)
			r = fail(
				-ETIMEDOUT,
				"%s has not answered for %.3g s; check the process and the network",
				format_rank_name(comm, rank).text,
				(double)comm->heartbeat.timeout_ns / 1e9);
	}
	return r;
}

/* Process everything that the transport has completed, then check for silent peers. */
static int poll_transport(struct comm *comm, bool *ret_progressed)
{
	struct transport *transport = comm->transport;
	struct transport_request *request;
	bool progressed = false;

	for (;; progressed = true) {
		int r = transport->ops->poll(transport, &request);

		if (r == 0 && request)
			r = complete_request(comm, request);
		if (r < 0)
			return r;
		if (!request)
			break;
	}
	*ret_progressed = progressed;
	return transport->ops->is_disconnected || !progressed ? check_peers(comm) : 0;
}

/* --- the progress thread --- */

/* Stop using transfers; every thread that waits for one gets the error. */
static void stop_transfers(struct comm *comm, int r)
{
	SCOPED_LOCK(&comm->lock);
	if (comm->first_error == 0)
		comm->first_error = r;
	comm->has_stopped = true;
	pthread_cond_broadcast(&comm->state_changed);
	for (struct comm_waiter *waiter = comm->waiters; waiter; waiter = waiter->next)
		pthread_cond_signal(&waiter->wakeup);
}

/*
 * When a rank is lost, all others notice at about the same time, and one message is enough. Rank 0
 * reports first, and the job ends before many others do.
 */
static uint64_t staggered_timeout_ns(const struct comm *comm)
{
	const struct transport *transport = comm->transport;
	const uint64_t timeout_ns = comm->params.timeout_ns, step_ns = timeout_ns / TIMEOUT_STEPS;

	if (transport->rank == 0)
		return timeout_ns;
	return timeout_ns + step_ns +
	       step_ns * (uint64_t)transport->rank / (uint64_t)transport->size;
}

static int open_transport(struct comm *comm)
{
	int r;

	watchdog_begin_call(comm->watchdog);
	r = comm->transport_open(comm->transport_argument, &comm->transport);
	if (r == 0) {
		watchdog_set_transport(comm->watchdog, comm->transport);
		r = heartbeat_init(&comm->heartbeat, (unsigned)comm->transport->size,
				   staggered_timeout_ns(comm), clock_now_ns());
		r = r < 0 ? fail_memory() : post_inbox(comm);
	}
	watchdog_end_call(comm->watchdog);
	if (r < 0)
		return r;
	SCOPED_LOCK(&comm->lock);
	comm->rank = (unsigned)comm->transport->rank;
	comm->size = (unsigned)comm->transport->size;
	comm->is_open = true;
	pthread_cond_broadcast(&comm->state_changed);
	return 0;
}

/* Begin submitted transfers and process completed ones. */
static int progress_step(struct comm *comm, struct comm_transfer *submitted, bool *ret_progressed)
{
	int r = 0;

	watchdog_begin_call(comm->watchdog);
	comm->now_ns = clock_now_ns();
	for (struct comm_transfer *next; submitted && r == 0; submitted = next) {
		next = submitted->next;
		r = begin_transfer(comm, submitted);
	}
	if (r == 0)
		r = poll_transport(comm, ret_progressed);
	watchdog_end_call(comm->watchdog);
	return r;
}

/* Requires the lock. */
static void signal_completed(struct comm *comm)
{
	struct comm_transfer *completed = comm->completed;

	comm->completed = NULL;
	for (struct comm_transfer *next; completed; completed = next) {
		next = completed->next;
		completed->is_done = true;
		if (completed->waiter)
			pthread_cond_signal(&completed->waiter->wakeup);
	}
}

/*
 * Requires the lock. The pause grows with the time without progress, but stays a small part of it,
 * because some MPI libraries transfer long messages only while they are called.
 */
static void pause_progress(struct comm *comm, bool progressed)
{
	const uint64_t now_ns = clock_now_ns();
	bool is_idle = comm->n_sending == 0; /* nothing is being sent or awaited */
	uint64_t max_ns, pause_ns;

	for (unsigned rank = 0; rank < comm->size && is_idle; rank++)
		is_idle = !heartbeat_is_waiting(&comm->heartbeat, rank);
	max_ns = is_idle ? idle_pause_ns : max_pause_ns;
	if (progressed)
		comm->last_progress_ns = now_ns;
	pause_ns = (now_ns - comm->last_progress_ns) / PAUSE_DIVISOR;
	if (pause_ns > max_ns)
		pause_ns = max_ns;
	if (pause_ns < min_pause_ns)
		pause_ns = min_pause_ns;
	if (!comm->submitted && !comm->cancels_receives && !comm->is_aborting &&
	    !comm->has_new_timeout && comm->first_error == 0)
		thread_wait_until(&comm->work_available, &comm->lock, now_ns + pause_ns);
}

/* Requires the lock. */
static struct comm_transfer *take_submitted(struct comm *comm)
{
	struct comm_transfer *submitted = comm->submitted;

	comm->submitted = NULL;
	comm->submitted_end = &comm->submitted;
	if (submitted)
		comm->last_progress_ns = clock_now_ns();
	return submitted;
}

/* Requires the lock. Returns when the job is closed or has failed. */
static int progress_loop(struct comm *comm)
{
	while (!comm->is_aborting && comm->first_error == 0) {
		struct comm_transfer *submitted = take_submitted(comm);
		const bool is_closing = comm->is_closing;
		bool progressed = false;
		int r;

		if (comm->has_new_timeout)
			heartbeat_set_timeout(&comm->heartbeat, staggered_timeout_ns(comm),
					      clock_now_ns());
		comm->has_new_timeout = false;
		pthread_mutex_unlock(&comm->lock);
		r = progress_step(comm, submitted, &progressed);
		pthread_mutex_lock(&comm->lock);
		if (r < 0)
			return r;
		signal_completed(comm);
		/*
		 * Before the ranks end, stop watching them: one that has ended already is not lost.
		 * Closing the transport cancels the receives.
		 */
		if (comm->cancels_receives && !comm->submitted) {
			heartbeat_end_all_waits(&comm->heartbeat);
			comm->cancels_receives = false;
			pthread_cond_broadcast(&comm->state_changed);
		}
		if (is_closing && comm->n_sending == 0)
			return 0;
		pause_progress(comm, progressed);
	}
	return comm->is_aborting ? 0 : comm->first_error;
}

static int close_transport(struct comm *comm)
{
	int r;

	watchdog_begin_call(comm->watchdog);
	watchdog_set_transport(comm->watchdog, NULL);
	r = comm->transport->ops->close(comm->transport);
	watchdog_end_call(comm->watchdog);
	return r;
}

/* The job has failed: give the caller time to call comm_abort(), then abort the job from here. */
static void wait_for_abort(struct comm *comm)
{
	const uint64_t until_ns = clock_now_ns() + comm->params.abort_timeout_ns / 5;

	SCOPED_LOCK(&comm->lock);
	while (!comm->is_aborting && clock_now_ns() < until_ns)
		thread_wait_until(&comm->work_available, &comm->lock, until_ns);
	if (!comm->is_aborting) {
		comm->is_aborting = true;
		comm->abort_status = EXIT_STATUS_FAILURE;
	}
}

static void abort_all(struct comm *comm) __attribute__((noreturn));
static void abort_all(struct comm *comm)
{
	watchdog_begin_abort(comm->watchdog, comm->abort_status);
	watchdog_begin_call(comm->watchdog);
	comm->transport->ops->abort_job(comm->transport, comm->abort_status);
	watchdog_end_call(comm->watchdog);
	watchdog_exit_process(comm->watchdog);
}

static void *run_progress_thread(void *argument)
{
	struct comm *comm = argument;
	int r = open_transport(comm);

	if (r < 0) {
		stop_transfers(comm, r);
		return NULL;
	}
	pthread_mutex_lock(&comm->lock);
	r = progress_loop(comm);
	pthread_mutex_unlock(&comm->lock);
	if (r < 0) {
		stop_transfers(comm, r);
		wait_for_abort(comm);
	}
	if (r < 0 || comm->is_aborting)
		abort_all(comm);
	r = close_transport(comm);
	if (r < 0)
		stop_transfers(comm, r);
	return NULL;
}

/* Returns when the transport is open, or a negative errno when the thread has ended. */
static int start_progress_thread(struct comm *comm)
{
	int r = thread_start(run_progress_thread, comm, STACK_NBYTES, &comm->progress_thread);

	if (r < 0)
		return fail(r, "cannot start a thread for messages between ranks: %m%s",
			    thread_format_limits(r).text);
	pthread_mutex_lock(&comm->lock);
	while (!comm->is_open && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	r = comm->is_open ? 0 : comm->first_error;
	pthread_mutex_unlock(&comm->lock);
	if (r < 0)
		pthread_join(comm->progress_thread, NULL);
	return r;
}

/* --- transfers, for other threads --- */

/* Requires the lock. */
static void waiter_add(struct comm *comm, struct comm_waiter *waiter)
{
	*waiter = (struct comm_waiter){ .next = comm->waiters, .link = &comm->waiters };
	thread_init_timed_condition(&waiter->wakeup);
	if (waiter->next)
		waiter->next->link = &waiter->next;
	comm->waiters = waiter;
}

static void waiter_remove(struct comm_waiter *waiter)
{
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	pthread_cond_destroy(&waiter->wakeup);
}

/* Requires the lock. Returns 0, or the first error once the progress thread has stopped. */
static int get_error(struct comm *comm)
{
	while (comm->first_error < 0 && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	return comm->first_error;
}

int comm_fail(struct comm *comm, int r)
{
	SCOPED_LOCK(&comm->lock);
	if (comm->first_error == 0)
		comm->first_error = r;
	pthread_cond_signal(&comm->work_available);
	return get_error(comm);
}

int comm_wait_remote_failure(struct comm *comm)
{
	const uint64_t until_ns = clock_now_ns() + comm->params.abort_timeout_ns;
	struct comm_waiter waiter;
	bool timed_out = false;

	SCOPED_LOCK(&comm->lock);
	waiter_add(comm, &waiter);
	while (!comm->has_stopped && !timed_out)
		timed_out = thread_wait_until(&waiter.wakeup, &comm->lock, until_ns);
	waiter_remove(&waiter);
	return get_error(comm);
}

static int submit_transfer(struct comm *comm, struct comm_transfer *transfer)
{
	int r;

	SCOPED_LOCK(&comm->lock);
	r = get_error(comm);
	if (r < 0)
		return r;
	*comm->submitted_end = transfer;
	comm->submitted_end = &transfer->next;
	pthread_cond_signal(&comm->work_available);
	return 0;
}

int comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
	      struct comm_transfer *ret_transfer)
{
	assert(to < comm->size && tag < COMM_TAG_LIMIT);
	*ret_transfer = (struct comm_transfer){
		.peer = to, .tag = tag, .data = (char *)(uintptr_t)data, .nbytes = nbytes
	};
	return submit_transfer(comm, ret_transfer);
}

int comm_receive(struct comm *comm, unsigned from, unsigned tag, void *data, size_t nbytes,
		 unsigned flags, struct comm_transfer *ret_transfer)
{
	assert(tag < COMM_TAG_LIMIT);
	assert((from < comm->size && !(flags & COMM_MAY_BE_SHORTER)) ||
	       nbytes <= comm->params.fragment_nbytes);
	*ret_transfer = (struct comm_transfer){ .peer = from,
						.tag = tag,
						.flags = flags,
						.data = data,
						.capacity = nbytes,
						.is_receive = true };
	return submit_transfer(comm, ret_transfer);
}

int comm_wait_until(struct comm *comm, struct comm_transfer *transfer, uint64_t until_ns,
		    bool *ret_done)
{
	struct comm_waiter waiter;
	bool timed_out = false;
	int r;

	SCOPED_LOCK(&comm->lock);
	waiter_add(comm, &waiter);
	transfer->waiter = &waiter;
	while (!transfer->is_done && !comm->has_stopped && !timed_out)
		timed_out = thread_wait_until(&waiter.wakeup, &comm->lock, until_ns);
	transfer->waiter = NULL;
	waiter_remove(&waiter);
	r = get_error(comm);
	if (r == 0)
		*ret_done = transfer->is_done;
	return r;
}

int comm_wait(struct comm *comm, struct comm_transfer *transfer)
{
	bool is_done;

	return comm_wait_until(comm, transfer, no_deadline_ns, &is_done);
}

void comm_get_volumes(const struct comm *comm, struct stats_volumes *ret_volumes)
{
	if (!comm)
		return;
	ret_volumes->sent_nbytes = atomic_load(&comm->sent_nbytes);
	ret_volumes->received_nbytes = atomic_load(&comm->received_nbytes);
}

/* --- the job --- */

void comm_set_timeout(struct comm *comm, uint64_t timeout_ns)
{
	watchdog_set_timeout(comm->watchdog, timeout_ns);
	SCOPED_LOCK(&comm->lock);
	comm->params.timeout_ns = timeout_ns;
	comm->has_new_timeout = true;
	pthread_cond_signal(&comm->work_available);
}

void comm_allow_peer_access(const struct comm *comm, bool is_allowed)
{
	if (comm->params.allow_peer_access)
		comm->params.allow_peer_access(is_allowed);
}

unsigned comm_rank(const struct comm *comm)
{
	return comm->rank;
}

unsigned comm_size(const struct comm *comm)
{
	return comm->size;
}

const char *comm_host(const struct comm *comm, unsigned rank)
{
	return comm->hosts ? comm->hosts[rank] : "?";
}

unsigned comm_host_size(const struct comm *comm, unsigned *ret_first)
{
	const char *host = comm_host(comm, comm->rank);
	unsigned n = 0;

	for (unsigned i = comm->size; i-- > 0;)
		if (strcmp(comm_host(comm, i), host) == 0) {
			*ret_first = i;
			n++;
		}
	return n;
}

void comm_abort(struct comm *comm, int status)
{
	watchdog_begin_abort(comm->watchdog, status);
	pthread_mutex_lock(&comm->lock);
	if (!comm->is_aborting) {
		comm->is_aborting = true;
		comm->abort_status = status;
	}
	pthread_cond_signal(&comm->work_available);
	for (;;) /* the progress thread or the watchdog ends the process */
		pthread_cond_wait(&comm->state_changed, &comm->lock);
}

/* Sent to all ranks when the job is opened. */
struct rank_identity {
	uint32_t byte_order; /* 1 in the byte order of this machine */
	char version[VERSION_NBYTES];
	char host[COMM_HOST_NBYTES];
};

static int compare_identities(const struct comm *comm, const struct rank_identity *identities)
{
	const struct rank_identity *own = &identities[comm->rank];

	for (unsigned rank = 0; rank < comm->size; rank++) {
		if (identities[rank].byte_order != own->byte_order)
			return fail(-EPROTO, "rank %u on %.*s: has a different byte order", rank,
				    COMM_HOST_NBYTES, identities[rank].host);
		if (memcmp(identities[rank].version, own->version, sizeof own->version) != 0)
			return fail(-EPROTO,
				    "ranks have different versions: "
				    "%s on %s (rank %u), %.*s on %.*s (rank %u)",
				    own->version, own->host, comm->rank, VERSION_NBYTES,
				    identities[rank].version, COMM_HOST_NBYTES,
				    identities[rank].host, rank);
	}
	return 0;
}

static int exchange_identities(struct comm *comm)
{
	const char *version = comm->params.version;
	struct rank_identity own = { .byte_order = 1 };
	struct rank_identity *identities = calloc(comm->size, sizeof *identities);
	char(*hosts)[COMM_HOST_NBYTES] = calloc(comm->size, sizeof *hosts);
	int r;

	strncpy(own.version, version ? version : GSORT_VERSION, sizeof own.version - 1);
	gethostname(own.host, sizeof own.host - 1);
	if (identities && hosts)
		r = comm_allgather(comm, &own, sizeof own, identities);
	else
		r = fail(-ENOMEM, "no memory for the names of %u ranks", comm->size);
	if (r == 0)
		r = compare_identities(comm, identities);
	for (unsigned rank = 0; rank < comm->size && r == 0; rank++)
		memcpy(hosts[rank], identities[rank].host, sizeof hosts[rank] - 1);
	free(identities);
	if (r < 0) {
		free(hosts);
		return r;
	}
	comm->hosts = hosts;
	return 0;
}

/* Requires that the threads have ended. */
static void free_comm(struct comm *comm)
{
	watchdog_close(comm->watchdog);
	heartbeat_destroy(&comm->heartbeat);
	pthread_cond_destroy(&comm->state_changed);
	pthread_cond_destroy(&comm->work_available);
	pthread_mutex_destroy(&comm->lock);
	free(comm->hosts);
	free(comm);
}

int comm_open(const struct comm_params *params, transport_open_fn *transport_open,
	      void *transport_argument, struct comm **ret_comm)
{
	const struct watchdog_params watchdog_params = {
		.timeout_ns = params->timeout_ns,
		.abort_timeout_ns = params->abort_timeout_ns ? params->abort_timeout_ns :
							       default_abort_timeout_ns,
		.before_abort = params->before_abort,
		.context = params->context,
		.exit_process = params->exit_process,
	};
	struct comm *comm = calloc(1, sizeof *comm);
	int r;

	if (!comm)
		return fail(-ENOMEM, "no memory for ranks");
	comm->params = *params;
	comm->params.abort_timeout_ns = watchdog_params.abort_timeout_ns;
	if (comm->params.fragment_nbytes == 0)
		comm->params.fragment_nbytes = DEFAULT_FRAGMENT_NBYTES;
	comm->transport_open = transport_open;
	comm->transport_argument = transport_argument;
	comm->submitted_end = &comm->submitted;
	pthread_mutex_init(&comm->lock, NULL);
	thread_init_timed_condition(&comm->work_available);
	pthread_cond_init(&comm->state_changed, NULL);
	r = watchdog_open(&watchdog_params, &comm->watchdog);
	if (r == 0)
		r = start_progress_thread(comm);
	if (r < 0) {
		free_comm(comm);
		return r;
	}
	r = exchange_identities(comm);
	if (r < 0)
		comm_abort(comm, EXIT_STATUS_FAILURE);
	*ret_comm = comm;
	return 0;
}

/* Stop waiting for other ranks. Returns 0 or the first error. */
static int cancel_posted_receives(struct comm *comm)
{
	SCOPED_LOCK(&comm->lock);
	comm->cancels_receives = true;
	pthread_cond_signal(&comm->work_available);
	while (comm->cancels_receives && !comm->has_stopped)
		pthread_cond_wait(&comm->state_changed, &comm->lock);
	return get_error(comm);
}

int comm_close(struct comm *comm)
{
	int r;

	if (!comm)
		return 0;
	r = cancel_posted_receives(comm);
	if (r == 0)
		r = comm_barrier(comm);
	if (r < 0)
		return r;
	pthread_mutex_lock(&comm->lock);
	comm->is_closing = true;
	pthread_cond_signal(&comm->work_available);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->progress_thread, NULL);
	if (comm->first_error < 0) /* comm_abort() needs the rest */
		return comm->first_error;
	free_comm(comm);
	return 0;
}
